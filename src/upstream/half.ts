/** What a half of `Server` has to supply: it answers for the server in one era. */
import type { ChangeNotice } from '../ports/replicas.js'
import type { Handler, Notice } from '../protocol/call.js'
import type { Capacity } from './capacity.js'
import type { Detection } from './era/detection.js'

export interface Half {
  /**
   * Answers a call. Throws a Contradiction where the server turns out not to be of this era: then it has done nothing for the
   * call, which can be answered in the other era.
   */
  readonly handle: Handler
  /** Carries a notification of a client to the server. Rejects where the server cannot be reached. */
  notify(notice: Notice): Promise<void>
  /** Tells those who listen of what another replica has heard. */
  heardElsewhere(notice: ChangeNotice): void
  /** Ends all that the half keeps; in a hurry, at once. */
  close(hurry: boolean): Promise<void>
}

/** What both halves ask about the server. */
export interface Access {
  /** What it speaks, and a channel to it. */
  detection: Detection
  /** How much of it may be used at once. */
  capacity: Capacity
}
