/** A histogram that is cheap to update: that of prom-client looks up its labels each time. */

type Labels = Readonly<Record<string, string>>

/** Times with equal labels. */
export class Tally {
  readonly #bounds: readonly number[]
  /** Number of times in each bucket: up to its bound and above the one before. The last bucket has no bound. */
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

/** A metric in the form that the registry of prom-client expects. */
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

  /** The tally for these labels. Get it once, and keep it. */
  tally(labels: Labels): Tally {
    const key = Object.values(labels).join(' ')
    const known = this.#tallies.get(key)
    if (known) return known.tally
    const tally = new Tally(this.#bounds)
    this.#tallies.set(key, { labels, tally })
    return tally
  }

  /** All counts, in the form that the registry expects. */
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
