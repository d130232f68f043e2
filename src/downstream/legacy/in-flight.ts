/** The requests of a session that are being answered, by their ids: which is how a client takes one back. */
import { type Id, idKey, type Params, readId } from '../../rpc/message.js'
import { raw, value } from '../../rpc/splice.js'

export class InFlight {
  readonly #controllers = new Map<string, Set<AbortController>>()
  #open = 0

  get size(): number {
    return this.#open
  }

  has(id: Id): boolean {
    return this.#controllers.has(idKey(id))
  }

  begin(id: Id): AbortController {
    const controller = new AbortController()
    const key = idKey(id)
    const others = this.#controllers.get(key)
    if (others) others.add(controller)
    else this.#controllers.set(key, new Set([controller]))
    this.#open++
    return controller
  }

  end(id: Id, controller: AbortController): void {
    const key = idKey(id)
    const known = this.#controllers.get(key)
    if (!known?.delete(controller)) return
    this.#open--
    if (known.size === 0) this.#controllers.delete(key)
  }

  /**
   * Follows `notifications/cancelled`. Where two requests have the same id, nobody knows which is meant: neither is.
   * Returns whether one of these was.
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

  abortAll(): void {
    for (const controllers of this.#controllers.values()) for (const controller of controllers) controller.abort()
  }
}
