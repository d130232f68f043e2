/** Merges the capabilities, instructions and lists of a group's servers. */

import {
  EMPTY,
  edit,
  type Json,
  keys,
  NO_ORIGIN,
  objectIn,
  type Payload,
  parseObject,
  raw,
  value,
  write,
} from '../../base/rpc/splice.js'
import { foreignExtensions, foreignIn, hasForeign, KNOWN_EXTENSIONS } from '../../mcp/protocol/announced.js'
import type { CacheHint } from '../../mcp/protocol/call.js'
import { MODERN } from '../../mcp/protocol/eras.js'
import { EVENTS_EXTENSION, RELATED_TASK, withoutOwnKeys } from '../../mcp/protocol/meta.js'
import { CHANGING_LISTS } from '../../mcp/protocol/subscriptions.js'

/** The answer of a server to `server/discover`. */
export interface DiscoverAnswer {
  server: string
  prefix: string
  result: Payload
}

/** Every list of a group can change, because servers are added and removed. */
const LIST_CHANGES: Json = '{"listChanged":true}'

/** Server capabilities other than extensions. */
const PLAIN = ['completions', 'logging'] as const

/** The text of a list without its brackets; empty for an empty list. */
export function itemsOf(list: Json): string {
  return list.slice(1, -1).trim()
}

/** The list of all items, in this order. */
export function joinedLists(items: readonly string[]): Json {
  return `[${items.filter((text) => text !== '').join(',')}]`
}

/** The cache hint of a merged result: the shortest time, and the narrowest audience. */
export function leastHint(hints: readonly (CacheHint | undefined)[]): CacheHint {
  if (hints.length === 0) return { ttlMs: 0, scope: 'private' }
  const known = hints.map((hint) => hint ?? ({ ttlMs: 0, scope: 'private' } as const))
  return {
    ttlMs: Math.min(...known.map(({ ttlMs }) => ttlMs)),
    scope: known.every(({ scope }) => scope === 'public') ? 'public' : 'private',
  }
}

/**
 * The merged capabilities of all servers. `isComplete`: the answers of all servers are known. `hasTools`: the group itself
 * has tools.
 */
export function joinedCapabilities(
  discovered: readonly DiscoverAnswer[],
  { isComplete, hasTools = false }: { isComplete: boolean; hasTools?: boolean },
): Payload {
  const offered = discovered.map(({ result }) => objectIn(result, 'capabilities') ?? EMPTY)
  const all: Record<string, Json> = {}
  for (const { capability } of CHANGING_LISTS) {
    const given = offered.flatMap((one) => objectIn(one, capability) ?? [])
    if (given.length === 0 && isComplete && !(hasTools && capability === 'tools')) continue
    const subscribes =
      capability === 'resources' && (!isComplete || given.some((one) => value(one, 'subscribe') === true))
    all[capability] = subscribes ? '{"listChanged":true,"subscribe":true}' : LIST_CHANGES
  }
  for (const name of PLAIN) if (!isComplete || offered.some((one) => objectIn(one, name))) all[name] = '{}'
  // Some clients look for events here, as drafts of the extension have it.
  if (offered.some((one) => objectIn(one, 'events'))) all['events'] = LIST_CHANGES
  const extensions = joinedSettings(
    offered.flatMap((one) => objectIn(one, 'extensions') ?? []),
    KNOWN_EXTENSIONS,
  )
  const only = onlyForeign(discovered)
  const foreign = only && objectIn(only.result, 'capabilities')
  const theirs = foreign && objectIn(foreign, 'extensions')
  const merged = theirs
    ? edit(extensions, Object.fromEntries(foreignExtensions(theirs).map((key) => [key, raw(theirs, key)])))
    : extensions
  if (keys(merged).length > 0) all['extensions'] = write(merged)
  return edit(foreign ? foreignIn(foreign) : NO_ORIGIN, all)
}

/** The only server with capabilities that a group cannot route; messages that name no server go to it. */
export function onlyForeign<D extends Pick<DiscoverAnswer, 'result'>>(discovered: readonly D[]): D | undefined {
  const [only, ...others] = discovered.filter(({ result }) => {
    const capabilities = objectIn(result, 'capabilities')
    return capabilities !== undefined && hasForeign(capabilities)
  })
  return others.length === 0 ? only : undefined
}

/** The settings of the named extensions, each merged from all servers. */
function joinedSettings(all: readonly Payload[], named: ReadonlySet<string>): Payload {
  const joined: Record<string, Json> = {}
  for (const name of named) {
    const settings = all.flatMap((one) => objectIn(one, name) ?? [])
    if (name === EVENTS_EXTENSION && settings.length > 0) settings.push(parseObject(LIST_CHANGES))
    const [only, ...others] = settings.map(write)
    if (only === undefined) continue
    joined[name] =
      others.length === 0 ? only : JSON.stringify(settings.map((one) => JSON.parse(write(one)) as object).reduce(union))
  }
  return edit(NO_ORIGIN, joined)
}

