/** What is known of the era that a server speaks. */
import type { Era } from '../../protocol/eras.js'
import type { Transport } from '../transport/channel.js'

/** What is known of a server's era, and by what. Only `Detection` changes it; who holds one sees the change. */
export interface Verdict {
  readonly era: Era
  /** Of a legacy server it is known once somebody has opened a session. */
  readonly revision: string | undefined
  readonly why: string
  readonly transport: Transport
  readonly since: number
  /** Milliseconds for which it holds. */
  readonly lifetime: number
  /** The server did not say so itself. */
  readonly weak: boolean
  /** A modern server names legacy revisions among those that it supports. */
  readonly listsLegacy: boolean
  /** Whether a modern server keeps sessions as well; undefined as long as nobody has asked. */
  readonly alsoLegacy?: boolean
}
