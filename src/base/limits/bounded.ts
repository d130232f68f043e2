/**
 * A Map and a Set with a bound: a new entry beyond it drops the oldest one. They replace LRUCache where each session or
 * server has a collection that is mostly empty, because LRUCache allocates its full size at once.
 */

/** A Map with a bound. An entry that is set again becomes the newest. */
export class BoundedMap<K, V> extends Map<K, V> {
  /** The maximum number of entries. */
  max: number
  readonly #dropped: ((value: V, key: K) => void) | undefined

  /** `dropped` is called with an entry that a new one has pushed out. */
  constructor(max: number, dropped?: (value: V, key: K) => void) {
    super()
    this.max = max
    this.#dropped = dropped
  }

  override set(key: K, value: V): this {
    this.delete(key)
    super.set(key, value)
    while (this.size > this.max) this.#dropOldest()
    return this
  }

  #dropOldest(): void {
    const [oldest] = this
    if (!oldest) return
    const [key, value] = oldest
    this.delete(key)
    this.#dropped?.(value, key)
  }
}

/** A Set with a bound. A value that is added again becomes the newest. */
export class BoundedSet<T> extends Set<T> {
  readonly #max: number

  /** `max`: the maximum number of values. */
  constructor(max: number) {
    super()
    this.#max = max
  }

  override add(value: T): this {
    this.delete(value)
    super.add(value)
    if (this.size > this.#max) {
      const [oldest] = this
      this.delete(oldest as T)
    }
    return this
  }
}
