/** Bounds the number of calls in flight: in total, for each server and for each principal. */
import type { Bound, Reached } from '../protocol/bound.js'
import type { Policy } from '../protocol/call.js'
import { Fault } from '../protocol/fault.js'
import { methodTraits } from '../protocol/methods.js'

/** A bound, and the place that it limits, in words for messages. */
export interface Place {
  readonly bound: Bound
  readonly where: string
}

/** A request to enter. */
export interface Entering {
  principal: string
  /** It is long-lived, and has a separate bound. */
  endless?: boolean | undefined
  /** It continues an earlier call, so it may enter during shutdown. */
  goesOn?: boolean | undefined
}

/** Admits calls within the bounds. */
export class Gate {
  readonly #calls: readonly Place[]
  readonly #subscriptions: readonly Place[]
  #closed = false

  constructor(calls: readonly Place[], subscriptions: readonly Place[]) {
    this.#calls = calls
    this.#subscriptions = subscriptions
  }

  enter({ principal, endless = false, goesOn = false }: Entering): () => void {
    if (this.#closed && !goesOn) throw new Fault('draining', 'The bridge is shutting down', { retryAfter: 1 })
    const places = endless ? this.#subscriptions : this.#calls
    for (const { bound, where } of places) {
      const reached = bound.reached(principal)
      if (reached) throw noRoom(reached, bound, `${endless ? 'subscriptions' : 'calls'} ${where}`)
    }
    for (const { bound } of places) bound.take(principal)
    return () => {
      for (const { bound } of places) bound.give(principal)
    }
  }

  /** Stops admitting new calls. */
  close(): void {
    this.#closed = true
  }
}

function noRoom(reached: Reached, { max }: Bound, what: string): Fault {
  return reached === 'full'
    ? new Fault('overloaded', `Too many ${what}: at most ${max} may be open at once`, { retryAfter: 1 })
    : new Fault('rateLimited', `Too many ${what} of this caller: its share is used up. Wait until one of them ends`, {
        retryAfter: 1,
      })
}

/** Admits a call through the gate, or throws a Fault. */
export function limits(gate: Gate): Policy {
  return (next) =>
    async function limitedCall(call) {
      const { endless } = methodTraits(call.method)
      const leave = gate.enter({ principal: call.principal, endless, goesOn: call.answers !== undefined })
      try {
        return await next(call)
      } finally {
        leave()
      }
    }
}
