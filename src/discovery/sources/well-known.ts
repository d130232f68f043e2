/** Servers that a host publishes at well-known addresses. */

import * as z from 'zod'
import type { Fetched } from '../../net/fetch.js'
import { parseUrl } from '../../texts/parse-url.js'
import { printable } from '../../texts/printable.js'
import { Findings } from '../candidate.js'
import type { FetchDocument } from '../documents.js'
import { failure } from '../failure.js'
import { parsed, parseJson, reachedAt, remoteOf, type ServerAddress, shownCommand } from './server-json.js'

/** Reads the part of a manifest that names servers. Throws if it is invalid. */
export type ReadManifest = (bytes: Uint8Array) => {
  servers: readonly {
    name: string
    version?: string | undefined
    description?: string | undefined
    transports: readonly (
      | { type: 'streamable-http' | 'sse'; url: string }
      | { type: 'stdio'; command: string; args: readonly string[] }
    )[]
  }[]
}

/** The path of the manifest. */
export const MANIFEST_PATH = '/.well-known/mcp.json'
/** Paths of drafts. Only addresses are read from these documents. */
const CATALOG_PATH = '/.well-known/mcp/catalog.json'
const CARD_PATH = '/.well-known/mcp/server-card.json'
const CARD_TYPE = 'application/mcp-server-card+json'
/** Reserved for the card of the server at the address before it. */
const CARD_SUFFIX = /\/server-card\/?$/
/** Most cards of a catalog. */
const CARDS = 16

const catalog = z.object({ entries: z.array(z.unknown()) })
const catalogEntry = z.object({
  url: z.string(),
  type: z.string().optional(),
  mediaType: z.string().optional(),
})
const text = z.string().optional().catch(undefined)
const place = z.object({ type: text, url: text, endpoint: text })
/** The members of cards in all drafts. */
const card = z.object({
  name: text,
  version: text,
  description: text,
  serverInfo: z.object({ name: text, version: text, description: text }).optional().catch(undefined),
  remotes: z.array(z.unknown()).optional().catch(undefined),
  transports: z.array(place).optional().catch(undefined),
  transport: z.union([z.string(), place]).optional().catch(undefined),
  url: text,
  endpoint: text,
})

/**
 * The servers that a host (`https://example.com`) publishes: in a manifest, which may be signed, and in catalogs and
 * cards of drafts. A host without any of these is not a failure.
 */
export async function findAtHost(origin: string, fetch: FetchDocument, readManifest: ReadManifest): Promise<Findings> {
  const look = async (path: string, read: (document: Fetched, found: Findings) => unknown, accept?: string) => {
    const found = new Findings()
    await found.attempt(origin + path, async () => {
      const document = await fetch(origin + path, accept)
      if (document !== undefined) await read(document, found)
    })
    return found
  }
  const looked = await Promise.all([
    look(MANIFEST_PATH, (document, found) => readServers(document, readManifest, found)),
    look(CATALOG_PATH, (document, found) => readCatalog(document, fetch, found)),
    look(CARD_PATH, readCard, CARD_TYPE),
  ])
  // By priority, not by the order of the responses.
  const found = new Findings()
  for (const each of looked) found.add(each)
  return found
}

async function readServers({ url, bytes }: Fetched, readManifest: ReadManifest, found: Findings): Promise<void> {
  let servers: ReturnType<ReadManifest>['servers']
  try {
    servers = readManifest(bytes).servers
  } catch (cause) {
    throw failure('document', 'malformed', cause instanceof Error ? cause.message : String(cause), { cause })
  }
  for (const { name, version, description, transports } of servers) {
    // The first transport, but programs last: they cannot be started from here.
    const best = transports.find(({ type }) => type !== 'stdio') ?? transports[0]
    if (best === undefined) continue
    await found.attempt(url, () => {
      const reached = best.type === 'stdio' ? shownCommand(best.command, best.args) : reachedAt(best.url, best.type)
      found.findings.push({ ...about(url, name, version, description), ...reached, manifest: { url } })
    })
  }
}

async function readCatalog({ url, bytes }: Fetched, fetch: FetchDocument, found: Findings): Promise<void> {
  const { entries } = parsed(catalog, parseJson(bytes), 'A catalog')
  if (entries.length > CARDS)
    await found.attempt(url, () => {
      throw failure('document', 'incomplete', `The catalog is too long: only its first ${CARDS} entries are read`)
    })
  await Promise.all(
    entries.slice(0, CARDS).map((each) =>
      found.attempt(url, async () => {
        const entry = parsed(catalogEntry, each, 'An entry of a catalog')
        if ((entry.type ?? entry.mediaType) !== CARD_TYPE) return
        const document = await fetch(resolved(entry.url, url), CARD_TYPE)
        if (document === undefined) throw failure('http', 'absent', 'A catalog names a card that does not exist')
        await readCard(document, found)
      }),
    ),
  )
}

async function readCard({ url, bytes }: Fetched, found: Findings): Promise<void> {
  const read = parsed(card, parseJson(bytes), 'A card of a server')
  // If a card has `serverInfo`, its own version is that of the card.
  const { name = read.name ?? new URL(url).hostname, version, description = read.description } = read.serverInfo ?? read
  const ways: (() => ServerAddress)[] = [
    ...(read.remotes ?? []).map((one) => () => remoteOf(one)),
    ...placesIn(read, url).map((one) => () => reachedAt(resolved(one.address, url), one.type)),
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
  return [{ address: url.replace(CARD_SUFFIX, ''), type: 'http' }]
}

function about(from: string, name: string, version: string | undefined, description: string | undefined) {
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
function resolved(address: string, base: string): string {
  const url = parseUrl(address, base)
  if (!url) throw failure('url', 'malformed', 'A document names an invalid address')
  return url.href
}
