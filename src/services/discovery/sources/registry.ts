/** Servers in a registry with the API of the official one. */
import * as z from 'zod'
import { printable } from '../../../base/texts/printable.js'
import { CANDIDATES, Findings } from '../candidate.js'
import type { FetchDocument } from '../documents.js'
import { failure } from '../failure.js'
import { packageOf, parsed, parseJson, remoteOf, type ServerAddress } from './server-json.js'

/** The address of the official registry. */
const OFFICIAL_REGISTRY = 'https://registry.modelcontextprotocol.io'

/** Servers in a page: few enough that a page stays far below the size limit of documents. */
const PAGE = 30
const PAGES = 10
const OFFICIAL = 'io.modelcontextprotocol.registry/official'

const page = z.object({
  servers: z.array(z.unknown()),
  metadata: z.object({ nextCursor: z.string().nullish() }).default({}),
})
const listed = z.object({
  server: z.object({
    name: z.string(),
    version: z.string().optional(),
    description: z.string().default(''),
    remotes: z.array(z.unknown()).default([]),
    packages: z.array(z.unknown()).default([]),
  }),
  _meta: z
    .object({ [OFFICIAL]: z.object({ status: z.string().optional(), isLatest: z.boolean().optional() }).optional() })
    .default({}),
})

/**
 * The servers whose names contain the query: the addresses that the registry names, and the commands that would start
 * their packages. Reads at most ten pages.
 */
export async function findInRegistry(
  query: string,
  fetch: FetchDocument,
  base: string = OFFICIAL_REGISTRY,
): Promise<Findings> {
  const found = new Findings()
  const place = `${base.replace(/(?<!\/)\/+$/, '')}/v0.1/servers`
  const cursors = new Set<string>()
  let cursor: string | undefined
  do {
    const parameters = new URLSearchParams({ search: query, version: 'latest', limit: String(PAGE) })
    if (cursor !== undefined) parameters.set('cursor', cursor)
    const read = await found.attempt(place, () => readPage(`${place}?${parameters}`, fetch))
    if (read === undefined) break
    for (const one of read.servers) await found.attempt(place, () => readServer(one, place, found))
    cursor = read.metadata.nextCursor || undefined
    // A registry whose cursors form a circle has no more pages.
    if (cursor === undefined || cursors.has(cursor)) break
    cursors.add(cursor)
  } while (cursors.size < PAGES && found.findings.length < CANDIDATES)
  found.findings.splice(CANDIDATES)
  return found
}

async function readPage(url: string, fetch: FetchDocument): Promise<z.infer<typeof page>> {
  const document = await fetch(url)
  if (document === undefined) throw failure('http', 'absent', 'There is no registry at this address')
  return parsed(page, parseJson(document.bytes), 'A page of the registry')
}

async function readServer(value: unknown, from: string, found: Findings): Promise<void> {
  const { server, _meta } = parsed(listed, value, 'A server of the registry')
  const { status = 'active', isLatest = true } = _meta[OFFICIAL] ?? {}
  if (status === 'deleted' || !isLatest) return
  const about = {
    // The part of com.example/weather after the slash.
    name: server.name.replace(/^.*\//s, ''),
    source: 'registry' as const,
    from,
    version: server.version && printable(server.version),
    description: printable(`${status === 'deprecated' ? 'Deprecated: ' : ''}${server.description}`, 200),
  }
  const read = (list: readonly unknown[], how: (value: unknown) => ServerAddress) =>
    Promise.all(list.map((one) => found.attempt(from, () => found.findings.push({ ...about, ...how(one) }))))
  await read(server.remotes, remoteOf)
  await read(server.packages, packageOf)
}
