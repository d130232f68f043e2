/** Logs, counts and traces a call when it ends: one line, without secrets, header values or arguments. */

import { withoutCredentials } from '../base/credentials/credentials.js'
import { Fault } from '../base/fault/fault.js'
import { MAX_LOGGED_NAME } from '../base/limits/constants.js'
import type { LogEvent, LogFields } from '../base/log/events.js'
import type { Request } from '../base/rpc/message.js'
import type { Wire } from '../base/rpc/source.js'
import { EMPTY, objectIn, type Payload, stringUnder } from '../base/rpc/splice.js'
import { shownPrincipal } from '../base/texts/principal.js'
import { publicAddress } from '../base/texts/printable.js'
import type { Signal } from '../base/time/hang-up.js'
import type { CallEvent } from '../mcp/ports/events.js'
import { isFailure, type Outcome } from '../mcp/ports/outcome.js'
import type { CallEnd, CallFields, CallRecorder, Whose } from '../mcp/ports/recorder.js'
import type { CallLog, Final, UpstreamSpan } from '../mcp/protocol/call.js'
import type { MessageOrigin } from '../mcp/protocol/encoded.js'
import { CALL_TOOL, methodTraits } from '../mcp/protocol/methods.js'
import { type ReceivedTrace, type Span, type TraceContext, traceIn } from '../mcp/protocol/trace.js'
import { type Logger, type Telemetry, whoseOf } from './logger.js'
import { type AnsweredOutcome, endOf, type FailedCall, outcomeOf } from './outcome.js'

/** Faults that have been logged as the end of a call. */
const logged = new WeakSet<Fault>()

/** Whether a fault has been logged as the end of a call. */
export function wasLogged(fault: Fault): boolean {
  return logged.has(fault)
}

/**
 * The log line, the metrics event, the span and the record of one call. They are written when the call ends.
 */
export class CallLogEntry implements CallLog {
  /** Records the call; undefined without a recorder. */
  readonly recorder: CallRecorder | undefined
  readonly #logger: Logger
  readonly #principal: string | undefined
  readonly #started = performance.now()
  readonly #fields: CallFields
  #span: Span | undefined
  /** How often the call was sent to the server, and the milliseconds that this took in total. */
  #passages = 0
  #upstreamMs = 0
  /** Whether the call has been sent to the server. */
  #handed = false

