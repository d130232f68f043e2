/** A pace: so many at once, then one in each interval. All of it is one moment: when the pace has caught up with what has happened so far. */

export interface Pace {
  /** How many may happen at once. */
  burst: number
  /** Milliseconds for each of them. */
  every: number
}

/** Milliseconds until one more may happen; 0 or less if it may now. */
export function waitFor({ burst, every }: Pace, caughtUp: number, now: number): number {
  return caughtUp - now - (burst - 1) * every
}

/** When the pace has caught up after one more. */
export function afterOneMore({ every }: Pace, caughtUp: number, now: number): number {
  return Math.max(caughtUp, now) + every
}
