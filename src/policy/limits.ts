/** Keeps the number of calls that are open at once within bounds: in all, with one server, and of one principal. */
import type { Bound, Reached } from '../protocol/bound.js'
import type { Policy } from '../protocol/call.js'
import { Fault } from '../protocol/fault.js'
import { methodTraits } from '../protocol/methods.js'

/** A bound on what is open, and where it is open, for people. */
export interface Place {
  readonly bound: Bound
  readonly where: string
}

/** What wants to be let in. */
export interface Entering {
  principal: string
  /** It stays open for long, and is counted apart from the others. */
  endless?: boolean | undefined
  /** It goes on with something that has begun, so that it is let in when nothing new is. */
  goesOn?: boolean | undefined
}

/** Lets in what there is room for. Gives a way out. Throws a Fault. */
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

  /** Lets nothing new in any more. */
  close(): void {
    this.#closed = true
  }
}

function noRoom(reached: Reached, { max }: Bound, what: string): Fault {
  return reached === 'full'
    ? new Fault('overloaded', `Too many ${what}: at most ${max} may be open at once`, { retryAfter: 1 })
    : new Fault('rateLimited', `Too many ${what} of this caller: the others must have room, too`, { retryAfter: 1 })
}

/** Refuses what the gate does not let in. */
export function limits(gate: Gate): Policy {
  return (next) =>
    async function* limitedCall(call) {
      const { endless } = methodTraits(call.method)
      const leave = gate.enter({ principal: call.principal, endless, goesOn: call.answers !== undefined })
      try {
        yield* next(call)
      } finally {
        leave()
      }
    }
}
