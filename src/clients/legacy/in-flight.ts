/** Keeps the requests of a session that are in flight by id, so that the client can cancel them. */

import { type Id, idKey, type Params } from '../../base/rpc/message.js'
import { detach } from '../../base/rpc/source.js'
import { stringUnder } from '../../base/rpc/splice.js'
import { HangUp } from '../../base/time/hang-up.js'
import { cancelledId } from '../../mcp/protocol/cancelled.js'

/** A request in flight. It aborts when it is cancelled. */
export class RunningRequest extends HangUp {
  /** The number of its call for the inspector, if there is one. */
  call: number | undefined
  /** It has been answered: what the server says now is dropped. */
  isAnswered = false
  /** Its call in the client's own session with the server, if that is where it goes. */
  link: { readonly isSettled: boolean } | undefined
}

/** Requests in flight. Several may have the same id. */
export class InFlight {
  /** By id. A list if several requests have the same id. */
  readonly #controllers = new Map<string, RunningRequest | RunningRequest[]>()
  #open = 0

  get size(): number {
    return this.#open
  }

  hasRequest(id: Id): boolean {
    return this.#controllers.has(idKey(id))
  }

  /** Adds a request. `call` is the number of its call for the inspector. */
  enterRequest(id: Id, call?: number): RunningRequest {
    const controller = new RunningRequest()
    controller.call = call
    // Copied, because V8 may keep a deleted key for long (see `OpenSet`), and with it the message that it is a part of.
    const key = detach(idKey(id))
    const others = this.#controllers.get(key)
    this.#controllers.set(key, others ? [...listOf(others), controller] : controller)
    this.#open++
    return controller
  }

  leaveRequest(id: Id, controller: RunningRequest): void {
    const key = idKey(id)
    const known = this.#controllers.get(key)
    if (known === controller) this.#controllers.delete(key)
    else if (Array.isArray(known) && known.includes(controller)) {
      const [one, ...more] = known.filter((other) => other !== controller)
      this.#controllers.set(key, more.length === 0 ? (one as RunningRequest) : [one as RunningRequest, ...more])
    } else return
    this.#open--
    // V8 may keep the deleted entry for long (see `OpenSet`): it must not keep the call.
    controller.link = undefined
  }

  /** Whether the server has answered a request, and the answer is still to be sent. */
  isSettled(): boolean {
    return [...this.#controllers.values()].some((of) => listOf(of).some(({ link }) => link?.isSettled))
  }

  /**
   * The request that `notifications/cancelled` names. Undefined if two requests have this id, because it is not clear which
   * one is meant.
   */
  named(params: Params): RunningRequest | undefined {
    const id = cancelledId(params)
    const meant = id && this.#controllers.get(idKey(id))
    return Array.isArray(meant) ? undefined : meant
  }

  /** Handles `notifications/cancelled`; `after` so many milliseconds if the request may end by itself. */
  cancel(params: Params, after = 0): void {
    const reason = typeof params === 'string' ? undefined : stringUnder(params, 'reason')
    const meant = this.named(params)
    const abort = () => meant?.abort(typeof reason === 'string' ? reason : 'The client has cancelled')
    if (after === 0) abort()
    else setTimeout(abort, after).unref()
  }

  abortAll(): void {
    for (const controllers of this.#controllers.values())
      for (const controller of listOf(controllers)) controller.abort()
  }
}

function listOf(controllers: RunningRequest | RunningRequest[]): RunningRequest[] {
  return Array.isArray(controllers) ? controllers : [controllers]
}
