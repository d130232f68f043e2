/** Whether something grows: a straight line through what was measured. */

export interface Sample {
  /** Seconds since the start. */
  at: number
  /** MiB. */
  heap: number
  rss: number
  /** Open file descriptors. */
  descriptors: number
}

/**
 * How much a figure grows in a minute, by the low points of the second half: in between it goes up and down, as the heap does
 * with the garbage collection.
 */
export function growthOf(name: Exclude<keyof Sample, 'at'>, samples: readonly Sample[]): number {
  const half = samples.slice(Math.floor(samples.length / 2))
  const lows = lowPoints(name, half)
  if (lows.length < 3) return 0
  const mean = (of: (sample: Sample) => number) => lows.reduce((sum, sample) => sum + of(sample), 0) / lows.length
  const [at, height] = [mean((sample) => sample.at), mean((sample) => sample[name])]
  const above = lows.reduce((sum, sample) => sum + (sample.at - at) * (sample[name] - height), 0)
  const below = lows.reduce((sum, sample) => sum + (sample.at - at) ** 2, 0)
  return (above / below) * 60
}

/** The lowest of each group of samples. */
function lowPoints(name: Exclude<keyof Sample, 'at'>, samples: readonly Sample[]): Sample[] {
  const size = Math.max(1, Math.floor(samples.length / 8))
  const groups = Array.from({ length: Math.floor(samples.length / size) }, (_, n) =>
    samples.slice(n * size, n * size + size),
  )
  return groups.map((group) => group.reduce((low, sample) => (sample[name] < low[name] ? sample : low)))
}
