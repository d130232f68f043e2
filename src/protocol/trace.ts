/**
 * Where calls stand in traces (W3C Trace Context; in `_meta` as of MCP, SEP-414): as much as has to be carried. Whoever
 * draws traces up is elsewhere.
 */
import { edit, type Payload, value } from '../rpc/splice.js'

/** A place in a trace, as it travels. */
export interface TraceContext {
  traceparent: string
  tracestate?: string | undefined
}

/** Follows calls. Moments are those of `performance.now()`. */
export interface Tracer {
  /** A call has come in, at a moment, from a place in a trace if its client has named one. */
  begin(parent: TraceContext | undefined, moment: number): Span
}

/** A piece of work on a call. */
export interface Span {
  readonly context: TraceContext
  /** What it is found by, for the log. */
  readonly ids: { trace_id: string; span_id: string }
  /** The call goes to the server, which is a piece of this one. */
  within(moment: number): Span
  /** Ends it, with what is known of the call: what its line in the log says. */
  end(fields: Readonly<Record<string, unknown>>): void
}

/** The place that a request names in its `_meta`. */
export function traceIn(meta: Payload): TraceContext | undefined {
  const traceparent = value(meta, 'traceparent')
  if (typeof traceparent !== 'string') return undefined
  const tracestate = value(meta, 'tracestate')
  return { traceparent, tracestate: typeof tracestate === 'string' ? tracestate : undefined }
}

/** The same `_meta` with another place in it. */
export function withTrace(meta: Payload, { traceparent, tracestate }: TraceContext): Payload {
  return edit(meta, {
    traceparent: JSON.stringify(traceparent),
    tracestate: tracestate === undefined ? undefined : JSON.stringify(tracestate),
  })
}
