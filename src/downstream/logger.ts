/** The log of a server, with its metrics, traces and inspector. */
import type { Log } from '../logging.js'
import type { BridgeEvent, Observe } from '../ports/events.js'
import type { Tracer } from '../protocol/trace.js'
import type { Watch } from './watch.js'

/** The log of a server. */
export interface Logger extends Pick<Log, 'isLevelEnabled' | 'debug' | 'info' | 'warn' | 'error'> {
  /** Metrics and traces; none by default. */
  readonly telemetry?: Telemetry | undefined
  /** Which calls have a line; all by default. */
  readonly calls?: LoggedCalls | undefined
}

/** Which calls are logged when they end. `failed`: those with a tool error, an error or a fault. */
export type LoggedCalls = 'all' | 'failed' | 'none'

/** Where events and spans of a server go. */
export interface Telemetry {
  /** The name of the server in the configuration. */
  server: string
  observe?: Observe | undefined
  /** Counts calls when they end; none without metrics. */
  observeCall?: Observe | undefined
  tracer?: Tracer | undefined
  /** The inspector; none by default. */
  watch?: Watch | undefined
}

type Unnamed<E> = E extends BridgeEvent ? Omit<E, 'server'> : never

/** Reports an event of the server to the metrics, if there are any. */
export function tell({ telemetry }: Logger, event: Unnamed<BridgeEvent>): void {
  telemetry?.observe?.({ ...event, server: telemetry.server })
}
