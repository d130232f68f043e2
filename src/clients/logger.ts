/** The log of a server, with its metrics, traces and recorder. */

import type { Fault } from '../base/fault/fault.js'
import type { Log } from '../base/log/events.js'
import type { BridgeEvent, CallEvent, Observe } from '../mcp/ports/events.js'
import type { ClientRecorder } from '../mcp/ports/recorder.js'
import type { Caller, Sender } from '../mcp/protocol/call.js'
import type { Era } from '../mcp/protocol/eras.js'
import { nameOfClient } from '../mcp/protocol/implementation.js'
import type { ListedNames } from '../mcp/protocol/listed-names.js'
import type { Tracer } from '../mcp/protocol/trace.js'

/** The log of a server. */
export interface Logger extends Pick<Log, 'isLevelEnabled' | 'debug' | 'info' | 'warn' | 'error'> {
  /** Metrics and traces; none by default. */
  readonly telemetry?: Telemetry | undefined
  /** Which calls have a line; all by default. */
  readonly calls?: LoggedCalls | undefined
  /** What operators are told about a fault of a server: lines of its stderr, and what to do next. */
  readonly advise?: ((fault: Fault) => object) | undefined
  /** Called with the fault of each call that fails. */
  readonly noticed?: ((fault: Fault) => void) | undefined
}

/** Which calls are logged when they end. `failed`: calls with a tool error, an error or a fault. */
export type LoggedCalls = 'all' | 'failed' | 'none'

/** Receives the events and spans of a server. */
export interface Telemetry {
  /** The name of the server or group in the configuration. */
  server: string
  isGroup?: boolean | undefined
  /** The era of a server, if it is known; of all servers of a group for an empty name, if it is the same. */
  eraOf?: ((server: string) => Era | undefined) | undefined
  observe?: Observe | undefined
  /** Counts calls when they end; none without metrics. */
  observeCall?: ((event: CallEvent) => void) | undefined
  tracer?: Tracer | undefined
  /** Which names of tools and prompts may be in metrics and in names of spans; none without both. */
  names?: Pick<ListedNames, 'learn' | 'has'> | undefined
  /** Records the messages of its clients, for the inspector. */
  recorder?: ClientRecorder | undefined
}

type Unnamed<E> = E extends BridgeEvent ? Omit<E, 'server'> : never

/** Reports an event of the server to the metrics, if there are any. */
export function tell({ telemetry }: Logger, event: Unnamed<BridgeEvent>): void {
  telemetry?.observe?.({ ...event, ...whoseOf(telemetry) } as BridgeEvent)
}

/** A session of a legacy client. */
interface ToldSession {
  log: Logger
  sender: Pick<Sender, 'principal'>
  transport: 'http' | 'sse' | 'stdio'
  session?: string | undefined
}

/** Reports what has become of a session of a legacy client. */
export function tellSession(
  what: 'opened' | 'ended' | 'lost',
  { log, sender, transport, session }: ToldSession,
  { clientInfo = '' }: Pick<Caller, 'clientInfo'>,
): void {
  const overSse = what === 'opened' && transport === 'sse' ? nameOfClient(clientInfo) : undefined
  tell(log, { kind: 'session', side: 'client', what, session, principal: sender.principal, overSse })
}

/** The server or group of an event. */
export function whoseOf({ server, isGroup }: Pick<Telemetry, 'server' | 'isGroup'>): {
  server: string
  group?: string
} {
  return isGroup ? { server: '', group: server } : { server }
}
