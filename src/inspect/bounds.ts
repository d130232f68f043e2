/** How much the inspector stores, and how its memory is shared. */

/** Bounds of a ring. At a bound, the oldest entries leave. */
export interface RingBounds {
  calls: number
  /** Messages, and all other events that do not begin a call. */
  messages: number
  bytes: number
}

export const RING: RingBounds = { calls: 2_000, messages: 20_000, bytes: 16 * 1024 * 1024 }

/**
 * The shares of the bytes: for the newest events, for those that stay longer, and for texts: those of all calls, and those
 * that stay longer.
 */
export const BYTES = { events: 4 / 16, rooms: 3 / 16, passing: 5 / 16, lasting: 4 / 16 }
