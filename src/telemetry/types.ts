/** How traces are asked for and handed out. */
import type { Log } from '../logging.js'
import type { Tracer } from '../protocol/trace.js'

/** Traces that are being drawn up. */
export interface Tracing {
  readonly tracer: Tracer
  /** Hands over what has not been exported, within a few seconds. Never rejects. */
  close(): Promise<void>
}

export interface TracingOptions {
  version: string
  log: Pick<Log, 'warn'>
}

/** How traces are exported: OTLP over HTTP, in one of its encodings. */
export type Encoding = 'http/protobuf' | 'http/json'
