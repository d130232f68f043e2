/** The options of one upstream server: how it is reached, how callers share it, and its bounds. */

import type { SealKey } from '../base/crypto/seal.js'
import type { Fault } from '../base/fault/fault.js'
import type { Memory } from '../base/limits/memory.js'
import type { Log } from '../base/log/events.js'
import type { Json } from '../base/rpc/splice.js'
import type { Observe } from '../mcp/ports/events.js'
import type { ServerRecorder } from '../mcp/ports/recorder.js'
import type { Replicas } from '../mcp/ports/replicas.js'
import type { AccountsByPrincipal } from '../mcp/protocol/account.js'
import type { Era } from '../mcp/protocol/eras.js'
import type { MessageLengths, Transport } from './transport/channel.js'

type Isolation = 'per-principal' | 'shared' | 'per-request'

/**
 * Which tools are called as tasks: `auto`, those that require it; `async`, also those that allow it, for clients that
 * support tasks; `off`, none.
 */
type TaskMode = 'auto' | 'async' | 'off'

/** Bounds and time limits. They can change while the server stays. */
export interface ServerBounds {
  timeouts: ServerTimeouts
  /** The maximum number of concurrent sessions, or processes of a program. */
  maxSessions: number
  /** One principal's share of the room that others leave; 1 by default. */
  share?: number
  /** The bridge may have more than one principal. */
  several?: boolean
  /** Processes that one principal may start per minute, after a burst of `maxSessions`. Unlimited by default. */
  startsPerMinute?: number | undefined
  parked: Parking
  /** Lengths of the messages of the server; those of the transport by default. */
  lengths?: MessageLengths | undefined
}

export interface ServerOptions extends ServerBounds {
  name: string
  transport: Transport
  /** Tried if an HTTP address refuses `initialize`: HTTP+SSE at the same address. */
  fallback?: Transport
  era: 'auto' | Era
  /** The era that a document claims, which spares the probe until the server contradicts; undefined if none does. */
  claimed?: (() => Era | undefined) | undefined
  isolation: Isolation
  /** Calls of tools, prompts and resources that have caused questions get sessions of their own. */
  asksAlone?: boolean
  /** All clients that may share a session or process share a single one, whatever they declare. */
  single?: boolean
  tasks: TaskMode
  /** `safe`: a tool that declares repetition harmless is called again when its answer was lost. */
  retry: 'off' | 'safe'
  /** The bridge passes the callers' own credentials to the server. */
  passthrough: boolean
  /** Callers may have headers of their own for the server, without which it may refuse requests. */
  forwards?: boolean | undefined
  /** The accounts that the bridge uses, if it signs in to the server. */
  accounts?: AccountsByPrincipal | undefined
  /** The answer to `roots/list`: the client's, none, or these URIs. */
  roots: 'ask' | 'off' | readonly string[]
  /** Milliseconds between pings in a legacy session without calls; undefined for none. */
  ping?: number | undefined
  /** The bridge's own Implementation as JSON, used if a client gives none. */
  clientInfo: Json
  log: ServerLog
  observe?: Observe | undefined
  /** Records all messages, for the inspector. */
  recorder?: ServerRecorder | undefined
  memory: Memory
  /** Whether it is one of several addresses, so that another one gets calls while it fails. */
  isOneOfSeveral?: boolean | undefined
  /**
   * Told what becomes of calls in sessions of clients: undefined when one is answered. Returns whether the address is of
   * use: if it is not, the session ends.
   */
  reached?: ((fault: Fault | undefined) => boolean) | undefined
  /** The other replicas, if there are any. */
  replicas?: Pick<Replicas, 'id' | 'records' | 'tell' | 'hear'> | undefined
}

/** Timeouts of a server, in milliseconds. */
interface ServerTimeouts {
  probe: number
  initialize: number
  /** Until a program must have answered, as long as it writes. By default it has no more time than other servers. */
  start?: number | undefined
  /** How long a call waits for a program to start before it fails. Infinite by default. */
  startWait?: number | undefined
  /** After which idle sessions end. Without it, they end only if others need the room. */
  idle?: number | undefined
  /** After which idle sessions end whose clients have disconnected, if that is sooner: another client may use them until then. */
  reuse?: number | undefined
}

/** Bounds of calls that wait for answers of their clients. */
export interface Parking {
  /** The first key seals; all keys open. By default a random key of this process. */
  keys?: readonly SealKey[] | undefined
  /** Milliseconds that a client has to answer. */
  ttl: number
  /** The maximum number of parked calls: in total, and of one principal. */
  max: number
  maxPerPrincipal: number
}

export type ServerLog = Pick<Log, 'debug' | 'warn'>
