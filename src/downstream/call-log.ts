/** Logs, counts and traces a call when it ends: one line, without secrets, header values or arguments. */

import { withoutCredentials } from '../credentials.js'
import type { LogEvent, LogFields } from '../logging.js'
import { type Cancelled, isFailure, type Outcome, UNRECORDED } from '../ports/seen.js'
import { publicAddress, shownPrincipal } from '../printable.js'
import type { Answers, CallLog, Final, UpstreamSpan } from '../protocol/call.js'
import { Fault } from '../protocol/fault.js'
import { methodTraits } from '../protocol/methods.js'
import type { Made } from '../protocol/rules.js'
import { type Span, type TraceContext, traceIn } from '../protocol/trace.js'
import type { Wire } from '../rpc/source.js'
import { type Payload, value } from '../rpc/splice.js'
import { type Logger, whoseOf } from './logger.js'
import { type Answered, endOf, outcomeOf } from './outcome.js'
import { type CallFields, WatchedCall, type Whose } from './watched-call.js'

const MAX_NAME = 120
/** Faults that have been logged as the end of a call. */
const logged = new WeakSet<Fault>()

/** Whether a fault has been logged as the end of a call. */
export function wasLogged(fault: Fault): boolean {
  return logged.has(fault)
}

/** The log line, the metrics event and the span of one call. All are written once, when the call ends. */
export class CallLogEntry implements CallLog {
  call: number | undefined
  /** What the inspector is told of the call; undefined without an inspector, and if the call is not recorded. */
  watched: WatchedCall | undefined
  readonly #logger: Logger
  readonly #whose: Whose | undefined
  readonly #started = performance.now()
  readonly #fields: CallFields
  #span: Span | undefined
  /** How often the server has answered the call or given it up, and the milliseconds that this took in total. */
  #passages = 0
  #upstreamMs = 0
  /** Whether the call has been sent to the server. */
  #handed = false
  /** Why the call was cancelled, for the inspector. */
  #cancelled: Cancelled | undefined

  /** Without `whose` the inspector does not hear of the call. */
  constructor(logger: Logger, fields: CallFields, whose?: Whose) {
    this.#logger = logger
    this.#whose = whose
    // The client chooses the method, and its length.
    this.#fields = fields.method.length > MAX_NAME ? { ...fields, method: fields.method.slice(0, MAX_NAME) } : fields
    this.call = this.#numberFor(whose)
    this.watched = this.call ? this.#watchedAs(this.call) : undefined
  }

  note(fields: Record<string, string | number | boolean>): void {
    Object.assign(this.#fields, fields)
  }

  /** The call brings these answers. If it continues a call that is recorded, it is recorded, too. */
  continues(answers: Answers | undefined): void {
    const { telemetry } = this.#logger
    if (this.call !== UNRECORDED || !answers || !telemetry?.watch) return
    const watched = this.#watchedAs(telemetry.watch.numbers.further())
    if (watched?.continues(answers) === undefined) return
    this.call = watched.number
    this.watched = watched
  }

  /** The call has asked the server for a list, and this is its answer. */
  listed(reply: Final): void {
    const { names, server } = this.#logger.telemetry ?? {}
    if (reply.kind === 'result' && server !== undefined) names?.learn(server, this.#fields.method, reply.result)
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

  /**
   * Ends the call with the server's reply: a result, an input request or an error. `text` is the answer as sent, `made`
   * what it was made of, and `status` its HTTP status, if it has one that is not 200.
   */
  ended(reply: Final, text?: Wire, made?: Made, status?: number): void {
    this.watched?.answered(reply, text, made, status)
    this.answered(outcomeOf(reply), undefined, reply.kind === 'error' ? reply.error.code : undefined)
  }

  /** Ends the call with an outcome. `text` is the answer, if the inspector has not been told. */
  answered(outcome: Answered, text: Wire | undefined, code?: number): void {
    if (text !== undefined) this.watched?.said(text)
    if (this.#logs(outcome) && this.#logger.isLevelEnabled('info'))
      this.#logger.info(this.#line({ outcome, code }), 'call')
    this.#tell(outcome, undefined, this.#span && { code }, code)
  }

  /** Ends the call without an answer, because the client cancelled it, disconnected or ended its session. */
  cancelled(why: Cancelled): void {
    if (this.#logs('cancelled')) this.#logger.info(this.#line({ outcome: 'cancelled' }), 'call')
    this.#cancelled = why
    this.#tell('cancelled')
  }

  /** Ends the call here, because another replica answers and logs it. */
  carried(owner: string): void {
    this.#logger.debug(this.#line({ replica: owner }, 'call_forwarded'), 'call forwarded to another replica')
    this.#left('Another replica answers this call')
    this.#span?.end(this.#known({ outcome: 'carried' }))
  }

  /**
   * Ends this entry, because the server has changed its era. The call is answered in the other era, with another entry.
   */
  moved(): void {
    this.#logger.debug(this.#line({}, 'call_rerouted'), 'call rerouted: the server changed its protocol era')
    this.#left('The server has changed its protocol era: the call is answered in the other era, as another call')
    this.#span?.end(this.#known({ outcome: 'moved' }))
  }

  /** Ends the call with a fault. `text` is the answer as sent, `status` its HTTP status, if it has one that is not 200. */
  failed(fault: Fault, text?: Wire, status?: number): void {
    logged.add(fault)
    this.#logger.noticed?.(fault)
    if (text !== undefined) this.watched?.said(text, undefined, status)
    if (this.#logs('fault')) this.#logFault(fault)
    this.#tell('fault', fault, this.#span && endOf(fault))
  }

  #logs(outcome: Outcome): boolean {
    const { calls = 'all' } = this.#logger
    return calls === 'all' || (calls === 'failed' && isFailure(outcome))
  }

  #logFault(fault: Fault): void {
    const line = this.#line({
      outcome: 'fault',
      fault: fault.fault,
      blame: fault.blame,
      why: withoutCredentials(fault.message),
    })
    if (fault.blame === 'caller') this.#logger.info(line, 'call')
    // A full bound deserves a warning, but it is no error of the bridge.
    else if (fault.fault === 'overloaded' || fault.fault === 'answerLost') this.#logger.warn(line, 'call')
    else if (fault.blame === 'upstream')
      this.#logger.warn(
        { ...line, ...stderrOf(fault), ...(fault.said !== undefined && { said: withoutCredentials(fault.said) }) },
        'call',
      )
    else this.#logger.error({ ...line, err: fault.cause ?? fault }, 'call')
  }

  #line(end: Record<string, unknown>, event: LogEvent = 'call'): LogFields {
    const upstreamMs = this.#passages > 0 ? tenths(this.#upstreamMs) : undefined
    const principal = this.#whose && { principal: shownPrincipal(this.#whose.principal) }
    return { event, ...principal, ...this.#fields, ...end, ms: tenths(performance.now() - this.#started), upstreamMs }
  }

  #numberFor(whose: Whose | undefined): number | undefined {
    if (whose?.partOf !== undefined) return UNRECORDED
    return whose && this.#logger.telemetry?.watch?.numbers.next(this.#fields.method, this.#started)
  }

