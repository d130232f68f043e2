/** What workers have in common, in the memory of the process that has started them. What has not been used for longest goes first, and of counts what began first. */
import { LRUCache } from 'lru-cache'
import { Windows } from '../../base/limits/windows.js'
import type { Count, Swap } from './common.js'

/** Most counts. Strangers can cause them, so they have a bound of their own. */
const MAX_COUNTS = 100_000
/** Bytes of an entry besides its texts. */
const ENTRY = 200

export class CommonMemory {
  readonly #values: LRUCache<string, string>
  readonly #counts = new Windows(MAX_COUNTS)

  /** `maxBytes`: of all values. */
  constructor(maxBytes: number) {
    const sizeCalculation = (text: string, key: string) => ENTRY + key.length + text.length
    this.#values = new LRUCache({ maxSize: maxBytes, sizeCalculation })
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
    return this.#counts.count(key, milliseconds, Math.trunc(performance.now()))
  }
}

function wholeMs(milliseconds: number): number {
  return Math.max(1, Math.round(milliseconds))
}
