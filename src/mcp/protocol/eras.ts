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

/** What legacy revisions support, and since which. */
const SINCE = {
  /** `MCP-Protocol-Version` on every request after `initialize`. */
  versionHeader: '2025-06-18',
  /** Events have ids, and a broken stream can be resumed. */
  resumable: '2025-03-26',
  /** Tool calls can be tasks. */
  tasks: '2025-11-25',
  /** A stream starts with an event that has an id and no data, so that it can be resumed from its start (SEP-1699). */
  priming: '2025-11-25',
  /** `completion/complete` has `context`: the arguments that are already known. */
  completionContext: '2025-06-18',
  /** `completions` is a capability. Before, prompts and resources implied the method. */
  completionsCapability: '2025-03-26',
  /** Blocks of type `audio`. */
  audio: '2025-03-26',
  /** Blocks of type `resource_link`. */
  resourceLinks: '2025-06-18',
  /** `structuredContent` of a tool's result, and its `outputSchema`. */
  structuredContent: '2025-06-18',
  /** `title` and `_meta` on listed items and on blocks, `lastModified` in annotations. */
  titles: '2025-06-18',
  /** `annotations` on tools. */
  toolAnnotations: '2025-03-26',
  /** `icons`; for servers also `description` and `websiteUrl`. */
  icons: '2025-11-25',
  /** A schema without `$schema` is JSON Schema 2020-12. */
  defaultDialect: '2025-11-25',
  /** `message` in progress notifications. */
  progressMessage: '2025-03-26',
  /** An elicitation has a mode: form or URL. */
  elicitationModes: '2025-11-25',
  /** Defaults in forms for other types than booleans. */
  elicitationDefaults: '2025-11-25',
  /** Titled options (`oneOf`) and multiple choice (`array`) in forms. */
  elicitationChoices: '2025-11-25',
  /** Sampling with tools, and with several blocks in one message. */
  samplingTools: '2025-11-25',
  /** `includeContext` needs a capability of its own. Before, `sampling` implied it. */
  contextCapability: '2025-11-25',
} as const satisfies Record<string, LegacyRevision>

/** Something that legacy revisions have or lack. `batches`: several messages in one array. */
export type Feature = keyof typeof SINCE | 'batches'

export type LegacyTraits = Readonly<Record<Feature, boolean>>

export const traits = Object.fromEntries(LEGACY.map((revision) => [revision, traitsOf(revision)])) as Readonly<
  Record<LegacyRevision, LegacyTraits>
>

function traitsOf(revision: LegacyRevision): LegacyTraits {
  const has = Object.entries(SINCE).map(([feature, since]) => [feature, revision >= since])
  // Added in 2025-03-26, removed in 2025-06-18.
  return { ...(Object.fromEntries(has) as Record<keyof typeof SINCE, boolean>), batches: revision === '2025-03-26' }
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
