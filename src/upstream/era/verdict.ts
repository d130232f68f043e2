/** The verdict: what is known about the era of a server. */
import type { Era } from '../../protocol/eras.js'
import type { Transport } from '../transport/channel.js'

/**
 * A server's era, and how it was determined. Only `Detection` changes a verdict, in place: all holders see the change.
 */
export interface Verdict {
  readonly era: Era
  /** For a legacy server, undefined until a session has been opened. */
  readonly revision: string | undefined
  /** The reason, in words that follow "because". */
  readonly why: string
  readonly transport: Transport
  /** When it was determined, by `performance.now()`. */
  readonly since: number
  /** Milliseconds for which it is valid. */
  readonly lifetime: number
  /** It is an assumption: the server's answer did not show its era. */
  readonly weak: boolean
  /** A modern server lists legacy revisions as supported. */
  readonly listsLegacy: boolean
  /** Whether a modern server supports sessions, too; undefined until it has been checked. */
  readonly alsoLegacy?: boolean
}
