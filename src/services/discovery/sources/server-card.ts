/** Server cards (SEP-2127): what a server says about itself before anybody has connected to it. They are never signed. */

import * as z from 'zod'
import { parseUrl } from '../../../base/texts/parse-url.js'
import { printable } from '../../../base/texts/printable.js'
import { canonical } from '../../../config/endpoint.js'
import { type Candidate, type CardClaim, type Finding, Findings } from '../candidate.js'
import type { FetchDocument } from '../documents.js'
import { failure } from '../failure.js'
import { parsed, parseJson, reachedAt, remoteOf, type ServerAddress } from './server-json.js'

/** The media type of a card. */
export const CARD_TYPE = 'application/mcp-server-card+json'
/** What follows the address of a server in that of its card. */
export const CARD_PATH = '/server-card'
/** Reserved for the card of the server at the address before it. */
const CARD_SUFFIX = /\/server-card\/?$/
/** Most revisions that are read from a card. */
const REVISIONS = 32

const text = z.string().optional().catch(undefined)
const texts = z.array(z.string()).optional().catch(undefined)
const place = z.object({ type: text, url: text, endpoint: text })
const claimed = z.object({ supportedProtocolVersions: texts })
/** The members of cards in all drafts. */
const card = z.object({
  name: text,
  title: text,
  version: text,
  description: text,
  serverInfo: z.object({ name: text, version: text, description: text }).optional().catch(undefined),
  remotes: z.array(z.unknown()).optional().catch(undefined),
  transports: z.array(place).optional().catch(undefined),
  transport: z.union([z.string(), place]).optional().catch(undefined),
  url: text,
  endpoint: text,
  supportedProtocolVersions: texts,
})

/** Reads the servers in a card that was fetched. */
export function readCardBytes({ url, bytes }: { url: string; bytes: Uint8Array }, found: Findings): Promise<void> {
  return readCard(parseJson(bytes), url, found)
}

/** Reads the servers in a card. `url` is its address, or that of the document that has it. */
export async function readCard(document: unknown, url: string, found: Findings): Promise<void> {
  const read = parsed(card, document, 'A card of a server')
  // If a card has `serverInfo`, its own version is that of the card.
  const { name = read.name ?? new URL(url).hostname, version, description = read.description } = read.serverInfo ?? read
  const claims = (revisions: readonly string[] | undefined): CardClaim => ({
    url,
    name,
    ...(read.title !== undefined && { title: read.title }),
    ...(version !== undefined && { version }),
    ...(revisions !== undefined && { revisions: revisions.slice(0, REVISIONS) }),
  })
  const ways: (() => ServerAddress & Pick<Finding, 'card'>)[] = [
    ...(read.remotes ?? []).map((one) => () => {
      const { supportedProtocolVersions } = claimed.catch({}).parse(one)
      return { ...remoteOf(one), card: claims(supportedProtocolVersions) }
    }),
    ...placesIn(read, url).map(({ address, type }) => () => ({
      ...reachedAt(resolved(address, url), type),
      card: claims(read.supportedProtocolVersions),
    })),
  ]
  if (ways.length === 0) throw failure('document', 'incomplete', 'A card names no address of its server')
  for (const way of ways)
    await found.attempt(url, () => found.findings.push({ ...about(url, name, version, description), ...way() }))
}

/** The addresses in a card, other than `remotes`. */
function placesIn(read: z.infer<typeof card>, url: string): { address: string; type: string }[] {
  const { transport, transports = [] } = read
  const type = typeof transport === 'string' ? transport : undefined
  const places = [...transports, ...(typeof transport === 'object' ? [transport] : []), { ...read, type }]
  const named = places.flatMap(({ type = 'http', url, endpoint }) => {
    const address = url ?? endpoint
    return address === undefined ? [] : [{ address, type }]
  })
  if (named.length > 0 || read.remotes !== undefined || !CARD_SUFFIX.test(new URL(url).pathname)) return named
  // A host may answer every path with the same document, which is no card then.
  if ((read.serverInfo ?? read).name === undefined) return []
  return [{ address: url.replace(CARD_SUFFIX, ''), type: 'http' }]
}

/**
 * What a candidate's card claims: the one at its own address, otherwise the one that named it. A card at its address that
 * is about another one does not count. Never rejects: a server needs no card.
 */
export async function cardOf(
  { endpoint, card: named, alsoFrom }: Candidate,
  fetch: FetchDocument,
): Promise<CardClaim | undefined> {
  if (endpoint.kind !== 'http') return undefined
  const { origin, pathname } = new URL(endpoint.url)
  const found = new Findings()
  await found.attempt(origin, async () => {
    const document = await fetch(origin + pathname.replace(/\/$/, '') + CARD_PATH, { accept: CARD_TYPE, isGuess: true })
    if (document) await readCardBytes(document, found)
  })
  const own = found.findings.find((one) => canonical(one.endpoint) === canonical(endpoint))
  return own?.card ?? named ?? alsoFrom.find(({ card }) => card)?.card
}

/** The members of a finding that describe its server. */
export function about(from: string, name: string, version: string | undefined, description: string | undefined) {
  return {
    // The part of com.example/weather after the slash.
    name: name.replace(/^.*\//s, ''),
    source: 'well-known' as const,
    from,
    ...(version !== undefined && { version: printable(version) }),
    ...(description !== undefined && { description: printable(description, 200) }),
  }
}

/** An address in a document, which may be relative to the document's own. */
export function resolved(address: string, base: string): string {
  const url = parseUrl(address, base)
  if (!url) throw failure('url', 'malformed', 'A document names an invalid address')
  return url.href
}
