/**
 * Ends calls when the bridge is stopped. What stays open for ever ends with a result, so that clients know that nothing
 * broke; what has not ended when time is up ends with an error that says so.
 */
import type { Policy, Reply } from '../protocol/call.js'
import { Fault } from '../protocol/fault.js'
import { methodTraits } from '../protocol/methods.js'
import { EMPTY } from '../rpc/splice.js'

export class Drain {
  readonly #endless = new Set<() => void>()
  readonly #inFlight = new Set<(reason: Fault) => void>()
  #ended = false

  /** Ends what stays open for ever, now and from now on. */
  end(): void {
    this.#ended = true
    for (const stop of [...this.#endless]) stop()
  }

  /** Tells the callers of calls that have not ended that they will not. */
  cut(): void {
    const fault = new Fault(
      'interrupted',
      'The bridge has been stopped; whether the server acted on the call is unknown',
    )
    for (const abort of [...this.#inFlight]) abort(fault)
  }

  /** Begins a call that no policy sees, to be ended like the others. Gives what is to be called when it is over. */
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
      // Not the caller's own signal: whoever has had the last reply has not gone away.
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
