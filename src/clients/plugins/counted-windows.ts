/** Counts per name in windows, of one minute unless another time is named: in all replicas together where they share a store, otherwise in this process. */

/** The count in the current window of a name, and the milliseconds until the window ends. */
export interface Counted {
  current: number
  ttl: number
}

/** Counts one more in a window that all replicas share. The window ends so many milliseconds after its first count. */
export type CountShared = (name: string, milliseconds: number) => Promise<Counted>

/** Milliseconds of a window. */
export const WINDOW = 60_000
/** Most names with an open window. For one more, the oldest window ends early. */
const MAX_WINDOWS = 10_000

/** The windows of all names. */
export class CountedWindows {
  /** In the order in which they began. */
  readonly #open = new Map<string, { current: number; until: number }>()
  readonly #shared: CountShared | undefined
  readonly #now: () => number

  /** `now` is in milliseconds. */
  constructor(shared?: CountShared, now: () => number = () => performance.now()) {
    this.#shared = shared
    this.#now = now
  }

  /**
   * Counts one more, in a window of so many milliseconds. While the shared store is unavailable, each replica counts for
   * itself. Never rejects.
   */
  async count(name: string, milliseconds = WINDOW): Promise<Counted> {
    if (!this.#shared) return this.#countHere(name, milliseconds)
    return this.#shared(name, milliseconds).catch(() => this.#countHere(name, milliseconds))
  }

  #countHere(name: string, milliseconds: number): Counted {
    const now = this.#now()
    const window = this.#open.get(name)
    if (window && window.until > now) {
      window.current++
      return { current: window.current, ttl: window.until - now }
    }
    this.#open.delete(name)
    for (const [other, { until }] of this.#open) {
      if (until > now && this.#open.size < MAX_WINDOWS) break
      this.#open.delete(other)
    }
    this.#open.set(name, { current: 1, until: now + milliseconds })
    return { current: 1, ttl: milliseconds }
  }
}
