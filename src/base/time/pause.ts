/** Pauses and backoff, in milliseconds. Uses no API of Node.js, so that the inspector's page can import it. */
import type { Signal } from './hang-up.js'

/** The shortest and the longest delay of a backoff. */
export interface Backoff {
  first: number
  most: number
}

/** The longest delay that `setTimeout` accepts, about 25 days. */
export const LONGEST = 2 ** 31 - 1
/** Most doublings of a delay. More would exceed the longest timer, and at last overflow to Infinity. */
const DOUBLINGS = 31

/**
 * Waits. Resolves to true after `milliseconds` (at once if that is 0 or less), and to false as soon as the signal
 * aborts. Never rejects; a caller that has to fail on an abort calls `signal.throwIfAborted()`. Removes its timer and
 * its listener.
 */
export function pause(milliseconds: number, signal?: Signal): Promise<boolean> {
  if (signal?.aborted) return Promise.resolve(false)
  if (milliseconds <= 0) return Promise.resolve(true)
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', end)
      resolve(!signal?.aborted)
    }
    const timer = setTimeout(end, Math.min(milliseconds, LONGEST))
    signal?.addEventListener('abort', end, { once: true })
  })
}

/** The delay after a number of failures: `first` after none, doubled by each failure, and `most` at most. */
export function backoff(failures: number, { first, most }: Backoff): number {
  return Math.min(first * 2 ** Math.min(failures, DOUBLINGS), most)
}
