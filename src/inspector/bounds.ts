/** Bounds of the memory of the inspector. */

/** Bounds of a ring. At a bound, the oldest entries leave. */
export interface RingBounds {
  calls: number
  /** Messages, and all other events that do not begin a call. */
  messages: number
  bytes: number
}

export const RING: RingBounds = { calls: 2_000, messages: 20_000, bytes: 16 * 1024 * 1024 }

/**
 * Shares of the bytes: the newest events, retained events, which stay longer, the texts of all calls, and texts that stay
 * longer.
 */
export const BYTES = { events: 4 / 16, retained: 3 / 16, passing: 5 / 16, lasting: 4 / 16 }