  /**
   * Begins the span of the call, in the trace of the request's `_meta` or else of its headers. Without `whose`, the call is
   * neither recorded nor traced.
   */
  constructor(
    logger: Logger,
    fields: CallFields,
    whose?: Whose & { trace?: ReceivedTrace | undefined },
    request?: Pick<Request, 'method' | 'params'>,
  ) {
    this.#logger = logger
    this.#principal = whose?.principal
    // The client chooses the method, and its length.
    this.#fields =
      fields.method.length > MAX_LOGGED_NAME ? { ...fields, method: fields.method.slice(0, MAX_LOGGED_NAME) } : fields
    const { recorder, tracer } = logger.telemetry ?? {}
    this.recorder = whose && recorder?.call(this.#fields, whose, this.#started)
    const params = request && typeof request.params !== 'string' ? request.params : EMPTY
    const name = request && subject(request.method, params)
    if (name !== undefined) this.#fields['name'] = name
    if (!tracer || !whose) return
    try {
      this.#span = tracer.begin(parentOf(objectIn(params, '_meta') ?? EMPTY, whose.trace), this.#started)
    } catch (error) {
      // Nothing was sent to the server: a Fault says so.
      throw Fault.from(error)
    }
    Object.assign(this.#fields, this.#span.ids)
  }

  note(fields: Record<string, string | number | boolean>): void {
    Object.assign(this.#fields, fields)
  }

  /** Takes the answer to a request for a list, to learn the names in it. */
  listed(reply: Final): void {
    const { names, server } = this.#logger.telemetry ?? {}
    if (reply.kind === 'result' && server !== undefined) names?.learn(server, this.#fields.method, reply.result)
  }

  warn(fields: LogFields, message: string): void {
    this.#logger.warn(fields, message)
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

  /**
   * Why the call failed, by what was thrown: the fault states whether the server may have acted on the call. A fault that the
   * call was aborted with takes precedence. `otherwise`: why its client gave it up, if it has sent no notification.
   */
  failureOf(error: unknown, { aborted, reason }: Signal, otherwise: 'disconnected' | 'session'): FailedCall {
    const fault = Fault.from(reason instanceof Fault ? reason : error, this.#handed)
    if (!aborted || reason === fault) return { fault }
    if (typeof reason === 'string') return { fault, cancelled: 'notification' }
    return { fault: otherwise === 'session' ? sessionEnded(this.#handed) : fault, cancelled: otherwise }
  }

  /**
   * Ends the call with the server's reply: a result, an input request or an error. `text` is the sent answer, `origin` its
   * origin, and `status` its HTTP status, if it has one other than 200.
   */
  ended(reply: Final, text?: Wire, origin?: MessageOrigin, status?: number): void {
    this.recorder?.answered(reply, text, origin, status)
    this.#end(outcomeOf(reply), { code: reply.kind === 'error' ? reply.error.code : undefined })
  }

  /** Ends the call with an outcome. `text` is the answer, if it has not been recorded. */
  answered(outcome: AnsweredOutcome, text: Wire | undefined): void {
    if (text !== undefined) this.recorder?.sent(text)
    this.#end(outcome, {})
  }

  /** Ends the call without an answer of the server. `text` is the sent error, `status` its HTTP status, if it has one other than 200. */
  failed({ fault, cancelled }: FailedCall, text?: Wire, status?: number): void {
    if (cancelled) return this.#end('cancelled', { cancelled })
    logged.add(fault)
    this.#logger.noticed?.(fault)
    if (text !== undefined) this.recorder?.sent(text, undefined, status)
    this.#end('fault', { fault })
  }

  /** Ends this entry, because another replica answers and logs the call. */
  carried(owner: string): void {
    this.#logger.debug(this.#line({ replica: owner }, 'call_forwarded'), 'call forwarded to another replica')
    this.recorder?.left('Another replica answers this call', this.#upstreamTotal)
    this.#span?.end(this.#known({ outcome: 'carried' }))
  }

  #end(outcome: Outcome, end: Pick<CallEnd, 'cancelled' | 'code' | 'fault'>): void {
    const { calls = 'all', telemetry } = this.#logger
    const { code, fault } = end
    if (calls === 'all' || (calls === 'failed' && isFailure(outcome))) {
      if (fault) this.#logFault(fault)
      else if (this.#logger.isLevelEnabled('info')) this.#logger.info(this.#line({ outcome, code }), 'call')
    }
    this.recorder?.ended({
      outcome,
      cancelled: end.cancelled,
      fault,
      code: code ?? fault?.row.code,
      why: fault?.message,
      upstreamMs: this.#upstreamTotal,
    })
    if (!telemetry) return
    if (telemetry.observeCall) this.#count(telemetry, telemetry.observeCall, outcome, fault)
    this.#span?.end(this.#known(fault ? endOf(fault) : { outcome, code }))
  }

  #logFault(fault: Fault): void {
    const { fault: name, blame, message, said, cause, row } = fault
    const line = this.#line({ outcome: 'fault', fault: name, blame, why: withoutCredentials(message) })
    if (blame === 'caller' || name === 'draining') this.#logger.info(line, 'call')
    // A full bound deserves a warning, but is not an error of the bridge.
    else if (name === 'overloaded' || name === 'answerLost') this.#logger.warn(line, 'call')
    else if (blame === 'upstream') {
      const more = said !== undefined && { said: withoutCredentials(said) }
      this.#logger.warn({ ...line, ...this.#logger.advise?.(fault), ...more }, 'call')
    } else {
      // The place where a fault was made tells something only if it is a mistake of the bridge.
      const err = cause ?? (row.reason === 'internal_error' ? fault : undefined)
      this.#logger.error(err === undefined ? line : { ...line, err }, 'call')
    }
  }

  #line(end: Record<string, unknown>, event: LogEvent = 'call'): LogFields {
    const ms = Math.round(10 * (performance.now() - this.#started)) / 10
    const upstreamMs = this.#passages > 0 ? Math.round(10 * this.#upstreamMs) / 10 : undefined
    const principal = this.#principal !== undefined && { principal: shownPrincipal(this.#principal) }
    return { event, ...principal, ...this.#fields, ...end, ms, upstreamMs }
  }

  #count(
    { server: own, isGroup, eraOf, names }: Telemetry,
    observe: (event: CallEvent) => void,
    outcome: Outcome,
    fault: Fault | undefined,
  ): void {
    // In a group, `server` is the one that the call was for.
    const { clientEra, method, server = isGroup ? '' : own } = this.#fields
    // A call that was refused has not come as far as its server.
    const serverEra = this.#fields.serverEra ?? eraOf?.(server)
    const tool = names && method === CALL_TOOL ? this.#listedName : undefined
    observe({
      kind: 'call',
      server,
      ...(isGroup && { group: own }),
      clientEra,
      serverEra,
      method,
      ...(tool !== undefined && { tool }),
      outcome,
      blame: fault?.blame,
      ms: performance.now() - this.#started,
      // With several passages, the total includes the time of the client's answers, so the bridge's own is unknown.
      upstreamMs: this.#passages === 1 ? this.#upstreamMs : undefined,
    })
  }

  /** Milliseconds that the server has taken; undefined if the call was not sent to it. */
  get #upstreamTotal(): number | undefined {
    return this.#passages > 0 ? this.#upstreamMs : undefined
  }

  /** The name of the tool or prompt at its server, if the server has listed it. Clients may invent others. */
  get #listedName(): string | undefined {
    const { telemetry } = this.#logger
    const { method, server, name, original = name } = this.#fields
    if (!telemetry?.names || typeof original !== 'string') return undefined
    return telemetry.names.has(server ?? telemetry.server, method, original) ? original : undefined
  }

  #known(end: object): Record<string, unknown> {
    const { telemetry } = this.#logger
    const target = this.#listedName === undefined ? undefined : this.#fields['name']
    return { ...(telemetry && whoseOf(telemetry)), ...this.#fields, ...end, target }
  }
}

/** The subject of a call for the log: the name of its tool or prompt, or its URI without query and user. */
function subject(method: string, params: Payload): string | undefined {
  const { named } = methodTraits(method)
  if (named === undefined || named === 'taskId') return undefined
  const name = stringUnder(params, named)
  return (named === 'uri' && name !== undefined ? publicAddress(name) : name)?.slice(0, MAX_LOGGED_NAME)
}

/** What a client hears of a call when its session has ended before the answer. */
function sessionEnded(handedOver: boolean): Fault {
  return handedOver
    ? new Fault('upstreamClosed', 'The session has ended; the server may have executed the call')
    : new Fault('sessionNotFound', 'The session has ended: call initialize to open another one')
}

/** The client's span, by `_meta` or else by the headers. */
function parentOf(meta: Payload, received: ReceivedTrace | undefined): TraceContext | undefined {
  const { traceparent, tracestate } = received ?? {}
  return traceIn(meta) ?? (traceparent === undefined ? undefined : { traceparent, tracestate })
}
