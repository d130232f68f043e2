/** A cache that reserves its bytes in the ledger, and drops the least recently used entries if others need the memory. */
import { LRUCache } from 'lru-cache'
import { type Memory, NOBODY, type Reservation } from '../../base/limits/memory.js'

/** Bounds of a cache, and where its bytes are counted. */
export interface CountedCacheOptions<V> {
  memory: Memory
  /** Most entries, and most bytes in total. */
  max: number
  maxBytes: number
  /** Milliseconds of a monotonic clock. */
  now?: () => number
  /** Called when an entry leaves the cache, for any reason. */
  gone?: (value: V) => void
}

/** An LRU cache that reserves its bytes in a `Memory`. */
export class CountedCache<V extends { bytes: number }> extends LRUCache<string, V> {
  readonly #reservation: Reservation
  readonly #most: number
  readonly #leave: () => void
  /** Counted here because `dispose` runs before LRUCache has updated its own count. */
  #bytes = 0

  constructor({ memory, max, maxBytes, now = () => performance.now(), gone }: CountedCacheOptions<V>) {
    // Without its own `max`, which allocates room for all entries at once: most caches stay almost empty.
    super({
      maxSize: maxBytes,
      sizeCalculation: ({ bytes }) => bytes,
      // `gone` must be called when an entry expires, not at the next look-up.
      ttlAutopurge: true,
      ttlResolution: 0,
      perf: { now },
      dispose: (value) => {
        this.#bytes -= value.bytes
        this.#reservation.resize(this.#bytes)
        gone?.(value)
      },
    })
    this.#most = max
    this.#reservation = memory.reserve(NOBODY)
    this.#leave = memory.addKeeper((bytes, principal) => {
      // Entries are not counted by principal, so they are not freed for a single principal.
      if (principal === undefined) this.#giveUp(bytes)
    })
  }

  /** Stores an entry for `ttl` milliseconds (0: no limit). Returns whether there is room. */
  keep(key: string, value: V, ttl = 0): boolean {
    if (value.bytes > this.maxSize || this.#reservation.resize(this.#bytes + value.bytes)) return false
    if (!this.has(key)) while (this.size >= this.#most) this.pop()
    this.#bytes += value.bytes
    this.set(key, value, { ttl })
    return true
  }

  /** Drops all entries and returns their memory. */
  close(): void {
    this.clear()
    this.#leave()
    this.#reservation.end()
  }

  #giveUp(bytes: number): void {
    for (let given = 0; given < bytes && this.size > 0; ) given += this.pop()?.bytes ?? 0
  }
}
