/** Caches results by text, for recurring texts: a client sends the same capabilities with each request. */
import { detach } from './source.js'

/** The size of a cache. */
export interface RecentOptions<T> {
  /** Most texts in each of the two generations. */
  max?: number
  /** Called when an entry is dropped. */
  dropped?: (value: T) => void
}

const MAX = 100
/** Longest key in characters; longer ones are not cached. */
export const MAX_KEY = 1_024

/**
 * A cache with two generations. An entry that is not used while `max` others are added is dropped. A hit is one
 * look-up, without any reordering.
 */
export class Recent<T> {
  readonly #max: number
  readonly #dropped: ((value: T) => void) | undefined
  #young = new Map<string, T>()
  #old = new Map<string, T>()

  constructor({ max = MAX, dropped }: RecentOptions<T> = {}) {
    this.#max = max
    this.#dropped = dropped
  }

  get(key: string): T | undefined {
    const found = this.#young.get(key)
    if (found !== undefined) return found
    const kept = this.#old.get(key)
    if (kept === undefined) return undefined
    this.#old.delete(key)
    this.#add(key, kept)
    return kept
  }

  /** Adds an entry, unless its key is too long. */
  set(key: string, value: T): void {
    if (key.length <= MAX_KEY) this.#add(detach(key), value)
    else this.#dropped?.(value)
  }

  *values(): Generator<T> {
    yield* this.#young.values()
    yield* this.#old.values()
  }

  #add(key: string, value: T): void {
    if (this.#young.size >= this.#max) {
      const gone = this.#old
      this.#old = this.#young
      this.#young = new Map()
      if (this.#dropped) for (const value of gone.values()) this.#dropped(value)
    }
    this.#young.set(key, value)
  }
}

/** The function with its results kept for as long as their arguments are. */
export function perObject<K extends object, T>(make: (key: K) => T): (key: K) => T {
  const known = new WeakMap<K, T>()
  return (key) => {
    let made = known.get(key)
    if (made === undefined) {
      made = make(key)
      known.set(key, made)
    }
    return made
  }
}

/** The function with its results cached by argument. */
export function memoize<T>(judge: (text: string) => T): (text: string) => T {
  const known = new Recent<T>()
  return (text) => {
    const found = known.get(text)
    if (found !== undefined) return found
    const judged = judge(text)
    known.set(text, judged)
    return judged
  }
}
