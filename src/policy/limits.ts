/** Keeps the number of calls that are open at once within bounds: in all, and with one server. */
import type { Policy } from '../protocol/call.js'
import { Fault } from '../protocol/fault.js'
import { methodTraits } from '../protocol/methods.js'

/** A bound, and how far it is reached. Bounds that several policies share are the same object. */
export interface Bound {
  max: number
  open: number
  /** Where the calls are open, for people. */
  readonly where: string
}

/** What wants to be let in. */
export interface Entering {
  /** It stays open for long, and is counted apart from the others. */
  endless?: boolean | undefined
  /** It goes on with something that has begun, so that it is let in when nothing new is. */
  goesOn?: boolean | undefined
}

/** Lets in what there is room for. Gives a way out. Throws a Fault. */
export class Gate {
  readonly #calls: readonly Bound[]
  readonly #subscriptions: readonly Bound[]
  #closed = false

  constructor(calls: readonly Bound[], subscriptions: readonly Bound[]) {
    this.#calls = calls
    this.#subscriptions = subscriptions
  }

  enter({ endless = false, goesOn = false }: Entering): () => void {
    if (this.#closed && !goesOn) throw new Fault('draining', 'The bridge is shutting down', { retryAfter: 1 })
    const bounds = endless ? this.#subscriptions : this.#calls
    const reached = bounds.find(({ open, max }) => open >= max)
    if (reached) {
      const what = endless ? 'subscriptions' : 'calls'
      throw new Fault('overloaded', `${reached.max} ${what} are open ${reached.where} already`, { retryAfter: 1 })
    }
    for (const bound of bounds) bound.open++
    return () => {
      for (const bound of bounds) bound.open--
    }
  }

  /** Lets nothing new in any more. */
  close(): void {
    this.#closed = true
  }
}

/** Refuses what the gate does not let in. */
export function limits(gate: Gate): Policy {
  return (next) =>
    async function* limitedCall(call) {
      const { endless } = methodTraits(call.method)
      const leave = gate.enter({ endless, goesOn: call.answers !== undefined })
      try {
        yield* next(call)
      } finally {
        leave()
      }
    }
}
