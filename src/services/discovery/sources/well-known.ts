/** Servers that a host publishes at well-known addresses. */

import * as z from 'zod'
import type { Fetched } from '../../../base/net/fetch.js'
import { CATALOG_PATH, MANIFEST_PATH } from '../../../base/texts/well-known.js'
import { Findings } from '../candidate.js'
import { CATALOG_TYPE } from '../cards.js'
import type { FetchDocument, FetchHow } from '../documents.js'
import { failure } from '../failure.js'
import { about, CARD_PATH, CARD_TYPE, readCard, readCardBytes, resolved } from './server-card.js'
import { parsed, parseJson, reachedAt, shownCommand } from './server-json.js'

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

/** Paths of older drafts. Only addresses are read from these documents. */
const DRAFT_CATALOG_PATH = '/.well-known/mcp/catalog.json'
const DRAFT_CARD_PATH = '/.well-known/mcp/server-card.json'
/** Where servers of a host usually are: their cards are beside them. */
const USUAL_PATHS = ['', '/mcp']
/** Most cards of a catalog. */
const CARDS = 16
/** Most catalogs within a catalog. They may not contain further ones. */
const CATALOGS = 4

const catalog = z.object({ entries: z.array(z.unknown()) })
const catalogEntry = z.object({
  url: z.string().optional(),
  data: z.unknown().optional(),
  type: z.string().optional(),
  mediaType: z.string().optional(),
})

/**
 * The servers that a host (`https://example.com`) publishes: in a manifest, which may be signed, in an AI Catalog, and in
 * cards. Older drafts are read, too. A host without any of these is not a failure.
 */
export async function findAtHost(origin: string, fetch: FetchDocument, readManifest: ReadManifest): Promise<Findings> {
  const look = async (path: string, read: (document: Fetched, found: Findings) => unknown, how?: FetchHow) => {
    const found = new Findings()
    await found.attempt(origin + path, async () => {
      const document = await fetch(origin + path, how)
      if (document !== undefined) await read(document, found)
    })
    return found
  }
  const looked = await Promise.all([
    look(MANIFEST_PATH, (document, found) => readServers(document, readManifest, found)),
    look(CATALOG_PATH, (document, found) => readCatalog(document, fetch, found), { accept: CATALOG_TYPE }),
    look(DRAFT_CATALOG_PATH, (document, found) => readCatalog(document, fetch, found)),
    look(DRAFT_CARD_PATH, readCardBytes, { accept: CARD_TYPE }),
    ...USUAL_PATHS.map((path) => look(path + CARD_PATH, readGuessed, { accept: CARD_TYPE, isGuess: true })),
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

/** A card at an address where a host may have something else. */
async function readGuessed(document: Fetched, found: Findings): Promise<void> {
  const read = new Findings()
  await read.attempt(document.url, () => readCardBytes(document, read))
  found.findings.push(...read.findings)
}

async function readCatalog({ url, bytes }: Fetched, fetch: FetchDocument, found: Findings, depth = 0): Promise<void> {
  const { entries } = parsed(catalog, parseJson(bytes), 'A catalog')
  const typed = entries.map((each) => ({ each, type: typeOf(each) }))
  const cards = typed.filter(({ type }) => type === CARD_TYPE || type === undefined)
  const further = typed.filter(({ type }) => type === CATALOG_TYPE && depth === 0)
  if (cards.length > CARDS || further.length > CATALOGS)
    await found.attempt(url, () => {
      throw failure(
        'document',
        'incomplete',
        `The catalog is too long: only its first ${CARDS} cards and ${CATALOGS} catalogs are read`,
      )
    })
  const read = [...cards.slice(0, CARDS), ...further.slice(0, CATALOGS)]
  await Promise.all(
    read.map(({ each, type }) =>
      found.attempt(url, async () => {
        const entry = parsed(catalogEntry, each, 'An entry of a catalog')
        if (type === undefined) return
        const isCard = type === CARD_TYPE
        if (entry.url === undefined) {
          const document = entry.data
          if (!isCard || document === undefined)
            throw failure('document', 'malformed', 'An entry of a catalog has neither an address nor a card')
          return readCard(document, url, found)
        }
        const document = await fetch(resolved(entry.url, url), { accept: type })
        const what = isCard ? 'card' : 'catalog'
        if (document === undefined) throw failure('http', 'absent', `A catalog names a ${what} that does not exist`)
        if (isCard) await readCardBytes(document, found)
        else await readCatalog(document, fetch, found, depth + 1)
      }),
    ),
  )
}

/** The media type of an entry: `type` in the AI Catalog, `mediaType` in older ones. Undefined if it is invalid. */
function typeOf(entry: unknown): string | undefined {
  const { data } = catalogEntry.safeParse(entry)
  return data && (data.type ?? data.mediaType)
}
