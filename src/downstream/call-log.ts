/** Logs, counts and traces a call when it ends: one line, without secrets, header values or arguments. */

import type { Log, LogEvent, LogFields } from '../logging.js'
import type { BridgeEvent, Observe } from '../ports/events.js'
import type { CallLog, Reply, UpstreamSpan } from '../protocol/call.js'
import type { Era } from '../protocol/eras.js'
import { Fault } from '../protocol/fault.js'
import { methodTraits } from '../protocol/methods.js'
import { type Span, type TraceContext, type Tracer, traceIn } from '../protocol/trace.js'
import type { Response } from '../rpc/message.js'
import { EMPTY, type Payload, payloadAt, raw, value } from '../rpc/splice.js'

/** The log of a server. */
export interface Logger extends Pick<Log, 'isLevelEnabled' | 'debug' | 'info' | 'warn' | 'error'> {
  /** Metrics and traces; none by default. */
  readonly telemetry?: Telemetry | undefined
}

/** Where events and spans of a server go. */
export interface Telemetry {
  /** The name of the server in the configuration. */
  server: string
  observe?: Observe | undefined
  tracer?: Tracer | undefined
}

/** What is known about a call when it comes in. `note` adds fields. */
export interface CallFields {
  clientEra: Era
  method: string
  serverEra?: Era
  relayed?: true
  [further: string]: unknown
}

/** The last reply of a call. */
export type Final = Exclude<Reply, { kind: 'notification' }>
type Answered = 'ok' | 'tool_error' | 'asks' | 'error'

const MAX_NAME = 120
/** Faults that have been logged as the end of a call. */
const logged = new WeakSet<Fault>()

/** Whether a fault has been logged as the end of a call. */
export function wasLogged(fault: Fault): boolean {
  return logged.has(fault)
}

/** The log line, the metrics event and the span of one call. All are written once, when the call ends. */
export class CallLogEntry implements CallLog {
  readonly #logger: Logger
  readonly #started = performance.now()
  readonly #fields: CallFields
  #span: Span | undefined
  /** How often the server has answered the call or given it up, and the milliseconds that this took in total. */
  #passages = 0
  #upstreamMs = 0
  /** Whether the call has been sent to the server. */
  #handed = false

  constructor(logger: Logger, fields: CallFields) {
    this.#logger = logger
    // The client chooses the method, and its length.
    this.#fields = fields.method.length > MAX_NAME ? { ...fields, method: fields.method.slice(0, MAX_NAME) } : fields
  }

