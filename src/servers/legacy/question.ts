/** A request of a legacy server to its client, and what the server gets for it: the client's answer, none, or progress until then. */

import type { Reservation } from '../../base/limits/memory.js'
import { type Id, idKey, type Request, type RpcError } from '../../base/rpc/message.js'
import { EMPTY, type Json, objectIn, type Payload, raw, write } from '../../base/rpc/splice.js'
import type { MessageOrigin } from '../../mcp/protocol/encoded.js'
import type { LegacyRevision } from '../../mcp/protocol/eras.js'
import { liftQuestion, lowerAnswer } from '../../mcp/protocol/input.js'

/** Milliseconds between progress notifications to a server that waits for an answer. */
export const PROGRESS_EVERY = 15_000

interface Asking {
  peer: {
    respond(id: Id, answer: Json | RpcError, origin?: MessageOrigin): void
    notify(method: string, params: Json): Promise<void>
  }
  revision: LegacyRevision
  /** Unanswered questions, by their ids. */
  open: Map<string, ServerQuestion>
}

export class ServerQuestion {
  readonly id: Id
  readonly method: string
  readonly params: Payload
  /** It certainly belongs to one call: it arrived on that call's stream, or names its task. */
  readonly addressed: boolean
  /** The call through which the client is asked; undefined while it waits for one. */
  carrier: object | undefined
  /** The client has been asked. */
  shown = false
  /** The server has cancelled it. */
  withdrawn = false
  /** Called when the server cancels it, or no longer knows the session. */
  onWithdrawn: (() => unknown) | undefined
  readonly #asking: Asking
  /** The reservation for it, until it has been answered. */
  readonly #reservation: Reservation

  constructor({ id, method, params }: Request, addressed: boolean, asking: Asking, reservation: Reservation) {
    this.id = id
    this.method = method
    this.params = typeof params === 'string' ? EMPTY : params
    this.addressed = addressed
    this.#asking = asking
    this.#reservation = reservation
    asking.open.set(idKey(id), this)
  }

  /** Whether it waits for an answer. The server may have used its id for another request since. */
  get isOpen(): boolean {
    return this.#asking.open.get(idKey(this.id)) === this
  }

  /** As it stands in `inputRequests`, for a client that has declared these capabilities. */
  lifted(declared: Payload): Json {
    return liftQuestion(this.method, this.params, declared)
  }

  /** Notes that it waits for no answer any more. Returns whether it did. */
  close(): boolean {
    const { isOpen } = this
    this.#reservation.end()
    if (isOpen) this.#asking.open.delete(idKey(this.id))
    return isOpen
  }

  /** Ends what it holds, because its session is over. */
  end(): void {
    this.#reservation.end()
    this.onWithdrawn?.()
  }

  /** Sends an answer to the server, unless it has withdrawn the question. */
  respond(answer: Json | RpcError, origin?: MessageOrigin): void {
    if (this.close()) this.#asking.peer.respond(this.id, answer, origin)
  }

  answer(answer: Payload): void {
    const { revision } = this.#asking
    const lowered = lowerAnswer(this.method, answer, revision)
    const message = "The client's answer cannot be expressed in the protocol revision of the session"
    this.respond(lowered ? write(lowered) : { code: -32603, message }, 'rebuilt')
  }

  /** Tells the server that the client does not answer. */
  decline(origin?: MessageOrigin): void {
    if (this.method === 'elicitation/create') this.respond('{"action":"cancel"}', origin)
    else if (this.method === 'sampling/createMessage')
      this.respond({ code: -1, message: 'The request was rejected' }, origin)
    else this.respond({ code: -32603, message: 'The client did not answer' }, origin)
  }

  /** The token with which the server wants progress, so that it keeps waiting for the client. */
  get progressToken(): Json | undefined {
    const meta = objectIn(this.params, '_meta')
    return meta && raw(meta, 'progressToken')
  }

  /** Sends progress, if the server wants it. */
  sendProgress(progress: number): void {
    const { progressToken } = this
    if (progressToken === undefined) return
    const params = `{"progressToken":${progressToken},"progress":${progress}}`
    this.#asking.peer.notify('notifications/progress', params).catch(() => {})
  }
}
