/** Admits a number of events per second. Counts the dropped ones, and reports their number at most once a second. */

const SECOND = 1_000

export class PerSecond {
  readonly #most: number
  readonly #onLeftOut: (count: number) => void
  /** Start of the current second, and the number admitted in it. */
  #since = Number.NEGATIVE_INFINITY
  #admitted = 0
  /** Dropped events since the last report. */
  #leftOut = 0

  constructor(most: number, onLeftOut: (count: number) => void) {
    this.#most = most
    this.#onLeftOut = onLeftOut
  }

  /** Whether one more is admitted; `now` is in milliseconds of a monotonic clock. */
  admits(now: number): boolean {
    if (now - this.#since >= SECOND) {
      this.#since = now
      this.#admitted = 0
    }
    if (this.#admitted >= this.#most) return false
    this.#admitted++
    return true
  }

  /** Counts a dropped event. */
  leaveOut(): void {
    if (this.#leftOut++ > 0) return
    setTimeout(() => {
      const count = this.#leftOut
      this.#leftOut = 0
      this.#onLeftOut(count)
    }, SECOND).unref()
  }
}
