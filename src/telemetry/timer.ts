/** A histogram that costs next to nothing to feed: that of prom-client looks for its labels each time. */

type Labels = Readonly<Record<string, string>>

/** Times that have all labels in common. */
export class Tally {
  readonly #bounds: readonly number[]
  /** How many there were up to each bound and over the one before it; beyond the last bound there is one more. */
  readonly counts: number[]
  sum = 0

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds
    this.counts = Array.from({ length: bounds.length + 1 }, () => 0)
  }

  observe(seconds: number): void {
    const bounds = this.#bounds
    let at = 0
    while (at < bounds.length && seconds > (bounds[at] as number)) at++
    ;(this.counts[at] as number)++
    this.sum += seconds
  }
}

/** A metric as the registry of prom-client takes it. */
export class Timer {
  readonly name: string
  readonly help: string
  readonly #bounds: readonly number[]
  readonly #tallies = new Map<string, { labels: Labels; tally: Tally }>()

  constructor(name: string, help: string, bounds: readonly number[]) {
    this.name = name
    this.help = help
    this.#bounds = bounds
  }

  /** What takes times of what has these labels. To be asked for once, and kept. */
  tally(labels: Labels): Tally {
    const key = Object.values(labels).join(' ')
    const known = this.#tallies.get(key)
    if (known) return known.tally
    const tally = new Tally(this.#bounds)
    this.#tallies.set(key, { labels, tally })
    return tally
  }

  /** All that it has counted, as the registry asks for it. */
  async get(): Promise<object> {
    const { name, help } = this
    const values = [...this.#tallies.values()].flatMap(({ labels, tally: { counts, sum } }) => {
      let count = 0
      const buckets = counts.map((more, at) => {
        count += more
        const le = String(this.#bounds[at] ?? '+Inf')
        return { metricName: `${name}_bucket`, labels: { ...labels, le }, value: count }
      })
      const whole = [
        { metricName: `${name}_sum`, labels, value: sum },
        { metricName: `${name}_count`, labels, value: count },
      ]
      return [...buckets, ...whole]
    })
    return { name, help, type: 'histogram', aggregator: 'sum', values }
  }
}
