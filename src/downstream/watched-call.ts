/** What the inspector is told of one call: that it has begun, its messages with the client, and how it has ended. */

import type { Cancelled, Outcome, Side, Sight } from '../ports/seen.js'
import type { Final } from '../protocol/call.js'
import { type Era, NEWEST_MODERN } from '../protocol/eras.js'
import type { Fault } from '../protocol/fault.js'
import type { Made } from '../protocol/rules.js'
import type { Notification, Request, Response } from '../rpc/message.js'
import type { Wire } from '../rpc/source.js'
import { type Json, raw } from '../rpc/splice.js'
import type { Logger } from './logger.js'
import type { Watch } from './watch.js'
import { type About, type Headers, tellEncoded, tellReceived, tellSent } from './watched-messages.js'

/** Whose call it is, for the log and the inspector. */
export interface Whose {
  principal: string
  /** The session of a legacy client. */
  session?: string | undefined
}

/** What is known about a call when it comes in. More fields are added until it ends. */
export interface CallFields {
  clientEra: Era
  method: string
  serverEra?: Era
  relayed?: true
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
  /** The id of the call. */
  readonly id: string
  readonly #logger: Logger
  readonly #watch: Watch
  readonly #fields: Readonly<CallFields>
  #whose: Whose
  readonly #started: number
  /** The id of the client's message. */
  #messageId: string | number | undefined
  /** What the client calls itself. */
  #client: string | undefined

  /** `started` is the `performance.now()` of the call. */
  constructor(logger: Logger, watch: Watch, fields: Readonly<CallFields>, whose: Whose, started: number) {
    this.id = watch.begin()
    this.#logger = logger
    this.#watch = watch
    this.#fields = fields
    this.#whose = whose
    this.#started = started
  }

  /**
   * Tells that the call has begun, with the client's message. `state` is the `requestState` of a call that continues
   * another one, `clientInfo` that of its client, if it is known.
   */
  begun(request: Request, state?: Json, headers?: Headers, clientInfo?: Json): void {
    const { session } = this.#whose
    this.begunBy(this.#watch.clientOf(request, session, clientInfo), state)
    const about = { call: this.id, session, now: this.#started }
    this.#messageId = tellReceived(this.#logger, request, about, headers)
  }

  /** Tells that the call of this client has begun, whose message is told otherwise. `state` is as in `begun`. */
  begunBy(client: string | undefined, state: Json | undefined): void {
    const continues = state === undefined ? undefined : this.#watch.continued(state)
    this.#client = client
    this.#watch.witness(this.#sight('begun', this.#started, continues, undefined))
  }

  /** The call has opened this session, to which it belongs from now on. */
  opened(session: string): void {
    this.#whose = { ...this.#whose, session }
  }

  /** Tells a message of the client that belongs to the call. */
  received(message: Request | Notification | Response): void {
    tellReceived(this.#logger, message, this.#about())
  }

  /** Tells a message to the client. `made` is what it was made of, `status` its HTTP status, unless that is 200. */
  said(text: Wire, made?: Made, status?: number): void {
    tellSent(this.#logger, text, this.#about(status), { made, era: this.#fields.clientEra })
  }

  /** Tells the server's reply: `text` is the answer as sent, `made` what it was made of, `status` as in `said`. */
  answered(reply: Final, text: Wire | undefined, made: Made | undefined, status?: number): void {
    if (reply.kind === 'input') {
      const state = raw(reply.result, 'requestState')
      if (state !== undefined) this.#watch.asks(this.id, state)
    }
    if (text === undefined) return
    const form = reply.kind === 'error' ? 'error' : 'result'
    const making = { made, era: this.#fields.clientEra }
    tellEncoded(this.#logger, { form, method: undefined, id: this.#messageId }, text, this.#about(status), making)
  }

  /** Tells how the call has ended. */
  ended(end: CallEnd): void {
    this.#watch.witness(this.#sight('ended', performance.now(), undefined, end))
  }

  /** What the messages of the call belong to. */
  #about(status?: number): About {
    return { call: this.id, session: this.#whose.session, now: undefined, status: status === 200 ? undefined : status }
  }

  /** What is told when the call begins or ends. Beginnings and ends have the same members, for the sake of V8. */
  #sight(what: 'begun' | 'ended', now: number, continues: string | undefined, end: CallEnd | undefined): Sight {
    const { clientEra, clientRevision, clientTransport, serverEra, serverRevision, serverTransport } = this.#fields
    const { method, name, relayed = false, trace_id: trace } = this.#fields
    return {
      kind: 'call',
      what,
      server: this.#logger.telemetry?.server,
      call: this.id,
      continues,
      session: this.#whose.session,
      now,
      principal: this.#whose.principal,
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
      outcome: end?.outcome,
      cancelled: end?.cancelled,
      code: end?.code,
      fault: end?.fault?.fault,
      blame: end?.fault?.blame,
      why: end?.why,
      ms: end && now - this.#started,
      upstreamMs: end?.upstreamMs,
      trace: trace as string | undefined,
    }
  }
}
