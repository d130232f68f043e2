/** A cache whose contents are lent by the ledger of bytes: where others need more than there is, what nobody has asked for longest goes. */
import { LRUCache } from 'lru-cache'
import { type Loan, type Memory, NOBODY } from '../protocol/memory.js'

export interface LentCacheOptions<V> {
  memory: Memory
  /** Things at once, and bytes of all of them. */
  max: number
  maxBytes: number
  /** Milliseconds, as a clock has them that is never set. */
  now?: () => number
  /** Something is kept no longer, for whatever reason. */
  gone?: (value: V) => void
}

export class LentCache<V extends { bytes: number }> extends LRUCache<string, V> {
  readonly #loan: Loan
  readonly #leave: () => void
  /** As those have it who are told that something is gone: it goes before the cache has counted that. */
  #bytes = 0

  constructor({ memory, max, maxBytes, now = () => performance.now(), gone }: LentCacheOptions<V>) {
    super({
      max,
      maxSize: maxBytes,
      sizeCalculation: ({ bytes }) => bytes,
      // Those who listen for what has expired are to know then, and not when somebody looks.
      ttlAutopurge: true,
      ttlResolution: 0,
      perf: { now },
      dispose: (value) => {
        this.#bytes -= value.bytes
        this.#loan.hold(this.#bytes)
        gone?.(value)
      },
    })
    this.#loan = memory.borrow(NOBODY)
    this.#leave = memory.addKeeper((bytes, principal) => {
      // Whose it is what is kept, nobody knows: it is given up for all, and for no one.
      if (principal === undefined) this.#giveUp(bytes)
    })
  }

  /** Keeps something for some milliseconds, or for as long as there is room. Gives whether there is any. */
  keep(key: string, value: V, ttl = 0): boolean {
    if (value.bytes > this.maxSize || this.#loan.hold(this.#bytes + value.bytes)) return false
    this.#bytes += value.bytes
    this.set(key, value, { ttl })
    return true
  }

  /** Keeps nothing any more. */
  close(): void {
    this.clear()
    this.#leave()
    this.#loan.end()
  }

  #giveUp(bytes: number): void {
    for (let given = 0; given < bytes && this.size > 0; ) given += this.pop()?.bytes ?? 0
  }
}
