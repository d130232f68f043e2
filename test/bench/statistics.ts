/** Medians and their spread. */

/** The middle of some values, and the quarters below and above it. */
export interface Spread {
  median: number
  low: number
  high: number
}

/** Median and quartiles; undefined if there are no values, or one of them is missing or no number. */
export function spreadOf(values: readonly (number | undefined)[]): Spread | undefined {
  const known = values.filter((value) => value !== undefined && Number.isFinite(value)) as number[]
  if (known.length === 0 || known.length < values.length) return undefined
  const sorted = known.sort((a, b) => a - b)
  return { median: quantile(sorted, 0.5), low: quantile(sorted, 0.25), high: quantile(sorted, 0.75) }
}

/** The spread of the ratios of values that were measured one after the other, pair by pair. */
export function ratioOf(values: readonly (number | undefined)[], base: readonly (number | undefined)[]) {
  return spreadOf(values.map((value, index) => (value ?? Number.NaN) / (base[index] ?? Number.NaN)))
}

/** Interpolates between the two nearest of some sorted values. */
function quantile(sorted: readonly number[], share: number): number {
  const place = (sorted.length - 1) * share
  const [below, above] = [sorted[Math.floor(place)] as number, sorted[Math.ceil(place)] as number]
  return below + (above - below) * (place - Math.floor(place))
}
