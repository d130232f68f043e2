/** Chance that can be had again: the same seed gives the same numbers. */

/** A number from 0 up to, not including, 1. */
export type Random = () => number

/** Mulberry32: small, and good enough to choose where to cut. */
export function randomOf(seed: number): Random {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** A whole number from 0 up to, not including, `below`. */
export function below(random: Random, limit: number): number {
  return Math.floor(random() * limit)
}

/** One of these. */
export function oneOf<T>(random: Random, all: readonly T[]): T {
  return all[below(random, all.length)] as T
}