  #watchedAs(number: number): WatchedCall | undefined {
    const { telemetry } = this.#logger
    if (!telemetry?.watch || !this.#whose) return undefined
    return new WatchedCall(number, telemetry.server, telemetry.watch, this.#fields, this.#whose, this.#started)
  }

  /** Ends a call that is not recorded. One that has failed is told all the same, without its messages. */
  #unrecorded(outcome: Outcome): WatchedCall | undefined {
    const { telemetry } = this.#logger
    if (this.call !== UNRECORDED || !telemetry?.watch) return undefined
    const { numbers } = telemetry.watch
    if (isFailure(outcome)) {
      const failed = this.#watchedAs(numbers.further())
      failed?.begunBy(undefined, undefined)
      return failed
    }
    if (this.#whose?.partOf === undefined) numbers.skip()
    return undefined
  }

  #tell(outcome: Outcome, fault?: Fault, end?: object, code?: number): void {
    const { telemetry } = this.#logger
    if (!telemetry) return
    const watched = this.watched ?? this.#unrecorded(outcome)
    watched?.ended({
      outcome,
      cancelled: this.#cancelled,
      fault,
      code: code ?? fault?.row.code,
      why: fault?.message,
      upstreamMs: this.#upstreamTotal,
    })
    const { clientEra, serverEra, method, relayed = false, server } = this.#fields
    const tool = method === 'tools/call' ? this.#listedName : undefined
    telemetry.observeCall?.({
      kind: 'call',
      ...whoseOf(telemetry),
      // The server of a group that the call was for.
      ...(server !== undefined && { server }),
      clientEra,
      serverEra,
      method,
      ...(tool !== undefined && { tool }),
      outcome,
      blame: fault?.blame,
      ms: performance.now() - this.#started,
      // With several passages the client was asked in between, so the bridge's own time cannot be computed.
      upstreamMs: this.#passages === 1 ? this.#upstreamMs : undefined,
      relayed,
    })
    this.#span?.end(this.#known({ outcome, ...end }))
  }

  /** Tells the inspector that the call ends here without an answer. */
  #left(why: string): void {
    this.watched?.ended({ outcome: 'cancelled', cancelled: 'bridge', why, upstreamMs: this.#upstreamTotal })
  }

  /** Milliseconds that the server has taken; undefined if it did not get the call. */
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
export function subject(method: string, params: Payload): { name: string } | undefined {
  const { named } = methodTraits(method)
  const name = named === undefined ? undefined : value(params, named)
  return typeof name === 'string' ? namedSubject(method, name) : undefined
}

/** The same, if the name is known. */
export function namedSubject(method: string, name: string): { name: string } | undefined {
  const { named } = methodTraits(method)
  if (named === undefined || named === 'taskId') return undefined
  return { name: (named === 'uri' ? publicAddress(name) : name).slice(0, MAX_NAME) }
}

function stderrOf({ cause }: Fault): { stderr?: readonly string[] } {
  const lines = cause instanceof Error && 'stderr' in cause ? (cause.stderr as readonly string[]) : []
  return lines.length === 0 ? {} : { stderr: lines.map(withoutCredentials) }
}

function tenths(milliseconds: number): number {
  return Math.round(milliseconds * 10) / 10
}
