/**
 * Ends calls at shutdown. Subscriptions end with a result, so that clients know that nothing broke. Calls that have not
 * ended when the time is up end with an error that says so.
 */
import { HangUp } from '../hang-up.js'
import { OpenSet } from '../open-set.js'
import type { Call, Final, Handler, Policy } from '../protocol/call.js'
import { Fault } from '../protocol/fault.js'
import { methodTraits } from '../protocol/methods.js'
import { EMPTY } from '../rpc/splice.js'

/** All calls in flight, and how to end them. */
export class Drain {
  readonly #endless = new OpenSet<() => void>()
  readonly #inFlight = new OpenSet<(reason: Fault) => void>()
  #ended = false

  /** Calls in flight, without subscriptions. */
  get inFlight(): number {
    return this.#inFlight.size
  }

  /** Ends subscriptions, the open ones and all later ones. */
  end(): void {
    this.#ended = true
    for (const stop of [...this.#endless]) stop()
  }

  /** Aborts all calls in flight with the fault `interrupted`. */
  cut(): void {
    const fault = new Fault('interrupted', 'The bridge was shut down; whether the server acted on the call is unknown')
    for (const abort of [...this.#inFlight]) abort(fault)
  }

  /** Registers a call that does not pass the policy. The returned function removes it. */
  begin(abort: (reason: Fault) => void): () => void {
    const place = this.#inFlight.add(abort)
    return () => this.#inFlight.delete(place)
  }

  readonly policy: Policy = (next) => {
    const inFlight = this.#inFlight
    return async (call) => {
      if (methodTraits(call.method).endless) return this.#endUnlessOver(call, next)
      const place = inFlight.add(call.abort)
      try {
        return await next(call)
      } finally {
        inFlight.delete(place)
      }
    }
  }

  async #endUnlessOver(call: Call, next: Handler): Promise<Final> {
    const open = this.#endless
    // Not the call's own abort: a caller that got an answer has not disconnected.
    const over = new HangUp(call.signal)
    let stop = () => {}
    const stopped = new Promise<Final>((resolve) => {
      stop = () => resolve({ kind: 'result', result: EMPTY })
    })
    const place = open.add(stop)
    if (this.#ended) stop()
    try {
      return await Promise.race([next({ ...call, signal: over }), stopped])
    } finally {
      open.delete(place)
      over.abort()
    }
  }
}
