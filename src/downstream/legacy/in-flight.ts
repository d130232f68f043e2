/** The requests of a session that are in flight, by id, so that the client can cancel them. */
import { HangUp } from '../../hang-up.js'
import { type Id, idKey, type Params, readId } from '../../rpc/message.js'
import { own } from '../../rpc/own.js'
import { raw, value } from '../../rpc/splice.js'

/** Requests in flight. Several may have the same id. */
export class InFlight {
  /** By id. A list if several requests have the same id. */
  readonly #controllers = new Map<string, HangUp | HangUp[]>()
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
    // A deleted key may be kept for long (see `OpenSet`): it must not keep the message that it is a part of.
    const key = own(idKey(id))
    const others = this.#controllers.get(key)
    this.#controllers.set(key, others ? [...listOf(others), controller] : controller)
    this.#open++
    return controller
  }

  /** Removes a request. */
  end(id: Id, controller: HangUp): void {
    const key = idKey(id)
    const known = this.#controllers.get(key)
    if (known === controller) this.#controllers.delete(key)
    else if (Array.isArray(known) && known.includes(controller)) {
      const [one, ...more] = known.filter((other) => other !== controller)
      this.#controllers.set(key, more.length === 0 ? (one as HangUp) : [one as HangUp, ...more])
    } else return
    this.#open--
  }

  /**
   * Handles `notifications/cancelled`. If two requests have this id, neither is cancelled, because the notification
   * does not say which one is meant. Returns whether a request was cancelled.
   */
  cancel(params: Params): boolean {
    const text = typeof params === 'string' ? undefined : raw(params, 'requestId')
    const id = text === undefined ? undefined : readId(text)
    const meant = id && this.#controllers.get(idKey(id))
    if (!meant || Array.isArray(meant) || typeof params === 'string') return false
    const reason = value(params, 'reason')
    meant.abort(typeof reason === 'string' ? reason : 'The client has cancelled')
    return true
  }

  /** Aborts all requests. */
  abortAll(): void {
    for (const controllers of this.#controllers.values())
      for (const controller of listOf(controllers)) controller.abort()
  }
}

function listOf(controllers: HangUp | HangUp[]): HangUp[] {
  return Array.isArray(controllers) ? controllers : [controllers]
}
