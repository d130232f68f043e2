/** Records one call of a client: its start, its messages with the client, and its end. */

import type { Notification, Request, Response } from '../../base/rpc/message.js'
import type { Wire } from '../../base/rpc/source.js'
import { type Json, raw } from '../../base/rpc/splice.js'
import { shownPrincipal } from '../../base/texts/principal.js'
import { isFailure } from '../../mcp/ports/outcome.js'
import {
  type CallEnd,
  type CallFields,
  type CallRecorder,
  type RecordedHeaders,
  UNRECORDED,
  type Whose,
} from '../../mcp/ports/recorder.js'
import type { Answers, Final } from '../../mcp/protocol/call.js'
import type { MessageOrigin } from '../../mcp/protocol/encoded.js'
import { NEWEST_MODERN } from '../../mcp/protocol/eras.js'
import type { Calls } from './calls.js'
import type { CallTrace, Side } from './events.js'
import { fillIn, type MessageTrace, recordReceived, recordSent, TOWARDS, traceOf } from './message.js'

const NO_HEADERS = {}

/** A call that is recorded, unless it exceeds the rate. */
export class RecordedCall implements CallRecorder {
  number: number
  readonly #calls: Calls
  readonly #fields: Readonly<CallFields>
  readonly #started: number
  readonly #server: string
  readonly #principal: string
  #session: string | undefined
  /** The name that the client declares. */
  #client: string | undefined
  /** The tool, prompt or resource that the request names. */
  #name: unknown
  /** The id of the client's message. */
  #messageId: string | number | undefined
  /** `performance.now()` of the answer. */
  #answeredAt: number | undefined

  /** `started` is the `performance.now()` of the call. */
  constructor(calls: Calls, server: string, fields: Readonly<CallFields>, whose: Whose, started: number) {
    this.number = calls.numbers.next(fields.method, started)
    this.#calls = calls
    this.#fields = fields
    this.#started = started
    this.#server = server
    this.#principal = shownPrincipal(whose.principal)
    this.#session = whose.session
  }

  continues(answers: Answers): void {
    if (this.number === UNRECORDED && this.#continued(answers) !== undefined)
      this.number = this.#calls.numbers.further()
  }

  began(request: Request, answers?: Answers, headers?: RecordedHeaders, clientInfo?: Json): void {
    if (this.number === UNRECORDED) return
    this.beganBy(this.#calls.clientOf(request, this.#session, clientInfo), answers)
    const trace = this.#message('in', this.#started)
    if (headers) trace.http = { headers }
    recordReceived(this.#calls.record, request, trace)
    this.#messageId = trace.id
  }

  /** Records the start of a call whose request is recorded separately. */
  beganBy(client?: string, answers?: Answers): void {
    this.#client = client
    this.#name = this.#fields['name']
    const trace = this.#trace('begun', this.#started)
    if (answers) trace.continues = this.#continued(answers)
    this.#calls.record(trace)
  }

  opened(session: string): void {
    this.#session = session
  }

  received(message: Request | Notification | Response): void {
    if (this.number !== UNRECORDED) recordReceived(this.#calls.record, message, this.#message('in', undefined))
  }

  sent(text: Wire, origin?: MessageOrigin, status?: number): void {
    if (this.number === UNRECORDED) return
    const trace = this.#message('out', undefined)
    if (fillIn(trace, text)) this.#recordSent(trace, text, origin, status)
  }

  answered(reply: Final, text: Wire | undefined, origin: MessageOrigin | undefined, status?: number): void {
    if (this.number === UNRECORDED) return
    if (reply.kind === 'input') {
      const { result } = reply
      const round = { state: raw(result, 'requestState'), entries: raw(result, 'inputRequests') }
      this.#calls.asks(this.number, this.#whose, round)
    }
    if (text === undefined) return
    this.#answeredAt = performance.now()
    const trace = this.#message('out', this.#answeredAt)
    trace.form = reply.kind === 'error' ? 'error' : 'result'
    trace.id = this.#messageId
    this.#recordSent(trace, text, origin, status)
  }

  ended(end: CallEnd): void {
    if (this.number !== UNRECORDED) return this.#end(end)
    if (isFailure(end.outcome)) {
      // A failed call is recorded even if it was skipped, but without its messages.
      this.number = this.#calls.numbers.further()
      this.beganBy()
      this.#end(end)
    } else this.#calls.numbers.skip()
  }

  left(why: string, upstreamMs: number | undefined): void {
    if (this.number !== UNRECORDED) this.#end({ outcome: 'cancelled', cancelled: 'bridge', why, upstreamMs })
  }

  #end({ outcome, cancelled, fault, code, why, upstreamMs }: CallEnd): void {
    const now = this.#answeredAt ?? performance.now()
    const trace = this.#trace('ended', now)
    trace.outcome = outcome
    trace.cancelled = cancelled
    trace.code = code
    trace.fault = fault?.fault
    trace.blame = fault?.blame
    trace.why = why
    trace.ms = now - this.#started
    trace.upstreamMs = upstreamMs
    this.#calls.record(trace)
  }

  /** The number of the call that a call with these answers continues; undefined if unknown. */
  #continued({ state, responses }: Answers): number | undefined {
    return this.#calls.continued(this.#whose, { state, entries: responses })
  }

  /** Server, principal, method and name: equal for a call and the calls that continue it. */
  get #whose(): string {
    const { method, name } = this.#fields
    return JSON.stringify([this.#server, this.#principal, method, this.#name ?? name])
  }

  /** A message of the call with its client. */
  #message(dir: MessageTrace['dir'], now: number | undefined): MessageTrace {
    return traceOf('client', dir, this.#server, this.number, this.#session, now)
  }

  #recordSent(trace: MessageTrace, text: Wire, origin: MessageOrigin | undefined, status: number | undefined): void {
    if (status !== undefined && status !== 200) trace.http = { status, headers: NO_HEADERS }
    recordSent(this.#calls.record, text, trace, origin, TOWARDS[this.#fields.clientEra])
  }

  /** A start or end event, with what is known about the call. */
  #trace(what: CallTrace['what'], now: number): CallTrace {
    const { clientEra, clientRevision, clientTransport, serverEra, serverRevision, serverTransport } = this.#fields
    const { method, name, server, trace_id: traceId } = this.#fields
    return {
      kind: 'call',
      what,
      server: this.#server,
      call: this.number,
      continues: undefined,
      session: this.#session,
      now,
      principal: this.#principal,
      client: {
        era: clientEra,
        revision: clientEra === 'modern' ? NEWEST_MODERN : (clientRevision as string | undefined),
        transport: clientTransport as Side['transport'],
        name: this.#client,
      },
      upstream: serverEra && {
        era: serverEra,
        // A legacy client in a session of a legacy server has agreed on its revision with the server itself.
        revision: serverEra === 'modern' ? NEWEST_MODERN : ((serverRevision ?? clientRevision) as string | undefined),
        transport: serverTransport as Side['transport'],
        name: undefined,
      },
      method,
      name: name as string | undefined,
      member: server,
      outcome: undefined,
      cancelled: undefined,
      code: undefined,
      fault: undefined,
      blame: undefined,
      why: undefined,
      ms: undefined,
      upstreamMs: undefined,
      trace: traceId as string | undefined,
    }
  }
}
