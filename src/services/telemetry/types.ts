/** The interface between the bridge and tracing. */
import type { Log } from '../../base/log/events.js'
import type { Tracer } from '../../mcp/protocol/trace.js'

/** Running tracing. */
export interface Tracing {
  readonly tracer: Tracer
  /** Exports what is pending, within a few seconds. Never rejects. */
  close(): Promise<void>
}

/** How to trace. */
export interface TracingOptions {
  version: string
  log: Pick<Log, 'warn'>
}
