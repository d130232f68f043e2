/**
 * What this bridge says of the servers that it fronts, as a manifest. Two replicas that serve the same say it in the same
 * bytes from the next hour on, and the serial goes up with time, so that nobody takes one of them for an old document.
 */
import { LEGACY, MODERN } from '../protocol/eras.js'
import { type ManifestServer, readManifest } from './manifest.js'
import { signManifest } from './trust/jws.js'
import type { SigningKey } from './trust/keys.js'

/** A server that is published. */
export interface Fronted {
  name: string
  /** Where it is served, as in `/github/mcp`. */
  path: string
  /** What it says of itself: a document about a server that nobody has met could only be wrong. */
  identity: { name: string; version: string }
  description?: string | undefined
  capabilities?: Readonly<Record<string, unknown>> | undefined
  auth?: ManifestServer['auth']
}

export interface Publication {
  publisher: string
  /** The address under which clients reach the bridge. */
  base: string
  servers: readonly Fronted[]
}

/** A document as it is served, with what goes beside it. */
export interface Published {
  manifest: Uint8Array
  /** The signature, where there is a key. */
  jws: string | undefined
  cacheControl: string
}

/** Milliseconds after which the document is made anew, and for which it holds. */
const RENEWED = 3_600_000
const VALIDITY = 7 * 86_400_000
/** Seconds. */
const MAX_AGE = 300

/** Who publishes, where nobody has said: the host under which the bridge is reached. */
export function publisherOf(base: string): string {
  return new URL(base).hostname.replace(/^\[(.*)\]$/, (_all, address: string) => `ip6-${address.replaceAll(':', '-')}`)
}

/** The manifest as it is from a moment on. Throws a ManifestError where it would be none. */
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

/** Gives what is to be served at a moment: the same until there is something else to say, or an hour begins. */
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
