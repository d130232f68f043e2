/** Keeps the number of calls that are open at once within bounds: in all, and with one server. */
import type { Policy } from '../protocol/call.js'
import { Fault } from '../protocol/fault.js'
import { methodTraits } from '../protocol/methods.js'

/** A bound, and how far it is reached. Bounds that several policies share are the same object. */
export interface Bound {
  readonly max: number
  open: number
  /** Where the calls are open, for people. */
  readonly where: string
}

/** Lets in what there is room for: calls, and apart from them what stays open for long. Gives a way out. Throws a Fault. */
export type Gate = (endless: boolean) => () => void

export function gate(calls: readonly Bound[], subscriptions: readonly Bound[]): Gate {
  return (endless) => {
    const bounds = endless ? subscriptions : calls
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
}

/** Refuses what the gate does not let in. */
export function limits(enter: Gate): Policy {
  return (next) =>
    async function* limitedCall(call) {
      const leave = enter(methodTraits(call.method).endless === true)
      try {
        yield* next(call)
      } finally {
        leave()
      }
    }
}
