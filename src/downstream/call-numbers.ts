/** Numbers of calls for the inspector, and which calls have none because too many come. */
import { UNRECORDED } from '../ports/seen.js'

const SECOND = 1_000
/** Methods that are always recorded: a session tells the name of its client in its first call, lists tell what is secret. */
const ALWAYS: ReadonlySet<string> = new Set(['initialize', 'tools/list'])

export class CallNumbers {
  readonly #most: number
  readonly #onSkipped: (calls: number) => void
  #last = 0
  /** `performance.now()` when the current second began, and the calls that were recorded in it. */
  #since = Number.NEGATIVE_INFINITY
  #recorded = 0
  /** Calls that have ended since they were counted last. */
  #skipped = 0

  /** Records at most so many calls within a second. `onSkipped` is called with the number of skipped ones, once a second. */
  constructor(most: number, onSkipped: (calls: number) => void) {
    this.#most = most
    this.#onSkipped = onSkipped
  }

  /** The number of a call that begins now, by `performance.now()`; UNRECORDED if it is not recorded. */
  next(method: string, now: number): number {
    if (now - this.#since >= SECOND) {
      this.#since = now
      this.#recorded = 0
    }
    if (this.#recorded >= this.#most && !ALWAYS.has(method)) return UNRECORDED
    this.#recorded++
    return this.further()
  }

  /** The number of a call that is recorded in any case. */
  further(): number {
    return ++this.#last
  }

  /** Counts a call that has ended and was not recorded. */
  skip(): void {
    if (this.#skipped++ > 0) return
    setTimeout(() => {
      this.#onSkipped(this.#skipped)
      this.#skipped = 0
    }, SECOND).unref()
  }
}
