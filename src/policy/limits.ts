/** Keeps the number of calls that are open at once within bounds: in all, and with one server. */
import type { Policy } from '../protocol/call.js'
import { Fault } from '../protocol/fault.js'

/** A bound, and how far it is reached. Bounds that several policies share are the same object. */
export interface Bound {
  readonly max: number
  open: number
  /** Where the calls are open, for people. */
  readonly where: string
}

/** Refuses calls beyond any of the bounds. */
export function limits(...bounds: readonly Bound[]): Policy {
  return (next) =>
    async function* limitedCall(call) {
      const reached = bounds.find(({ open, max }) => open >= max)
      if (reached)
        throw new Fault('overloaded', `${reached.max} calls are open ${reached.where} already`, { retryAfter: 1 })
      for (const bound of bounds) bound.open++
      try {
        yield* next(call)
      } finally {
        for (const bound of bounds) bound.open--
      }
    }
}
