/** Hands on what one channel has read, a slice in each turn of the event loop, so that a flood does not hold up the others. */

/** Messages after which others have their turn: a millisecond or two, with all that follows from them. */
const SLICE = 64
const NONE: readonly never[] = []

export class Slices<T> {
  readonly #take: (item: T) => void
  readonly #drained: () => void
  #waiting: readonly T[] = NONE
  /** Handed on since others had their turn. */
  #taken = 0
  /** Others are having their turn. */
  #yielding = false
  #last: (() => void) | undefined

  /** `drained` is told when everything has been handed on that had to wait. */
  constructor(take: (item: T) => void, drained: () => void) {
    this.#take = take
    this.#drained = drained
  }

  /** Whether something has not been handed on yet. Its source has to pause until it has been. */
  get busy(): boolean {
    return this.#waiting.length > 0
  }

  /** Hands on as much as this turn may have left; the rest follows in its order. */
  push(items: readonly T[]): void {
    this.#waiting = this.busy ? [...this.#waiting, ...items] : items
    if (!this.#yielding) this.#handOn()
  }

  /** Runs `last` when everything has been handed on that has been read so far: at once where nothing waits. */
  finish(last: () => void): void {
    if (this.busy) this.#last ??= last
    else last()
  }

  /** What has not been handed on is not wanted any more. */
  clear(): void {
    this.#waiting = NONE
  }

  #handOn(): void {
    const items = this.#waiting
    let at = 0
    // What takes an item may clear the rest.
    while (at < items.length && this.#taken < SLICE && this.busy) {
      this.#taken++
      this.#take(items[at++] as T)
    }
    if (this.busy) this.#waiting = at < items.length ? items.slice(at) : NONE
    if (this.#taken < SLICE) return
    this.#yielding = true
    setImmediate(this.#next)
  }

  readonly #next = (): void => {
    this.#yielding = false
    this.#taken = 0
    if (!this.busy) return
    this.#handOn()
    if (this.busy) return
    const last = this.#last
    this.#last = undefined
    if (last) last()
    else this.#drained()
  }
}
