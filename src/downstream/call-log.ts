/** What is told of a call when it is over: one line, without secrets, header values or arguments; and what is counted. */

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
  /** Who else is told; nobody by default. */
  readonly telemetry?: Telemetry | undefined
}

/** Who counts and follows what happens with a server. */
export interface Telemetry {
  /** The name of the server in the configuration. */
  server: string
  observe?: Observe | undefined
  tracer?: Tracer | undefined
}

/** What is known of a call when it comes in. More is noted on its way. */
export interface CallFields {
  clientEra: Era
  method: string
  serverEra?: Era
  relayed?: true
  [further: string]: unknown
}

/** What a call ends with. */
export type Final = Exclude<Reply, { kind: 'notification' }>
type Answered = 'ok' | 'tool_error' | 'asks' | 'error'

const MAX_NAME = 120
/** Faults that have been told of as the end of a call. */
const told = new WeakSet<Fault>()

/** Whether a fault has been told of as the end of a call already. */
export function wasTold(fault: Fault): boolean {
  return told.has(fault)
}

export class CallLogEntry implements CallLog {
  readonly #logger: Logger
  readonly #started = performance.now()
  readonly #fields: CallFields
  #span: Span | undefined
  /** How often the call was given to the server, and the milliseconds that it was there. */
  #passages = 0
  #upstreamMs = 0
  #handed = false

  constructor(logger: Logger, fields: CallFields) {
    this.#logger = logger
    // A client may call anything, of any length.
    this.#fields = fields.method.length > MAX_NAME ? { ...fields, method: fields.method.slice(0, MAX_NAME) } : fields
  }

  note(fields: Record<string, string | number | boolean>): void {
    Object.assign(this.#fields, fields)
  }

  warn(fields: LogFields, message: string): void {
    this.#logger.warn(fields, message)
  }

  /** Follows the call from where its client says that it is in a trace: in its `_meta`, or else in headers. */
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

  /** Anything thrown while the call was answered, as a Fault that says whether the server may have acted on the call. */
  faultOf(error: unknown): Fault {
    return Fault.from(error, this.#handed)
  }

  /** The server has answered, with a result, a question or an error of its own. */
  ended(reply: Final): void {
    this.answered(outcomeOf(reply), reply.kind === 'error' ? reply.error.code : undefined)
  }

  answered(outcome: Answered, code?: number): void {
    if (this.#logger.isLevelEnabled('info')) this.#logger.info(this.#line({ outcome, code }), 'call')
    this.#tell(outcome, undefined, this.#span && { code })
  }

  /** Nobody waits any more. */
  cancelled(): void {
    this.#logger.info(this.#line({ outcome: 'cancelled' }), 'call')
    this.#tell('cancelled')
  }

  /** Another replica answers, and tells of it. */
  carried(owner: string): void {
    this.#logger.debug(this.#line({ replica: owner }, 'call_forwarded'), 'call forwarded to another replica')
    this.#span?.end(this.#known({ outcome: 'carried' }))
  }

  /** The server has done nothing, because it has changed: the call is answered in another way, and told of there. */
  moved(): void {
    this.#logger.debug(this.#line({}, 'call_rerouted'), 'call rerouted: the server changed its protocol era')
    this.#span?.end(this.#known({ outcome: 'moved' }))
  }

  failed(fault: Fault): void {
    told.add(fault)
    const line = this.#line({ outcome: 'fault', fault: fault.fault, blame: fault.blame, why: fault.message })
    if (fault.blame === 'caller') this.#logger.info(line, 'call')
    // That there is no room is worth knowing, and nothing is broken.
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
      // Between two passages the client was asked something: that time is nobody's here.
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

/** Tells whoever counts of something that happened with the server, if anybody does. */
export function tell({ telemetry }: Logger, event: Unnamed<BridgeEvent>): void {
  telemetry?.observe?.({ ...event, server: telemetry.server })
}

/** What a call is about, fit for a log: the name of the tool or prompt, the address of the resource without its query. */
export function subject(method: string, params: Payload): { name: string } | undefined {
  const { named } = methodTraits(method)
  const name = named === undefined || named === 'taskId' ? undefined : value(params, named)
  if (typeof name !== 'string') return undefined
  const shown = named === 'uri' ? name.replace(/[?#].*$/s, '').replace(/\/\/[^/]*@/, '//') : name
  return { name: shown.slice(0, MAX_NAME) }
}

/** How a span ends with this: of what a server said, no word but its code. */
function endOf(last: Reply | Fault | undefined): Record<string, unknown> {
  if (last === undefined) return { outcome: 'cancelled' }
  if (last instanceof Fault) {
    const { fault, blame, message: why, row } = last
    return { outcome: 'fault', fault, blame, why, code: row.code }
  }
  if (last.kind === 'notification') return { outcome: 'ok' }
  return { outcome: outcomeOf(last), ...(last.kind === 'error' && { code: last.error.code }) }
}

/** In one word, how a call has ended: that of a tool that says of itself that it has failed is no success. */
function outcomeOf(reply: Final): Answered {
  if (reply.kind === 'error') return 'error'
  if (reply.kind === 'input') return 'asks'
  return raw(reply.result, 'isError') === 'true' ? 'tool_error' : 'ok'
}

/** What a JSON-RPC response that passes as it is says, as far as it is told of. */
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
