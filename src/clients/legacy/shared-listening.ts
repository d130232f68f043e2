/**
 * Shares one `subscriptions/listen` among the sessions of legacy clients that would send an equal one: with the same
 * principal, credential, client, capabilities and filter. Otherwise each idle session would cost a connection to the server.
 */

import { write } from '../../base/rpc/splice.js'
import { HangUp } from '../../base/time/hang-up.js'
import { unlessAborted } from '../../base/time/time.js'
import { ANONYMOUS, type Call, type Final, type Handler, type ServerNotification } from '../../mcp/protocol/call.js'
import { ACKNOWLEDGED } from '../../mcp/protocol/subscriptions.js'

/** One subscription with the server. */
interface Shared {
  /** The calls that take part. */
  calls: Set<Call>
  /** Ends it. */
  hangUp: HangUp
  acknowledged?: ServerNotification
  last?: Promise<Final>
}

/** The subscriptions of all sessions with one server. */
export class SharedListening {
  readonly #handle: Handler
  /** Open subscriptions, by `keyOf`. */
  readonly #open = new Map<string, Shared>()

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
  readonly listen: Handler = async (call) => {
    call.signal.throwIfAborted()
    // Two anonymous callers may be two people.
    if (call.principal === ANONYMOUS) return this.#handle(call)
    const key = keyOf(call)
    const known = this.#open.get(key)
    const shared: Shared = known ?? { calls: new Set(), hangUp: new HangUp() }
    shared.calls.add(call)
    if (!known) shared.last = this.#begin(key, shared, call).finally(() => this.#forget(key, shared))
    else if (shared.acknowledged) tell(call, shared.acknowledged)
    try {
      return await unlessAborted(shared.last as Promise<Final>, call.signal)
    } finally {
      shared.calls.delete(call)
      if (shared.calls.size === 0) {
        this.#forget(key, shared)
        shared.hangUp.abort()
      }
    }
  }

  /** Sends the subscription of the first call, with a signal of its own. */
  #begin(key: string, shared: Shared, call: Call): Promise<Final> {
    this.#open.set(key, shared)
    const { method, params, meta, progress, caller, principal, credential, log } = call
    const notify = (notification: ServerNotification) => {
      if (notification.method === ACKNOWLEDGED) shared.acknowledged = notification
      for (const one of [...shared.calls]) tell(one, notification)
      return undefined
    }
    const signal = shared.hangUp
    const abort = (reason?: unknown) => signal.abort(reason)
    return this.#handle({ method, params, meta, progress, caller, principal, credential, log, notify, signal, abort })
  }

  /** No more calls can join. */
  #forget(key: string, shared: Shared): void {
    if (this.#open.get(key) === shared) this.#open.delete(key)
  }
}

/** A key of everything that the server's answer may depend on. */
function keyOf({ principal, credential, caller: { revision, clientInfo, capabilities }, params }: Call): string {
  return JSON.stringify([principal, credential, revision, clientInfo, capabilities, write(params)])
}

/** A call that fails to receive a notification ends alone. */
function tell(call: Call, notification: ServerNotification): void {
  try {
    call.notify(notification)?.catch(() => {})
  } catch (error) {
    call.abort(error)
  }
}