function union(one: object, other: object): object {
  const merged = new Map<string, unknown>(Object.entries(one))
  for (const [key, more] of Object.entries(other)) {
    const known = merged.get(key)
    if (Array.isArray(known) && Array.isArray(more)) merged.set(key, [...new Set([...known, ...(more as unknown[])])])
    else if (typeof known === 'boolean' && typeof more === 'boolean') merged.set(key, known || more)
    else if (!merged.has(key)) merged.set(key, more)
  }
  return Object.fromEntries(merged)
}

/**
 * The group's own instructions, followed by those of each server under a heading, in at most `most` bytes. Undefined if
 * there are none.
 */
export function joinedInstructions(
  discovered: readonly DiscoverAnswer[],
  { bareNames, most, own }: { bareNames: boolean; most: number; own?: string | undefined },
): string | undefined {
  const texts = discovered.flatMap(({ server, prefix, result }) => {
    const text = value(result, 'instructions')
    if (typeof text !== 'string' || text.trim() === '') return []
    const heading = bareNames
      ? `# ${server}\n\n`
      : `# ${server}\n\nThe names of its tools and prompts begin with ${prefix}__.\n\n`
    return [{ heading, text: text.trim() }]
  })
  if (texts.length === 0) return own
  const headings = texts.reduce((sum, { heading }) => sum + heading.length + 2, own === undefined ? 0 : own.length + 2)
  const shares = sharesOf(
    texts.map(({ text }) => bytesOf(text)),
    Math.max(0, most - headings),
  )
  const theirs = texts.map(({ heading, text }, i) => heading + cutOff(text, shares[i] as number))
  return [...(own === undefined ? [] : [own]), ...theirs].join('\n\n')
}

/** Divides `most` among texts of these sizes: what a short text does not need goes to the others. */
function sharesOf(sizes: readonly number[], most: number): number[] {
  const shares = sizes.map(() => 0)
  let left = most
  const order = sizes.map((size, i) => ({ size, i })).toSorted((a, b) => a.size - b.size)
  for (const [at, { size, i }] of order.entries()) {
    const share = Math.min(size, Math.floor(left / (order.length - at)))
    shares[i] = share
    left -= share
  }
  return shares
}

const encoder = new TextEncoder()
const decoder = new TextDecoder()
const bytesOf = (text: string) => encoder.encode(text).length
const ELLIPSIS = '…'

function cutOff(text: string, most: number): string {
  const bytes = encoder.encode(text)
  if (bytes.length <= most) return text
  const kept = decoder.decode(bytes.subarray(0, Math.max(0, most - bytesOf(ELLIPSIS)))).replace(/\uFFFD+$/, '')
  return kept + ELLIPSIS
}

/** The answer of a group to `server/discover`. */
export function joinedDiscovery(
  discovered: readonly DiscoverAnswer[],
  { instructions, ...capabilities }: { isComplete: boolean; hasTools?: boolean; instructions: string | undefined },
): Payload {
  return edit(NO_ORIGIN, {
    supportedVersions: JSON.stringify(MODERN),
    capabilities: write(joinedCapabilities(discovered, capabilities)),
    instructions: instructions === undefined ? undefined : JSON.stringify(instructions),
  })
}

/** Whether a server's answer declares a capability. */
export function offersIn({ result }: Pick<DiscoverAnswer, 'result'>, capability: string): boolean {
  const capabilities = objectIn(result, 'capabilities')
  return capabilities !== undefined && objectIn(capabilities, capability) !== undefined
}

/** Whether a server's answer declares events. */
export function offersEventsIn({ result }: Pick<DiscoverAnswer, 'result'>): boolean {
  const capabilities = objectIn(result, 'capabilities')
  if (!capabilities) return false
  const extensions = objectIn(capabilities, 'extensions')
  // Drafts of the extension have a capability of their own.
  return objectIn(extensions ?? EMPTY, EVENTS_EXTENSION) !== undefined || objectIn(capabilities, 'events') !== undefined
}

/** Keys that say nothing about a list. Some clients check their values, and refuse the whole list because of them. */
const NOT_OF_LISTS: ReadonlySet<string> = new Set(['progressToken', RELATED_TASK])

/** The merged `_meta` of several results: of equal keys, that of the first result counts, unless `own` has it. */
export function joinedMeta(results: readonly Payload[], own: Readonly<Record<string, Json>> = {}): Json | undefined {
  const all = new Map<string, Json>()
  for (const meta of results.flatMap((result) => objectIn(result, '_meta') ?? []))
    for (const key of keys(withoutOwnKeys(meta)))
      if (!all.has(key) && !NOT_OF_LISTS.has(key)) all.set(key, raw(meta, key) as Json)
  for (const [key, json] of Object.entries(own)) all.set(key, json)
  return all.size === 0 ? undefined : write(edit(NO_ORIGIN, Object.fromEntries(all)))
}
