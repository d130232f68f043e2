/** The requests of a session that are in flight, by id, so that the client can cancel them. */
import { HangUp } from '../../hang-up.js'
import { type Id, idKey, type Params, readId } from '../../rpc/message.js'
import { raw, value } from '../../rpc/splice.js'

/** Requests in flight. Several may have the same id. */
export class InFlight {
  readonly #controllers = new Map<string, Set<HangUp>>()
  #open = 0

  /** Number of requests in flight. */
  get size(): number {
    return this.#open
  }

  /** Whether a request with this id is in flight. */
  has(id: Id): boolean {
    return this.#controllers.has(idKey(id))
  }

  /** Adds a request. The controller aborts when the request is cancelled. */
  begin(id: Id): HangUp {
    const controller = new HangUp()
    const key = idKey(id)
    const others = this.#controllers.get(key)
    if (others) others.add(controller)
    else this.#controllers.set(key, new Set([controller]))
    this.#open++
    return controller
  }

  /** Removes a request. */
  end(id: Id, controller: HangUp): void {
    const key = idKey(id)
    const known = this.#controllers.get(key)
    if (!known?.delete(controller)) return
    this.#open--
    if (known.size === 0) this.#controllers.delete(key)
  }

  /**
   * Handles `notifications/cancelled`. If two requests have this id, neither is cancelled, because the notification
   * does not say which one is meant. Returns whether a request was cancelled.
   */
  cancel(params: Params): boolean {
    const text = typeof params === 'string' ? undefined : raw(params, 'requestId')
    const id = text === undefined ? undefined : readId(text)
    const meant = id && this.#controllers.get(idKey(id))
    if (meant?.size !== 1 || typeof params === 'string') return false
    const reason = value(params, 'reason')
    for (const controller of meant) controller.abort(typeof reason === 'string' ? reason : 'The client has cancelled')
    return true
  }

  /** Aborts all requests. */
  abortAll(): void {
    for (const controllers of this.#controllers.values()) for (const controller of controllers) controller.abort()
  }
}
