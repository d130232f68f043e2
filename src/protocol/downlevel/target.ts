/** Who is spoken to: a client of a legacy revision, and what it has been promised so far. */
import { type LegacyRevision, type LegacyTraits, traits } from '../eras.js'

/** What the lists told of this session have promised about structured results. */
export interface ToolMemory {
  /** Names of tools whose `outputSchema` was told as the schema of an object that has the value under `result`. */
  wrapped: Set<string>
}

export interface Downlevel {
  revision: LegacyRevision
  /** Nothing may be said that the revision's schema does not have, even where all known clients ignore it. */
  strict: boolean
  memory: ToolMemory
  /** Calls of tools can be tasks. */
  tasks?: boolean
  /** Called for each loss, with the name of what was lost: one of a few words, never anything that a server wrote. */
  lost(feature: string): void
}

/** Something that a revision has or lacks. */
export type Feature = keyof LegacyTraits

export function speaks(to: Downlevel, feature: Feature): boolean {
  return traits[to.revision][feature]
}
