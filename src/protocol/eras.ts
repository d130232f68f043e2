/** The revisions of MCP by era, and what each can say, as data. */

export type Era = 'modern' | 'legacy'

/** Revisions that carry version, identity and capabilities on every request. Newest first. */
export const MODERN = ['2026-07-28'] as const
/** Revisions that open a session with `initialize`. Newest first. */
export const LEGACY = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'] as const

export type ModernRevision = (typeof MODERN)[number]
export type LegacyRevision = (typeof LEGACY)[number]
export type Revision = ModernRevision | LegacyRevision

/** What the bridge asks for, of the revisions it knows. */
export const NEWEST_LEGACY: LegacyRevision = LEGACY[0]
export const NEWEST_MODERN: ModernRevision = MODERN[0]

/** A draft that deployed software still lists and that differs from its successor in nothing that matters here. */
const ALIASES: Readonly<Record<string, LegacyRevision>> = { '2024-10-07': '2024-11-05' }

interface LegacyTraits {
  /** Several messages in one array (added and removed again). */
  batches: boolean
  /** `MCP-Protocol-Version` on every request after `initialize`. */
  versionHeader: boolean
  /** Events carry ids, and a stream can be taken up again where it broke. */
  resumable: boolean
  /** A stream begins with an event that has an id and no data, so that even its first gap can be bridged (SEP-1699). */
  priming: boolean
  /** `completion/complete` takes the arguments that are already known. */
  completionContext: boolean
  /** `completions` is a capability; before, the method came with prompts and resources. */
  completionsCapability: boolean
}

export const traits: Readonly<Record<LegacyRevision, LegacyTraits>> = {
  '2025-11-25': {
    batches: false,
    versionHeader: true,
    resumable: true,
    priming: true,
    completionContext: true,
    completionsCapability: true,
  },
  '2025-06-18': {
    batches: false,
    versionHeader: true,
    resumable: true,
    priming: false,
    completionContext: true,
    completionsCapability: true,
  },
  '2025-03-26': {
    batches: true,
    versionHeader: false,
    resumable: true,
    priming: false,
    completionContext: false,
    completionsCapability: true,
  },
  '2024-11-05': {
    batches: false,
    versionHeader: false,
    resumable: false,
    priming: false,
    completionContext: false,
    completionsCapability: false,
  },
}

export function isModern(version: unknown): version is ModernRevision {
  return (MODERN as readonly unknown[]).includes(version)
}

/** The legacy revision that a version string names, aliases resolved. */
export function legacyRevision(version: unknown): LegacyRevision | undefined {
  if (typeof version !== 'string') return undefined
  return (LEGACY as readonly string[]).includes(version) ? (version as LegacyRevision) : ALIASES[version]
}

/** Whether a version is of the kind that promises per-request metadata: future dates and drafts sort after, too. */
export function looksModern(version: string): boolean {
  return version >= NEWEST_MODERN
}
