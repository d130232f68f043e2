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

export interface LegacyTraits {
  /** Several messages in one array (added and removed again). */
  batches: boolean
  /** `MCP-Protocol-Version` on every request after `initialize`. */
  versionHeader: boolean
  /** Events carry ids, and a stream can be taken up again where it broke. */
  resumable: boolean
  /** Calls can be tasks. */
  tasks: boolean
  /** A stream begins with an event that has an id and no data, so that even its first gap can be bridged (SEP-1699). */
  priming: boolean
  /** `completion/complete` takes the arguments that are already known. */
  completionContext: boolean
  /** `completions` is a capability; before, the method came with prompts and resources. */
  completionsCapability: boolean
  /** Blocks of type `audio`. */
  audio: boolean
  /** Blocks of type `resource_link`. */
  resourceLinks: boolean
  /** `structuredContent` of a tool's result, and the `outputSchema` that promises it. */
  structuredContent: boolean
  /** `title` and `_meta` on what is listed and on blocks, `lastModified` in annotations. */
  titles: boolean
  /** `annotations` on tools. */
  toolAnnotations: boolean
  /** `icons`, and of a server `description` and `websiteUrl`. */
  icons: boolean
  /** A schema that does not name its dialect is JSON Schema 2020-12. */
  defaultDialect: boolean
  /** `message` in progress notifications. */
  progressMessage: boolean
  /** An elicitation says whether it is a form or a URL. */
  elicitationModes: boolean
  /** Defaults in forms other than those of booleans. */
  elicitationDefaults: boolean
  /** Titled options (`oneOf`) and selections of several (`array`) in forms. */
  elicitationChoices: boolean
  /** Sampling with tools, and with several blocks in one message. */
  samplingTools: boolean
  /** `includeContext` has to be declared; before, it came with sampling. */
  contextCapability: boolean
}

export const traits: Readonly<Record<LegacyRevision, LegacyTraits>> = {
  '2025-11-25': {
    batches: false,
    versionHeader: true,
    resumable: true,
    tasks: true,
    priming: true,
    completionContext: true,
    completionsCapability: true,
    audio: true,
    resourceLinks: true,
    structuredContent: true,
    titles: true,
    toolAnnotations: true,
    icons: true,
    defaultDialect: true,
    progressMessage: true,
    elicitationModes: true,
    elicitationDefaults: true,
    elicitationChoices: true,
    samplingTools: true,
    contextCapability: true,
  },
  '2025-06-18': {
    batches: false,
    versionHeader: true,
    resumable: true,
    tasks: false,
    priming: false,
    completionContext: true,
    completionsCapability: true,
    audio: true,
    resourceLinks: true,
    structuredContent: true,
    titles: true,
    toolAnnotations: true,
    icons: false,
    defaultDialect: false,
    progressMessage: true,
    elicitationModes: false,
    elicitationDefaults: false,
    elicitationChoices: false,
    samplingTools: false,
    contextCapability: false,
  },
  '2025-03-26': {
    batches: true,
    versionHeader: false,
    resumable: true,
    tasks: false,
    priming: false,
    completionContext: false,
    completionsCapability: true,
    audio: true,
    resourceLinks: false,
    structuredContent: false,
    titles: false,
    toolAnnotations: true,
    icons: false,
    defaultDialect: false,
    progressMessage: true,
    elicitationModes: false,
    elicitationDefaults: false,
    elicitationChoices: false,
    samplingTools: false,
    contextCapability: false,
  },
  '2024-11-05': {
    batches: false,
    versionHeader: false,
    resumable: false,
    tasks: false,
    priming: false,
    completionContext: false,
    completionsCapability: false,
    audio: false,
    resourceLinks: false,
    structuredContent: false,
    titles: false,
    toolAnnotations: false,
    icons: false,
    defaultDialect: false,
    progressMessage: false,
    elicitationModes: false,
    elicitationDefaults: false,
    elicitationChoices: false,
    samplingTools: false,
    contextCapability: false,
  },
}

export function isModern(version: unknown): version is ModernRevision {
  return (MODERN as readonly unknown[]).includes(version)
}

/** The legacy revision that a version string names, aliases resolved. */
export function legacyRevision(version: unknown): LegacyRevision | undefined {
  if (typeof version !== 'string') return undefined
  if ((LEGACY as readonly string[]).includes(version)) return version as LegacyRevision
  return Object.hasOwn(ALIASES, version) ? ALIASES[version] : undefined
}

/** Whether a version is of the kind that promises per-request metadata: future dates and drafts sort after, too. */
export function looksModern(version: string): boolean {
  return version >= NEWEST_MODERN
}
