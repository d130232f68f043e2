/** What the inspector is told of one call: that it has begun, its messages with the client, and how it has ended. */

import type { Fault } from '../fault/fault.js'
import { type MessageSight, sightOf, tellArrived, tellSent } from './message.js'
import type { Cancelled, Outcome, Side, Sight } from './events.js'
import type { Answers, Final } from '../protocol/call.js'
import { type Era, NEWEST_MODERN } from '../protocol/eras.js'
import type { Made } from './rules.js'
import type { Notification, Request, Response } from '../rpc/message.js'
import type { Wire } from '../rpc/source.js'
import { type Json, raw } from '../rpc/splice.js'
import { shownPrincipal } from '../texts/printable.js'
import type { ClientWatch } from './recorder.js'
import { fillIn, TOWARDS, type WatchedHeaders } from './clients.js'

type CallSight = Extract<Sight, { kind: 'call' }>

const NO_HEADERS = {}

/** Whose call it is, for the log and the inspector. */
export interface Whose {
  principal: string
  /** The session of a legacy client. */
  session?: string | undefined
  /** The call that it is a part of, for the inspector, which shows it as a call of its own only if it fails. */
  partOf?: number | undefined
}

/** What is known about a call when it comes in. More fields are added until it ends. */
export interface CallFields {
  clientEra: Era
  method: string
  serverEra?: Era
  relayed?: true
  /** The server of a group that the call is for. */
  server?: string
  [further: string]: unknown
}

/** How a call has ended. */
export interface CallEnd {
  outcome: Outcome
  /** Why, if it was cancelled. */
  cancelled?: Cancelled | undefined
  fault?: Fault | undefined
  /** The code of the error. */
  code?: number | undefined
  why?: string | undefined
  /** Milliseconds that the server has taken, if it got the call. */
  upstreamMs?: number | undefined
}

/** A call that the inspector sees. */
export class WatchedCall {
  readonly number: number
  readonly #watch: ClientWatch
  readonly #fields: Readonly<CallFields>
  readonly #started: number
  readonly #server: string
  readonly #principal: string
  #session: string | undefined
  /** What the client calls itself. */
  #client: string | undefined
  /** What the call named when it began. */
  #name: unknown
  /** The id of the client's message. */
  #messageId: string | number | undefined
  /** `performance.now()` of the answer. */
  #answeredAt: number | undefined

  /** `started` is the `performance.now()` of the call. */
  constructor(
    number: number,
    server: string,
    watch: ClientWatch,
    fields: Readonly<CallFields>,
    whose: Whose,
    started: number,
  ) {
    this.number = number
    this.#watch = watch
    this.#fields = fields
    this.#started = started
    this.#server = server
    this.#principal = shownPrincipal(whose.principal)
    this.#session = whose.session
  }

  /**
   * Tells that the call has begun, with the client's message. `answers` are those of a call that continues another one,
   * `clientInfo` is that of its client, if it is known.
   */
  begun(request: Request, answers?: Answers, headers?: WatchedHeaders, clientInfo?: Json): void {
    this.begunBy(this.#watch.clientOf(request, this.#session, clientInfo), answers)
    const sight = this.#message('in', this.#started)
    if (headers) sight.http = { headers }
    tellArrived(this.#watch.witness, request, sight)
    this.#messageId = sight.id
  }

  /** Tells that the call of this client has begun, whose message is told otherwise. `answers` are as in `begun`. */
  begunBy(client: string | undefined, answers: Answers | undefined): void {
    this.#client = client
    this.#name = this.#fields['name']
    const sight = this.#sight('begun', this.#started)
    if (answers) sight.continues = this.continues(answers)
    this.#watch.witness(sight)
  }

  /** The call that one with these answers continues; undefined if it is not known. */
  continues({ state, responses }: Answers): number | undefined {
    return this.#watch.continued(this.#whose, { state, entries: responses })
  }

  /** The call has opened this session, to which it belongs from now on. */
  opened(session: string): void {
    this.#session = session
  }

  /** Tells a message of the client that belongs to the call. */
  received(message: Request | Notification | Response): void {
    tellArrived(this.#watch.witness, message, this.#message('in', undefined))
  }

  /** Tells a message to the client. `made` is what it was made of, `status` its HTTP status, unless that is 200. */
  said(text: Wire, made?: Made, status?: number): void {
    const sight = this.#message('out', undefined)
    if (fillIn(sight, text)) this.#tellSent(sight, text, made, status)
  }

  /** Tells the server's reply: `text` is the answer as sent, `made` what it was made of, `status` as in `said`. */
  answered(reply: Final, text: Wire | undefined, made: Made | undefined, status?: number): void {
    if (reply.kind === 'input') {
      const { result } = reply
      const round = { state: raw(result, 'requestState'), entries: raw(result, 'inputRequests') }
      this.#watch.asks(this.number, this.#whose, round)
    }
    if (text === undefined) return
    this.#answeredAt = performance.now()
    const sight = this.#message('out', this.#answeredAt)
    sight.form = reply.kind === 'error' ? 'error' : 'result'
    sight.id = this.#messageId
    this.#tellSent(sight, text, made, status)
  }

  /** Tells how the call has ended: now, or with the answer that was told. */
  ended({ outcome, cancelled, fault, code, why, upstreamMs }: CallEnd): void {
    const now = this.#answeredAt ?? performance.now()
    const sight = this.#sight('ended', now)
    sight.outcome = outcome
    sight.cancelled = cancelled
    sight.code = code
    sight.fault = fault?.fault
    sight.blame = fault?.blame
    sight.why = why
    sight.ms = now - this.#started
    sight.upstreamMs = upstreamMs
    this.#watch.witness(sight)
  }

  /** Whose call of what it is: the calls of one round have that in common. */
  get #whose(): string {
    const { method, name } = this.#fields
    return JSON.stringify([this.#server, this.#principal, method, this.#name ?? name])
  }

  /** A message of the call with its client. */
  #message(dir: MessageSight['dir'], now: number | undefined): MessageSight {
    return sightOf('client', dir, this.#server, this.number, this.#session, now)
  }

  #tellSent(sight: MessageSight, text: Wire, made: Made | undefined, status: number | undefined): void {
    if (status !== undefined && status !== 200) sight.http = { status, headers: NO_HEADERS }
    tellSent(this.#watch.witness, text, sight, made, TOWARDS[this.#fields.clientEra])
  }

  /** The beginning or the end, with what is known of the call by now. */
  #sight(what: CallSight['what'], now: number): CallSight {
    const { clientEra, clientRevision, clientTransport, serverEra, serverRevision, serverTransport } = this.#fields
    const { method, name, relayed = false, trace_id: trace } = this.#fields
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
        transport: (relayed ? 'http' : serverTransport) as Side['transport'],
        name: undefined,
      },
      method,
      name: name as string | undefined,
      relayed,
      outcome: undefined,
      cancelled: undefined,
      code: undefined,
      fault: undefined,
      blame: undefined,
      why: undefined,
      ms: undefined,
      upstreamMs: undefined,
      trace: trace as string | undefined,
    }
  }
}
