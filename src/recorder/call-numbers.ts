/** Numbers of calls for the recorder, and which calls have none because too many come. */

import { UNRECORDED } from '../ports/recorder.js'
import { PerSecond } from '../time/per-second.js'

/** Methods that are always recorded: a session tells the name of its client in its first call, lists tell what is secret. */
const ALWAYS: ReadonlySet<string> = new Set(['initialize', 'tools/list'])

export class CallNumbers {
  readonly #recorded: PerSecond
  #last = 0

  /** Records at most so many calls within a second. `onSkipped` is called with the number of skipped ones, once a second. */
  constructor(most: number, onSkipped: (calls: number) => void) {
    this.#recorded = new PerSecond(most, onSkipped)
  }

  /** The number of a call that begins now, by `performance.now()`; UNRECORDED if it is not recorded. */
  next(method: string, now: number): number {
    return this.#recorded.admits(now) || ALWAYS.has(method) ? this.further() : UNRECORDED
  }

  /** The number of a call that is recorded in any case. */
  further(): number {
    return ++this.#last
  }

  /** Counts a call that has ended and was not recorded. */
  skip(): void {
    this.#recorded.leaveOut()
  }
}
