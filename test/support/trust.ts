/** What tests of trust are made of: publishers with keys, manifests, lists of tools, a folder to keep a store in. */
import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { parseObject } from '../../src/base/rpc/splice.js'
import type { ToolList } from '../../src/mcp/ports/trust-status.js'
import { toolList } from '../../src/middle/policy/tool-list.js'
import { signManifest } from '../../src/services/discovery/trust/jws.js'
import {
  type PublisherKey,
  readPublicKey,
  readSigningKey,
  type SigningKey,
} from '../../src/services/discovery/trust/keys.js'

export const DAY = 86_400_000
/** When it is, in tests in which time matters. */
export const NOW = Date.parse('2026-10-21T12:00:00Z')
export const ENDPOINT = 'https://mcp.acme.example/mcp'

export interface Publisher {
  key: PublisherKey
  signing: SigningKey
  pair: { publicKey: KeyObject; privateKey: KeyObject }
  sign(bytes: Uint8Array): Promise<Uint8Array>
}

export async function publisherWith(kind: 'ed25519' | 'p256'): Promise<Publisher> {
  const pair = kind === 'ed25519' ? generateKeyPairSync('ed25519') : generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const key = await readPublicKey(pair.publicKey.export({ type: 'spki', format: 'pem' }) as string)
  const signing = await readSigningKey(pair.privateKey.export({ type: 'pkcs8', format: 'pem' }) as string)
  return { key, signing, pair, sign: async (bytes) => Buffer.from(await signManifest(bytes, signing)) }
}

/** A manifest of one server, as its publisher writes it. */
export function manifestOf(changes: object = {}, server: object = {}): Record<string, unknown> {
  return {
    manifest: 1,
    publisher: 'acme.example',
    serial: 7,
    issued: new Date(NOW - DAY).toISOString(),
    expires: new Date(NOW + DAY).toISOString(),
    servers: [
      {
        name: 'weather',
        version: '1.2.0',
        transports: [{ type: 'streamable-http', url: ENDPOINT }],
        protocolRevisions: ['2026-07-28', '2025-11-25'],
        capabilities: { tools: {} },
        tools: [{ name: 'read', annotations: { readOnlyHint: true } }, { name: 'delete_all' }],
        ...server,
      },
    ],
    ...changes,
  }
}

export function bytesOf(value: unknown): Uint8Array {
  return Buffer.from(typeof value === 'string' ? value : JSON.stringify(value))
}

export const READ = {
  name: 'read',
  description: 'Reads',
  inputSchema: { type: 'object' },
  annotations: { readOnlyHint: true },
}
export const DELETE_ALL = { name: 'delete_all', description: 'Deletes', inputSchema: { type: 'object' } }

/** A list of tools as trust looks at it. */
export function listOf(...tools: object[]): ToolList {
  return toolList([parseObject(JSON.stringify({ tools }))])
}
