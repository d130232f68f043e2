/**
 * Makes the server cards (SEP-2127) and the AI Catalog of what this bridge serves. They are the same for everybody, so they
 * have only what anybody may know who has the address: no tools, and no members of groups.
 */

import { digest } from '../../base/crypto/digest.js'
import { printable } from '../../base/texts/printable.js'
import { CATALOG_PATH } from '../../base/texts/well-known.js'
import { LEGACY, MODERN } from '../../mcp/protocol/eras.js'
import { CARD_PATH, CARD_TYPE } from './sources/server-card.js'

/** A server or a group to publish. */
interface Carded {
  name: string
  /** The path at which it is served, as in `/github/mcp`. */
  path: string
  identity: { name: string; version: string }
  description?: string | undefined
  /** Callers need a token that nobody can get by signing in. */
  needsToken: boolean
}

/** What to publish. */
export interface CardPublication {
  publisher: string
  /** The address of the bridge for clients. */
  base: string
  served: readonly Carded[]
}

/** A document to serve. */
export interface CardDocument {
  text: string
  type: string
  etag: string
}

/** The media type of the AI Catalog. */
export const CATALOG_TYPE = 'application/ai-catalog+json'
const SCHEMA = 'https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json'
/** Most characters of texts in cards, without the mark that there were more. */
const TEXT = 99
const VERSION = 255

/** All documents, by path. */
export function cardDocuments({ publisher, base, served }: CardPublication): Map<string, CardDocument> {
  const addressOf = (path: string) => new URL(path, base).href
  const entries = served.map(({ name, path }) => ({
    identifier: `urn:air:${publisher}:mcp:${name}`,
    type: CARD_TYPE,
    url: addressOf(cardPath(path)),
  }))
  return new Map([
    [CATALOG_PATH, documentOf({ specVersion: '1.0', entries }, CATALOG_TYPE)],
    ...served.map((one) => [cardPath(one.path), documentOf(cardOf(one, publisher, addressOf), CARD_TYPE)] as const),
  ])
}

/** The path of the card of an endpoint. */
export function cardPath(path: string): string {
  return path.replace(/\/$/, '') + CARD_PATH
}

function cardOf(
  { name, path, identity, description = `${identity.name}, served by mcp-bridge`, needsToken }: Carded,
  publisher: string,
  addressOf: (path: string) => string,
): object {
  const token = { name: 'Authorization', description: 'Bearer token of this bridge', isRequired: true, isSecret: true }
  return {
    $schema: SCHEMA,
    name: `${reversed(publisher)}/${name}`,
    version: identity.version.slice(0, VERSION),
    title: printable(identity.name, TEXT),
    description: printable(description, TEXT),
    remotes: [
      {
        type: 'streamable-http',
        url: addressOf(path),
        ...(needsToken && { headers: [token] }),
        supportedProtocolVersions: [...MODERN, ...LEGACY],
      },
    ],
  }
}

/** The publisher as a namespace: `example.bridge` for `bridge.example`. Addresses stay as they are. */
function reversed(publisher: string): string {
  return /[a-z]/.test(publisher) ? publisher.split('.').reverse().join('.') : publisher
}

function documentOf(document: object, type: string): CardDocument {
  const text = `${JSON.stringify(document, null, 2)}\n`
  return { text, type, etag: `"${digest(text)}"` }
}
