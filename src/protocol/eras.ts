/** Lists the revisions of MCP by era, and what each supports. */

export type Era = 'modern' | 'legacy'

/** Revisions that carry version, identity and capabilities on every request. Newest first. */
export const MODERN = ['2026-07-28'] as const
/** Revisions that open a session with `initialize`. Newest first. */
export const LEGACY = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'] as const

export type ModernRevision = (typeof MODERN)[number]
export type LegacyRevision = (typeof LEGACY)[number]

/** The newest revisions: those that the bridge asks for. */
export const NEWEST_LEGACY: LegacyRevision = LEGACY[0]
export const NEWEST_MODERN: ModernRevision = MODERN[0]

/**
 * A draft that SDKs still list (SUPPORTED_PROTOCOL_VERSIONS of @modelcontextprotocol/sdk 1.x and 2.x). For the bridge
 * it equals its successor.
 */
const ALIASES: Readonly<Record<string, LegacyRevision>> = { '2024-10-07': '2024-11-05' }

/** What a legacy revision supports. */
export interface LegacyTraits {
  /** Several messages in one array. Added in 2025-03-26, removed in 2025-06-18. */
  batches: boolean
  /** `MCP-Protocol-Version` on every request after `initialize`. */
  versionHeader: boolean
  /** Events have ids, and a broken stream can be resumed. */
  resumable: boolean
  /** Tool calls can be tasks. */
  tasks: boolean
  /** A stream starts with an event that has an id and no data, so that it can be resumed from its start (SEP-1699). */
  priming: boolean
  /** `completion/complete` has `context`: the arguments that are already known. */
  completionContext: boolean
  /** `completions` is a capability. Before, prompts and resources implied the method. */
  completionsCapability: boolean
  /** Blocks of type `audio`. */
  audio: boolean
  /** Blocks of type `resource_link`. */
  resourceLinks: boolean
  /** `structuredContent` of a tool's result, and its `outputSchema`. */
  structuredContent: boolean
  /** `title` and `_meta` on listed items and on blocks, `lastModified` in annotations. */
  titles: boolean
  /** `annotations` on tools. */
  toolAnnotations: boolean
  /** `icons`; for servers also `description` and `websiteUrl`. */
  icons: boolean
  /** A schema without `$schema` is JSON Schema 2020-12. */
  defaultDialect: boolean
  /** `message` in progress notifications. */
  progressMessage: boolean
  /** An elicitation has a mode: form or URL. */
  elicitationModes: boolean
  /** Defaults in forms for other types than booleans. */
  elicitationDefaults: boolean
  /** Titled options (`oneOf`) and multiple choice (`array`) in forms. */
  elicitationChoices: boolean
  /** Sampling with tools, and with several blocks in one message. */
  samplingTools: boolean
  /** `includeContext` needs a capability of its own. Before, `sampling` implied it. */
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

/** The legacy revision that a version string names, with aliases resolved. */
export function legacyRevision(version: unknown): LegacyRevision | undefined {
  if (typeof version !== 'string') return undefined
  if ((LEGACY as readonly string[]).includes(version)) return version as LegacyRevision
  return Object.hasOwn(ALIASES, version) ? ALIASES[version] : undefined
}

/** Whether a version is not before the newest modern revision in alphabetical order, as later dates and drafts. */
export function looksModern(version: string): boolean {
  return version >= NEWEST_MODERN
}

/** Names of revisions: dates, and drafts of them. */
const NAMED = /^(?:\d{4}-\d{2}-\d{2}|draft)/i

/** Whether a version names a later revision than the bridge knows. */
export function isLater(version: unknown): version is string {
  return typeof version === 'string' && NAMED.test(version) && version > NEWEST_MODERN
}
