/** Describes the legacy client to which results are adapted. */
import type { LegacyRevision, LegacyTraits } from '../eras.js'

/** What the lists of this session have announced about structured results. */
interface ToolMemory {
  /** Names of tools whose listed `outputSchema` is wrapped: an object with the value under `result`. */
  wrapped: Set<string>
}

/** The client, and how to adapt to it. */
export interface Downlevel {
  revision: LegacyRevision
  /** What that revision has. */
  traits: LegacyTraits
  /** Remove everything that the revision's schema does not define, even if all known clients ignore it. */
  strict: boolean
  memory: ToolMemory
  /** The bridge runs tool calls as tasks for this client. */
  tasks?: boolean
  /** Called for each loss, with its name: one of a fixed set, never text of a server. */
  lost(feature: string): void
}
