/** Reads and writes the trace context of calls (W3C Trace Context; in `_meta` since SEP-414). telemetry/ records traces. */
import { edit, has, type Payload, value } from '../../base/rpc/splice.js'

/** The names of the trace context (W3C): of headers, and of keys of `_meta`. They never change a result. */
export const TRACE_HEADERS: ReadonlySet<string> = new Set(['traceparent', 'tracestate', 'baggage'])

/** A position in a trace, as it is sent. */
export interface TraceContext {
  traceparent: string
  tracestate?: string | undefined
}

/** What the headers of a request say about its trace (W3C Trace Context, W3C Baggage). */
export interface ReceivedTrace {
  traceparent?: string | undefined
  tracestate?: string | undefined
  baggage?: string | undefined
}

/** What a header can have as its value; a longer one would be refused. */
const SENDABLE = /^[\x20-\x7e]{1,8192}$/

/** Records calls in traces. Times are those of `performance.now()`. */
export interface Tracer {
  /** Starts the span of an incoming call. `parent` is the client's span, if it sent one. */
  begin(parent: TraceContext | undefined, moment: number): Span
}

/** One operation in a trace. */
export interface Span {
  readonly context: TraceContext
  /** The ids to write into the log. */
  readonly ids: { trace_id: string; span_id: string }
  /** Starts the span of the request to the server, within this one. */
  within(moment: number): Span
  /** Ends the span. `fields` are those of the call's line in the log. */
  end(fields: Readonly<Record<string, unknown>>): void
}

/** The trace context in a request's `_meta`; undefined if there is none. */
export function traceIn(meta: Payload): TraceContext | undefined {
  const traceparent = value(meta, 'traceparent')
  if (typeof traceparent !== 'string') return undefined
  const tracestate = value(meta, 'tracestate')
  return { traceparent, tracestate: typeof tracestate === 'string' ? tracestate : undefined }
}

/** The `_meta` with another trace context. */
export function withTrace(meta: Payload, { traceparent, tracestate }: TraceContext): Payload {
  return edit(meta, {
    traceparent: JSON.stringify(traceparent),
    tracestate: tracestate === undefined ? undefined : JSON.stringify(tracestate),
  })
}

/** The `_meta` with what headers say about the trace, unless it says so itself. */
export function withReceived(meta: Payload, { traceparent, tracestate, baggage }: ReceivedTrace): Payload {
  const traced =
    traceparent === undefined || has(meta, 'traceparent') ? meta : withTrace(meta, { traceparent, tracestate })
  return baggage === undefined || has(meta, 'baggage') ? traced : edit(traced, { baggage: JSON.stringify(baggage) })
}

/** The headers with what `_meta` says about the trace, unless they say so themselves. */
export function withTraceHeaders(headers: Readonly<Record<string, string>>, meta: Payload): Record<string, string> {
  const all = { ...headers }
  const isTraced = headers['traceparent'] !== undefined
  for (const name of TRACE_HEADERS) {
    const said = isTraced && name !== 'baggage' ? undefined : value(meta, name)
    if (typeof said === 'string' && SENDABLE.test(said)) all[name] ??= said
  }
  return all
}
