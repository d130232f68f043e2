/**
 * Records traces with the packages of OpenTelemetry, which read their environment variables themselves. Names and
 * attributes are those of the semantic conventions for MCP; others start with `mcp_bridge`.
 */
import {
  type Attributes,
  createTraceState,
  DiagLogLevel,
  diag,
  isSpanContextValid,
  type Span as OtelSpan,
  type Tracer as OtelTracer,
  ROOT_CONTEXT,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
} from '@opentelemetry/api'
import { OTLPTraceExporter as JsonExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { OTLPTraceExporter as ProtobufExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import { BasicTracerProvider, BatchSpanProcessor } from '@opentelemetry/sdk-trace-base'
import type { Log } from '../../base/log/events.js'
import { proxyAgent } from '../../base/net/agent.js'
import type { HttpProxy } from '../../base/net/proxy.js'
import { within } from '../../base/time/time.js'
import { NEWEST_MODERN } from '../../mcp/protocol/eras.js'
import { CALL_TOOL, LEGACY_CLIENT_NOTIFICATIONS, methods } from '../../mcp/protocol/methods.js'
import type { Span, TraceContext, Tracer } from '../../mcp/protocol/trace.js'
import type { Encoding } from './otlp.js'
import { resourceOf } from './resource.js'

/** Milliseconds for the last export. */
const CLOSE_WITHIN = 3_000
const MAX_PROBLEM = 300
const TRACEPARENT = /^(?!ff)([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(-.*)?$/

/** Notifications that clients send to servers. */
const NOTIFICATIONS: ReadonlySet<string> = new Set([...LEGACY_CLIENT_NOTIFICATIONS, 'notifications/cancelled'])

type Fields = Readonly<Record<string, unknown>>

export interface TracingOptions {
  version: string
  log: Pick<Log, 'warn'>
}

/** Traces of calls, exported by OTLP. */
export class OpenTelemetry {
  readonly tracer: Tracer
  readonly #provider: BasicTracerProvider
  #closing: Promise<void> | undefined

  constructor(encoding: Encoding, { version, log, proxy }: TracingOptions & { proxy?: HttpProxy | undefined }) {
    const warn = (message: string) =>
      log.warn({ event: 'tracing_problem', why: reasonIn(message) }, 'OpenTelemetry reports a problem')
    const silent = () => {}
    diag.setLogger(
      { error: warn, warn, info: silent, debug: silent, verbose: silent },
      { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
    )
    const Exporter = encoding === 'http/json' ? JsonExporter : ProtobufExporter
    const exporter = new Exporter(proxy && { httpAgentOptions: (protocol: string) => proxyAgent(proxy, protocol) })
    this.#provider = new BasicTracerProvider({
      resource: resourceOf(version),
      spanProcessors: [new BatchSpanProcessor(exporter)],
    })
    const tracer = this.#provider.getTracer('mcp-bridge', version)
    this.tracer = {
      begin: (parent, moment) =>
        // The monotonic clock and the system clock drift apart, so the offset is determined for each call.
        new CallSpan(tracer, SpanKind.SERVER, parent && readContext(parent), Date.now() - performance.now(), moment),
    }
  }

  /** Exports what is pending, within a few seconds. Never rejects. */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    await within(
      this.#provider.shutdown().catch(() => {}),
      CLOSE_WITHIN,
    )
  }
}

/** A span, and what is needed to start another within it. */
class CallSpan implements Span {
  readonly #tracer: OtelTracer
  readonly #span: OtelSpan
  readonly #kind: SpanKind
  /** Milliseconds from `performance.now()` to the time of day. */
  readonly #offset: number

  constructor(tracer: OtelTracer, kind: SpanKind, parent: SpanContext | undefined, offset: number, moment: number) {
    this.#tracer = tracer
    this.#kind = kind
    this.#offset = offset
    const around = parent ? trace.setSpanContext(ROOT_CONTEXT, parent) : ROOT_CONTEXT
    this.#span = tracer.startSpan('call', { kind, startTime: offset + moment }, around)
  }

  get context(): TraceContext {
    const { traceId, spanId, traceFlags, traceState } = this.#span.spanContext()
    const sampled = (traceFlags & TraceFlags.SAMPLED) === 0 ? '00' : '01'
    return { traceparent: `00-${traceId}-${spanId}-${sampled}`, tracestate: traceState?.serialize() || undefined }
  }

  get ids(): Span['ids'] {
    const { traceId, spanId } = this.#span.spanContext()
    return { trace_id: traceId, span_id: spanId }
  }

  within(moment: number): Span {
    return new CallSpan(this.#tracer, SpanKind.CLIENT, this.#span.spanContext(), this.#offset, moment)
  }

  end(fields: Fields): void {
    // Spans that are not sampled need no attributes.
    if (!this.#span.isRecording()) return
    this.#span.updateName(nameOf(fields))
    this.#span.setAttributes(attributesOf(fields, this.#kind === SpanKind.SERVER ? 'client' : 'server'))
    const error = errorOf(fields)
    if (error) {
      this.#span.setAttribute('error.type', error)
      this.#span.setStatus({ code: SpanStatusCode.ERROR, ...textOf('message', fields['why']) })
    }
    this.#span.end(this.#offset + performance.now())
  }
}

/** The reason in a message of OpenTelemetry. Errors are JSON with many details. */
function reasonIn(text: string): string {
  const message = text.startsWith('{') ? (JSON.parse(text) as { message?: string }).message : text
  return (message ?? text).slice(0, MAX_PROBLEM)
}

/** The client's span; undefined if it is invalid: then a trace starts here (W3C Trace Context, 4.3). */
function readContext({ traceparent, tracestate }: TraceContext): SpanContext | undefined {
  const [, version, traceId = '', spanId = '', flags = '', more] = TRACEPARENT.exec(traceparent) ?? []
  if (version === '00' && more !== undefined) return undefined
  const context: SpanContext = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true }
  if (tracestate !== undefined) context.traceState = createTraceState(tracestate)
  return isSpanContextValid(context) ? context : undefined
}

/**
 * The method, followed by the name of a tool or prompt that the server has listed. Unknown methods get a fixed name: their
 * number is unlimited.
 */
function nameOf({ method, target }: Fields): string {
  const name = String(method)
  if (!Object.hasOwn(methods, name) && !NOTIFICATIONS.has(name)) return '_OTHER'
  return typeof target === 'string' ? `${name} ${target}` : name
}

/** The attributes of a call, seen from the side of `peer`. */
function attributesOf(fields: Fields, peer: 'client' | 'server'): Attributes {
  const { method, name, outcome, code } = fields
  const transport = fields[`${peer}Transport`]
  const revision = fields[`${peer}Revision`] ?? (fields[`${peer}Era`] === 'modern' ? NEWEST_MODERN : undefined)
  return {
    'mcp.method.name': String(method),
    ...textOf('mcp.protocol.version', revision),
    ...(method === CALL_TOOL && { 'gen_ai.operation.name': 'execute_tool', ...textOf('gen_ai.tool.name', name) }),
    ...(method === 'prompts/get' && textOf('gen_ai.prompt.name', name)),
    ...(String(method).startsWith('resources/') && textOf('mcp.resource.uri', name)),
    ...(transport !== undefined && { 'network.transport': transport === 'stdio' ? 'pipe' : 'tcp' }),
    ...(transport !== undefined && transport !== 'stdio' && { 'network.protocol.name': 'http' }),
    ...(typeof code === 'number' && { 'rpc.response.status_code': String(code) }),
    'mcp_bridge.outcome': String(outcome),
    ...textOf('mcp_bridge.server', fields['server'] || undefined),
    ...textOf('mcp_bridge.group', fields['group']),
    ...textOf('mcp_bridge.missing', fields['missing']),
    ...textOf('mcp_bridge.client_era', fields['clientEra']),
    ...textOf('mcp_bridge.server_era', fields['serverEra']),
    ...textOf('mcp_bridge.fault', fields['fault']),
    ...textOf('mcp_bridge.blame', fields['blame']),
  }
}

function errorOf({ code, outcome }: Fields): string | undefined {
  if (typeof code === 'number') return String(code)
  return outcome === 'tool_error' ? outcome : undefined
}

function textOf(key: string, text: unknown): Record<string, string> {
  return typeof text === 'string' ? { [key]: text } : {}
}
