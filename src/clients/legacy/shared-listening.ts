/**
 * Shares one `subscriptions/listen` among the sessions of legacy clients that would send an equal one: with the same
 * principal, credential, client, capabilities and filter. Otherwise each idle session would cost a connection to the server.
 */

import { write } from '../../base/rpc/splice.js'
import { HangUp } from '../../base/time/hang-up.js'
import { ANONYMOUS, type Call, type Final, type Handler, type ServerNotification } from '../../mcp/protocol/call.js'
import { ACKNOWLEDGED } from '../../mcp/protocol/subscriptions.js'

/** The subscriptions of all sessions with one server. */
export class SharedListening {
  readonly #handle: Handler
  /** Open subscriptions, by `keyOf`. */
  readonly #open = new Map<string, Subscription>()

  /** `handle` sends a `subscriptions/listen` to the server. */
  constructor(handle: Handler) {
    this.#handle = handle
  }

  /** Number of subscriptions with the server. */
  get size(): number {
    return this.#open.size
  }

  /**
   * Joins an open subscription, or opens one. A call that joins gets the acknowledgement at once. Resolves when the
   * subscription ends; rejects with the reason of the call's signal when that aborts. Ignores the backpressure of
   * `call.notify`, so that no call delays the others.
   */
  readonly listen: Handler = (call) => {
    if (call.signal.aborted) return Promise.reject(call.signal.reason as Error)
    // Two anonymous callers may be two people.
    if (call.principal === ANONYMOUS) return this.#handle(call)
    const key = keyOf(call)
    const known = this.#open.get(key)
    if (known) return known.join(call)
    const opened = new Subscription(() => this.#open.get(key) === opened && this.#open.delete(key))
    this.#open.set(key, opened)
    const joined = opened.join(call)
    opened.begin(call, this.#handle)
    return joined
  }
}

/** A key of everything that the server's answer may depend on. */
function keyOf({ principal, credential, caller: { revision, clientInfo, capabilities }, params }: Call): string {
  return JSON.stringify([principal, credential, revision, clientInfo, capabilities, write(params)])
}

/** Settles a call that takes part. */
interface Part {
  resolve(last: Final): void
  reject(error: unknown): void
}

/** One subscription with the server. */
class Subscription {
  readonly #parts = new Map<Call, Part>()
  readonly #hangUp = new HangUp()
  readonly #ended: () => void
  #acknowledged: ServerNotification | undefined

  /** `ended` is called when no more calls can join. */
  constructor(ended: () => void) {
    this.#ended = ended
  }

  join(call: Call): Promise<Final> {
    return new Promise((resolve, reject) => {
      this.#parts.set(call, { resolve, reject })
      call.signal.addEventListener('abort', () => this.#leave(call, call.signal.reason))
      if (this.#acknowledged) this.#notify(call, this.#acknowledged)
    })
  }

  /** Sends the subscription of the first call, with a signal of its own. */
  begin({ method, params, meta, progress, caller, principal, credential, log }: Call, handle: Handler): void {
    const notify = (notification: ServerNotification) => {
      if (notification.method === ACKNOWLEDGED) this.#acknowledged = notification
      for (const call of [...this.#parts.keys()]) this.#notify(call, notification)
      return undefined
    }
    const signal = this.#hangUp
    const abort = (reason?: unknown) => signal.abort(reason)
    handle({ method, params, meta, progress, caller, principal, credential, log, notify, signal, abort }).then(
      (last) => this.#settle(({ resolve }) => resolve(last)),
      (error: unknown) => this.#settle(({ reject }) => reject(error)),
    )
  }

  #notify(call: Call, notification: ServerNotification): void {
    try {
      call.notify(notification)?.catch(() => {})
    } catch (error) {
      this.#leave(call, error)
    }
  }

  #leave(call: Call, reason: unknown): void {
    const part = this.#parts.get(call)
    if (!part) return
    this.#parts.delete(call)
    part.reject(reason)
    if (this.#parts.size > 0) return
    this.#ended()
    this.#hangUp.abort()
  }

  #settle(settle: (part: Part) => void): void {
    this.#ended()
    const parts = [...this.#parts.values()]
    this.#parts.clear()
    for (const part of parts) settle(part)
  }
}
