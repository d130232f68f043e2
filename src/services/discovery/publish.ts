/**
 * Makes and signs the manifest of the servers behind this bridge, and says how long it is valid and may be cached.
 * Within one hour all replicas that serve the same publish the same bytes, and the serial increases with time, so that
 * no replica's document looks outdated.
 */
import { LEGACY, MODERN } from '../../mcp/protocol/eras.js'
import { type ManifestServer, readManifest } from './manifest.js'
import { signManifest } from './trust/jws.js'
import type { SigningKey } from './trust/keys.js'

/** A server to publish. */
export interface Fronted {
  name: string
  /** The path at which it is served, as in `/github/mcp`. */
  path: string
  /** The name and version in its handshake. A server without a handshake yet is not published. */
  identity: { name: string; version: string }
  description?: string | undefined
  capabilities?: Readonly<Record<string, unknown>> | undefined
  auth?: ManifestServer['auth']
}

/** What to publish. */
export interface Publication {
  publisher: string
  /** The address of the bridge for clients. */
  base: string
  servers: readonly Fronted[]
}

/** A document to serve, and its signature. */
export interface Published {
  manifest: Uint8Array
  /** The signature, if there is a key. */
  jws: string | undefined
  cacheControl: string
}

/** Milliseconds until the document is renewed, and until it expires. */
const RENEWED = 3_600_000
const VALIDITY = 7 * 86_400_000
/** Seconds for which clients may cache it. */
const MAX_AGE = 300

/** The default publisher: the host of the bridge's address. */
export function publisherOf(base: string): string {
  return new URL(base).hostname.replace(/^\[(.*)\]$/, (_all, address: string) => `ip6-${address.replaceAll(':', '-')}`)
}

/** The manifest issued at a moment. Throws a ManifestError if it would be invalid. */
export function publishedManifest({ publisher, base, servers }: Publication, from: number): Uint8Array {
  const issued = Math.floor(from / 1000) * 1000
  const document = {
    manifest: 1,
    publisher,
    serial: issued / 1000,
    issued: instant(issued),
    expires: instant(issued + VALIDITY),
    servers: servers.map(({ name, path, identity, description, capabilities, auth }) => ({
      name,
      version: identity.version,
      serverName: identity.name,
      description,
      transports: [{ type: 'streamable-http', url: new URL(path, base).href }],
      protocolRevisions: [...MODERN, ...LEGACY],
      capabilities,
      tools: 'runtime',
      auth,
    })),
  }
  const bytes = new TextEncoder().encode(`${JSON.stringify(document, null, 2)}\n`)
  readManifest(bytes)
  return bytes
}

/**
 * Returns a function that gives the document for a moment: a new one if the content has changed or a new hour has
 * begun.
 */
export function publishing(options: {
  content(): Publication
  key?: SigningKey | undefined
  now?: () => number
}): () => Promise<Published> {
  const { content, key, now = Date.now } = options
  let said: { text: string; since: number } | undefined
  let made: { from: number; published: Promise<Published> } | undefined

  const make = async (publication: Publication, from: number): Promise<Published> => {
    const manifest = publishedManifest(publication, from)
    const jws = key && (await signManifest(manifest, key))
    return { manifest, jws, cacheControl: `public, max-age=${MAX_AGE}` }
  }

  return () => {
    const publication = content()
    const text = JSON.stringify(publication)
    if (said?.text !== text) said = { text, since: Math.max(now(), (made?.from ?? 0) + 1000) }
    const from = Math.max(said.since, Math.floor(now() / RENEWED) * RENEWED)
    if (made?.from !== from) made = { from, published: make(publication, from) }
    return made.published
  }
}

function instant(milliseconds: number): string {
  return new Date(milliseconds).toISOString().replace('.000Z', 'Z')
}
