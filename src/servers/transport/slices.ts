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
  /** Items that wait, from `#next` on: those before have been delivered. */
  #waiting: T[] = []
  #next = 0
  /** The number of items delivered in this turn. */
  #taken = 0
  #isDelivering = false
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
    return this.#isDelivering || this.#waiting.length > 0
  }

  /** Delivers as many items as this turn allows; the others follow in order. Returns whether items wait. */
  deliver(items: readonly T[]): boolean {
    for (const item of items) this.#waiting.push(item)
    if (this.#yielding || this.#isDelivering) return this.#waiting.length > 0
    this.#isDelivering = true
    try {
      // `take` may call `clear`.
      while (this.#next < this.#waiting.length && this.#taken < SLICE) {
        this.#taken++
        this.#take(this.#waiting[this.#next++] as T)
      }
    } finally {
      this.#isDelivering = false
      // Not after each slice, because that would copy all others each time.
      if (this.#next === this.#waiting.length) this.#waiting.length = this.#next = 0
      else if (2 * this.#next > this.#waiting.length) {
        this.#waiting.splice(0, this.#next)
        this.#next = 0
      }
      // Not only after a whole slice: an item whose handling failed must not stop the others.
      if (this.#taken >= SLICE || this.#waiting.length > 0) {
        this.#yielding = true
        setImmediate(this.#continue)
      }
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

  clear(): void {
    this.#waiting = []
    this.#next = 0
  }

  readonly #continue = (): void => {
    this.#yielding = false
    this.#taken = 0
    if (!this.busy) return
    if (!this.deliver(NONE) && !this.#isOver) this.#drained()
  }
}
