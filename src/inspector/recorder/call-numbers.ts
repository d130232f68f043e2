/** Numbers calls for the recorder. Calls above a rate are skipped: they get no number. */

import { UNRECORDED } from '../../mcp/ports/recorder.js'
import { PerSecond } from '../per-second.js'

/** Methods that are always recorded: `initialize` names the client, and `tools/list` marks secret arguments. */
const ALWAYS: ReadonlySet<string> = new Set(['initialize', 'tools/list'])

export class CallNumbers {
  readonly #recorded: PerSecond
  #last = 0

  /** Records at most `most` calls per second. `onSkipped` gets the number of skipped calls, once a second. */
  constructor(most: number, onSkipped: (calls: number) => void) {
    this.#recorded = new PerSecond(most, onSkipped)
  }

  /** The number of a call that starts now (`performance.now()`); UNRECORDED if it is skipped. */
  next(method: string, now: number): number {
    return this.#recorded.admits(now) || ALWAYS.has(method) ? this.further() : UNRECORDED
  }

  /** The next number, at any rate. */
  further(): number {
    return ++this.#last
  }

  /** Counts a skipped call that has ended. */
  skip(): void {
    this.#recorded.leaveOut()
  }
}
