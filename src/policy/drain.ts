/**
 * Ends calls at shutdown. Subscriptions end with a result, so that clients know that nothing broke. Calls that have not
 * ended when the time is up end with an error that says so.
 */
import type { Policy, Reply } from '../protocol/call.js'
import { Fault } from '../protocol/fault.js'
import { methodTraits } from '../protocol/methods.js'
import { EMPTY } from '../rpc/splice.js'

/** All calls in flight, and how to end them. */
export class Drain {
  readonly #endless = new Set<() => void>()
  readonly #inFlight = new Set<(reason: Fault) => void>()
  #ended = false

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
    this.#inFlight.add(abort)
    return () => this.#inFlight.delete(abort)
  }

  readonly policy: Policy = (next) => {
    const inFlight = this.#inFlight
    const endless = this.#endlessCall(next)
    return async function* endedCall(call) {
      if (methodTraits(call.method).endless) return yield* endless(call)
      const { abort } = call
      inFlight.add(abort)
      try {
        yield* next(call)
      } finally {
        inFlight.delete(abort)
      }
    }
  }

  readonly #endlessCall: Policy = (next) => {
    const open = this.#endless
    const ended = () => this.#ended
    return async function* endlessCall(call) {
      // Not the call's own abort: a caller that got the last reply has not disconnected.
      const over = new AbortController()
      const signal = AbortSignal.any([call.signal, over.signal])
      const replies = next({ ...call, signal })[Symbol.asyncIterator]()
      let stop = () => {}
      const stopped = new Promise<undefined>((resolve) => {
        stop = () => resolve(undefined)
        open.add(stop)
        if (ended()) stop()
      })
      try {
        for (;;) {
          const arriving = replies.next()
          arriving.catch(() => {})
          const arrived = await Promise.race([arriving, stopped])
          if (arrived === undefined) {
            yield { kind: 'result', result: EMPTY } satisfies Reply
            return
          }
          if (arrived.done) return
          yield arrived.value
        }
      } finally {
        open.delete(stop)
        over.abort()
        replies.return?.()?.catch(() => {})
      }
    }
  }
}
