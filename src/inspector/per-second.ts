/** Admits a number of events per second. Counts the dropped ones, and reports their number at most once a second. */

import { Windows } from '../base/limits/windows.js'

const SECOND = 1_000

export class PerSecond {
  readonly #most: number
  readonly #onLeftOut: (count: number) => void
  readonly #second = new Windows(1)
  /** Dropped events since the last report. */
  #leftOut = 0

  constructor(most: number, onLeftOut: (count: number) => void) {
    this.#most = most
    this.#onLeftOut = onLeftOut
  }

  /** Whether one more is admitted; `now` is in milliseconds of a monotonic clock. */
  admits(now: number): boolean {
    return this.#second.count('', SECOND, now).current <= this.#most
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
