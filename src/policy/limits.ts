/** Keeps the number of calls that are open at once within bounds: in all, and with one server. */
import type { Policy } from '../protocol/call.js'
import { Fault } from '../protocol/fault.js'

/** Refuses calls over `max` at once. What is counted is whatever shares the counter. */
export function limit(max: number, counter: { open: number }, what: string): Policy {
  return (next) =>
    async function* limitedCall(call) {
      if (counter.open >= max) throw new Fault('overloaded', `${max} calls are open ${what} already`, { retryAfter: 1 })
      counter.open++
      try {
        yield* next(call)
      } finally {
        counter.open--
      }
    }
}
