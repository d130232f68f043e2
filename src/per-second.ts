/** How many of something are admitted within a second. The others are counted, and their number is told once a second. */

const SECOND = 1_000

export class PerSecond {
  readonly #most: number
  readonly #onLeftOut: (count: number) => void
  /** When the current second began, and how many were admitted in it. */
  #since = Number.NEGATIVE_INFINITY
  #admitted = 0
  /** Those that were left out since their number was told. */
  #leftOut = 0

  constructor(most: number, onLeftOut: (count: number) => void) {
    this.#most = most
    this.#onLeftOut = onLeftOut
  }

  /** Whether one more is admitted now, in milliseconds of a monotonic clock. */
  admits(now: number): boolean {
    if (now - this.#since >= SECOND) {
      this.#since = now
      this.#admitted = 0
    }
    if (this.#admitted >= this.#most) return false
    this.#admitted++
    return true
  }

  /** Counts one that was left out. */
  leaveOut(): void {
    if (this.#leftOut++ > 0) return
    setTimeout(() => {
      const count = this.#leftOut
      this.#leftOut = 0
      this.#onLeftOut(count)
    }, SECOND).unref()
  }
}
