/** Remembers what came of a text, for texts that come again and again: what a client says of itself never changes. */
import { own } from './own.js'

export interface RecentOptions<T> {
  /** Texts of each of the two generations that are kept. */
  max?: number
  /** Something is kept no longer. */
  dropped?: (value: T) => void
}

const MAX = 100
/** Characters of a text; longer ones are not kept. */
export const MAX_KEY = 1_024

/**
 * What texts have led to lately. What has not been asked for while so many others were new is dropped: a hit costs one
 * look-up, and nothing has to be put in order.
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

  /** Keeps what has just been made, unless its key is too long. */
  set(key: string, value: T): void {
    if (key.length <= MAX_KEY) this.#add(own(key), value)
    else this.#dropped?.(value)
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
