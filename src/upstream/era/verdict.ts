/** What is known of the era that a server speaks. */
import type { Era } from '../../protocol/eras.js'
import type { Transport } from '../transport/channel.js'

/** What is known of a server's era, and by what. */
export interface Verdict {
  era: Era
  /** Of a legacy server it is known once somebody has opened a session. */
  revision: string | undefined
  why: string
  transport: Transport
  since: number
  /** Milliseconds for which it holds. */
  lifetime: number
  /** The server did not say so itself. */
  weak: boolean
  /** A modern server names legacy revisions among those that it supports. */
  listsLegacy: boolean
  /** Whether a modern server keeps sessions as well; undefined as long as nobody has asked. */
  alsoLegacy?: boolean
}
