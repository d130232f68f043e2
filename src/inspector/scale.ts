/** The scales on which the page draws times. */

/** The shortest and the longest time on the scale of the list, in milliseconds. Longer calls reach its end. */
const FROM = 0.1
const TO = 100_000

/**
 * How far a time reaches on the scale that all rows of the list share, from 0 to 1. It is logarithmic, because a call takes
 * from less than a millisecond to minutes.
 */
export function reach(ms: number): number {
  return Math.min(1, Math.max(0, Math.log10(Math.max(ms, FROM) / FROM) / Math.log10(TO / FROM)))
}

/** The times that the scale of the list has labels for. */
export const LABELS = [1, 100, 10_000] as const

/** Most labels on the scale of one call. */
const MOST = 5
const STEPS = [1, 2, 5] as const

/** Round times on a linear scale from 0 to this many milliseconds. */
export function ticksOf(ms: number): number[] {
  if (!(ms > 0) || !Number.isFinite(ms)) return [0]
  const power = 10 ** Math.floor(Math.log10(ms / MOST))
  const step = power * (STEPS.find((one) => one * power * MOST >= ms) ?? 10)
  return Array.from({ length: Math.floor(ms / step + 1e-9) + 1 }, (_, i) => i * step)
}
