/**
 * Delivers the messages of a channel in slices, one per turn of the event loop, so that a flood does not delay other
 * channels.
 */

/** Messages per turn. Handling them takes one or two milliseconds. */
const SLICE = 64
const NONE: readonly never[] = []

export class Slices<T> {
  readonly #take: (item: T) => void
  readonly #drained: () => void
  #waiting: readonly T[] = NONE
  /** The number of items delivered in this turn. */
  #taken = 0
  /** This turn's slice is complete; the next one waits for the next turn. */
  #yielding = false
  #last: (() => void) | undefined
  /** The last item has been delivered. */
  #isOver = false

  /** `take` delivers an item. `drained` is called when all waiting items have been delivered. */
  constructor(take: (item: T) => void, drained: () => void) {
    this.#take = take
    this.#drained = drained
  }

  /** Whether items wait. The source has to pause until `drained` is called. */
  get busy(): boolean {
    return this.#waiting.length > 0
  }

  /** Delivers as many items as this turn allows; the others follow in order. Returns whether items wait. */
  deliver(items: readonly T[]): boolean {
    const all = this.#waiting.length > 0 ? [...this.#waiting, ...items] : items
    this.#waiting = all
    if (this.#yielding) return all.length > 0
    let at = 0
    // `take` may call `clear`.
    while (at < all.length && this.#taken < SLICE && this.#waiting.length > 0) {
      this.#taken++
      this.#take(all[at++] as T)
    }
    if (this.#waiting.length > 0) this.#waiting = at < all.length ? all.slice(at) : NONE
    if (this.#taken >= SLICE) {
      this.#yielding = true
      setImmediate(this.#next)
    }
    if (this.#waiting.length > 0) return true
    const last = this.#last
    if (!last) return false
    this.#last = undefined
    this.#isOver = true
    last()
    return false
  }

  /** Calls `last` when all items have been delivered, at once if none wait. `take` may call `finish` too. */
  finish(last: () => void): void {
    if (this.busy) this.#last ??= last
    else last()
  }

  /** Drops all waiting items. */
  clear(): void {
    this.#waiting = NONE
  }

  readonly #next = (): void => {
    this.#yielding = false
    this.#taken = 0
    if (!this.busy) return
    if (!this.deliver(NONE) && !this.#isOver) this.#drained()
  }
}