  note(fields: Record<string, string | number | boolean>): void {
    Object.assign(this.#fields, fields)
  }

  warn(fields: LogFields, message: string): void {
    this.#logger.warn(fields, message)
  }

  /** Begins the call's span, in the trace of its `_meta`, or else of its headers. */
  follow(meta: Payload, headers: TraceContext | undefined): void {
    const tracer = this.#logger.telemetry?.tracer
    if (!tracer) return
    this.#span = tracer.begin(traceIn(meta) ?? headers, this.#started)
    Object.assign(this.#fields, this.#span.ids)
  }

  handedOver(): UpstreamSpan {
    this.#handed = true
    const began = performance.now()
    const span = this.#span?.within(began)
    let open = true
    return {
      trace: span?.context,
      over: (last) => {
        if (!open) return
        open = false
        this.#passages++
        this.#upstreamMs += performance.now() - began
        span?.end(this.#known(endOf(last)))
      },
    }
  }

  /** Turns anything thrown during the call into a Fault, which states whether the server may have acted on the call. */
  faultOf(error: unknown): Fault {
    return Fault.from(error, this.#handed)
  }

  /** Ends the call with the server's reply: a result, an input request or an error. */
  ended(reply: Final): void {
    this.answered(outcomeOf(reply), reply.kind === 'error' ? reply.error.code : undefined)
  }

  /** Ends the call with an outcome. */
  answered(outcome: Answered, code?: number): void {
    if (this.#logger.isLevelEnabled('info')) this.#logger.info(this.#line({ outcome, code }), 'call')
    this.#tell(outcome, undefined, this.#span && { code })
  }

  /** Ends the call without an answer, because the client cancelled it or disconnected. */
  cancelled(): void {
    this.#logger.info(this.#line({ outcome: 'cancelled' }), 'call')
    this.#tell('cancelled')
  }

  /** Ends the call here, because another replica answers and logs it. */
  carried(owner: string): void {
    this.#logger.debug(this.#line({ replica: owner }, 'call_forwarded'), 'call forwarded to another replica')
    this.#span?.end(this.#known({ outcome: 'carried' }))
  }

  /**
   * Ends this entry, because the server has changed its era. The call is answered in the other era, with another entry.
   */
  moved(): void {
    this.#logger.debug(this.#line({}, 'call_rerouted'), 'call rerouted: the server changed its protocol era')
    this.#span?.end(this.#known({ outcome: 'moved' }))
  }

  /** Ends the call with a fault. */
  failed(fault: Fault): void {
    logged.add(fault)
    const line = this.#line({ outcome: 'fault', fault: fault.fault, blame: fault.blame, why: fault.message })
    if (fault.blame === 'caller') this.#logger.info(line, 'call')
    // A full bound deserves a warning, but it is no error of the bridge.
    else if (fault.fault === 'overloaded' || fault.fault === 'answerLost') this.#logger.warn(line, 'call')
    else if (fault.blame === 'upstream')
      this.#logger.warn({ ...line, ...stderrOf(fault), ...(fault.said !== undefined && { said: fault.said }) }, 'call')
    else this.#logger.error({ ...line, err: fault.cause ?? fault }, 'call')
    this.#tell('fault', fault, endOf(fault))
  }

  #line(end: Record<string, unknown>, event: LogEvent = 'call'): LogFields {
    const upstreamMs = this.#passages > 0 ? tenths(this.#upstreamMs) : undefined
    return { event, ...this.#fields, ...end, ms: tenths(performance.now() - this.#started), upstreamMs }
  }

  #tell(outcome: Answered | 'cancelled' | 'fault', fault?: Fault, end?: object): void {
    const { telemetry } = this.#logger
    if (!telemetry) return
    const { clientEra, serverEra, method, relayed = false } = this.#fields
    telemetry.observe?.({
      kind: 'call',
      server: telemetry.server,
      clientEra,
      serverEra,
      method,
      outcome,
      blame: fault?.blame,
      ms: performance.now() - this.#started,
      // With several passages the client was asked in between, so the bridge's own time cannot be computed.
      upstreamMs: this.#passages === 1 ? this.#upstreamMs : undefined,
      relayed,
    })
    this.#span?.end(this.#known({ outcome, ...end }))
  }

  #known(end: object): Record<string, unknown> {
    return { ...this.#fields, server: this.#logger.telemetry?.server, ...end }
  }
}

type Unnamed<E> = E extends BridgeEvent ? Omit<E, 'server'> : never

/** Reports an event of the server to the metrics, if there are any. */
export function tell({ telemetry }: Logger, event: Unnamed<BridgeEvent>): void {
  telemetry?.observe?.({ ...event, server: telemetry.server })
}

/** The subject of a call for the log: the name of its tool or prompt, or its URI without query and user. */
export function subject(method: string, params: Payload): { name: string } | undefined {
  const { named } = methodTraits(method)
  const name = named === undefined || named === 'taskId' ? undefined : value(params, named)
  if (typeof name !== 'string') return undefined
  const safe = named === 'uri' ? name.replace(/[?#].*$/s, '').replace(/\/\/[^/]*@/, '//') : name
  return { name: safe.slice(0, MAX_NAME) }
}

/** The fields of a span at its end. Of a server's error they have only the code, not the text. */
function endOf(last: Reply | Fault | undefined): Record<string, unknown> {
  if (last === undefined) return { outcome: 'cancelled' }
  if (last instanceof Fault) {
    const { fault, blame, message: why, row } = last
    return { outcome: 'fault', fault, blame, why, code: row.code }
  }
  if (last.kind === 'notification') return { outcome: 'ok' }
  return { outcome: outcomeOf(last), ...(last.kind === 'error' && { code: last.error.code }) }
}

/** The outcome of a reply. A tool result with `isError` is `tool_error`. */
function outcomeOf(reply: Final): Answered {
  if (reply.kind === 'error') return 'error'
  if (reply.kind === 'input') return 'asks'
  return raw(reply.result, 'isError') === 'true' ? 'tool_error' : 'ok'
}

/** The reply in a JSON-RPC response that passes unchanged, as far as the log needs it. */
export function replyIn({ outcome: { kind, source, member } }: Response): Final {
  const payload = payloadAt(source, member) ?? EMPTY
  if (kind === 'result') {
    const asks = raw(payload, 'resultType') === '"input_required"'
    return { kind: asks ? 'input' : 'result', result: payload }
  }
  const code = value(payload, 'code')
  return { kind: 'error', error: { code: typeof code === 'number' ? code : -32603, message: '' } }
}

function stderrOf({ cause }: Fault): { stderr?: readonly string[] } {
  const lines = cause instanceof Error && 'stderr' in cause ? (cause.stderr as readonly string[]) : []
  return lines.length === 0 ? {} : { stderr: lines }
}

function tenths(milliseconds: number): number {
  return Math.round(milliseconds * 10) / 10
}
