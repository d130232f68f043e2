/** The verdict: the known facts about the era of a server. */
import type { Era } from '../../mcp/protocol/eras.js'
import type { Transport } from '../transport/channel.js'

/**
 * A server's era, and how it was determined. Only `Detection` changes a verdict, in place, so that all holders see the
 * change.
 */
export interface Verdict {
  readonly era: Era
  /** For a legacy server, undefined until a session has been opened. */
  readonly revision: string | undefined
  /** The reason, which completes a sentence after "because". */
  readonly why: string
  readonly transport: Transport
  /** When it was determined, by `performance.now()`. */
  readonly since: number
  /** Milliseconds for which it is valid. */
  readonly lifetime: number
  /** It is an assumption, because the server's answer did not show its era. */
  readonly weak: boolean
  /** A modern server lists legacy revisions as supported. */
  readonly listsLegacy: boolean
  /** Whether a modern server supports sessions, too; undefined until it has been checked. */
  readonly alsoLegacy?: boolean
}
