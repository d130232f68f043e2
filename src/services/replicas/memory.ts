/** What workers have in common, in the memory of the process that has started them. What has not been used for longest goes first. */
import { LRUCache } from 'lru-cache'
import type { Count, Swap } from './common.js'

/** Most counts. Strangers can cause them, so they have a bound of their own. */
const MAX_COUNTS = 100_000
/** Bytes of an entry besides its texts. */
const ENTRY = 200

export class CommonMemory {
  readonly #values: LRUCache<string, string>
  readonly #counts: LRUCache<string, { current: number; until: number }>

  /** `maxBytes`: of all values. */
  constructor(maxBytes: number) {
    const sizeCalculation = (text: string, key: string) => ENTRY + key.length + text.length
    this.#values = new LRUCache({ maxSize: maxBytes, sizeCalculation })
    this.#counts = new LRUCache({ max: MAX_COUNTS })
  }

  get(key: string): string | null {
    return this.#values.get(key) ?? null
  }

  set(key: string, text: string, milliseconds: number): void {
    this.#values.set(key, text, { ttl: wholeMs(milliseconds) })
  }

  add(key: string, text: string, milliseconds: number): boolean {
    if (this.get(key) !== null) return false
    this.set(key, text, milliseconds)
    return true
  }

  delete(key: string): void {
    this.#values.delete(key)
  }

  swap(key: string, { from, to, milliseconds }: Swap): boolean {
    if ((this.get(key) ?? '') !== from) return false
    if (to === '') this.delete(key)
    else this.set(key, to, milliseconds)
    return true
  }

  increment(key: string, milliseconds: number): Count {
    // Whole numbers: what is left of a time is never more than the time.
    const now = Math.trunc(performance.now())
    const known = this.#counts.get(key)
    const count = known && known.until > now ? known : { current: 0, until: now + milliseconds }
    count.current++
    this.#counts.set(key, count)
    return { current: count.current, ttl: count.until - now }
  }
}

function wholeMs(milliseconds: number): number {
  return Math.max(1, Math.round(milliseconds))
}
