/**
 * Tells clients where they get tokens for the endpoints of the bridge: in a metadata document for each endpoint (RFC 9728), and
 * in challenges that name it. All addresses derive from `publicUrl`, never from the Host of a request.
 */

import type { FastifyInstance } from 'fastify'
import type { Fault } from '../../base/fault/fault.js'
import { PROTECTED_RESOURCE } from '../../base/texts/well-known.js'
import type { Grant } from '../../mcp/protocol/call.js'
import { publish } from './documents.js'

/** An endpoint for which clients can get tokens. */
export interface ProtectedEndpoint {
  /** The address as clients know it. */
  readonly resource: string
  /** The address of its metadata. */
  readonly metadata: string
  /** All addresses of its server or group: the audiences that a token may have. */
  readonly addresses: ReadonlySet<string>
  /** Scopes to request at first; undefined for none. */
  readonly scope: string | undefined
  /** The challenge for a token that lacks scopes. */
  challengeFor(fault: Fault, grant: Grant): string
}

export interface ProtectedOptions {
  publicUrl: string
  /** For each server or group, the paths that clients use, by the path at the bridge. */
  served: readonly ReadonlyMap<string, string>[]
  scopes: readonly string[]
}

const itself = (scope: string) => scope

/** The endpoints by their paths at the bridge. */
export function protectedEndpoints({ publicUrl, served, scopes }: ProtectedOptions): Map<string, ProtectedEndpoint> {
  const { origin, pathname } = new URL(publicUrl)
  const scope = scopes.length === 0 ? undefined : scopes.join(' ')
  const prefix = prefixOf(pathname, [...new Set(served.flatMap((paths) => [...paths.values()]))])
  const found = new Map<string, ProtectedEndpoint>()
  for (const paths of served) {
    const addresses = new Set([...paths.values()].map((path) => origin + prefix + path))
    for (const [path, known] of paths) {
      const shown = prefix + known
      const metadata = origin + PROTECTED_RESOURCE + shown
      const challengeFor = ({ data }: Fault, { nameOf = itself }: Grant) => {
        const names = String(data['scope'] ?? '')
          .split(' ')
          .flatMap((one) => nameOf(one) ?? [])
        const scope = [...new Set(names)].join(' ')
        return challenge({ error: 'insufficient_scope', scope, resource_metadata: metadata })
      }
      found.set(path, { resource: origin + shown, metadata, addresses, scope, challengeFor })
    }
  }
  return found
}

/**
 * The prefix that clients put before the paths of the bridge, and a proxy removes: the path of the public URL. If that is the
 * path of an endpoint, without the path of the endpoint.
 */
export function prefixOf(pathname: string, paths: readonly string[]): string {
  const [own = ''] = paths.filter((path) => pathname.endsWith(path)).sort((a, b) => b.length - a.length)
  return pathname.slice(0, pathname.length - own.length).replace(/\/$/, '')
}

/** The content of the metadata. */
export interface MetadataOptions {
  endpoints: ReadonlyMap<string, ProtectedEndpoint>
  /** The authorization servers. */
  issuers: readonly string[]
  scopes: readonly string[]
}

/** The paths of the metadata: as clients request them, and without the prefix that a proxy may remove. */
export function metadataPaths(endpoints: MetadataOptions['endpoints']): ReadonlyMap<string, ProtectedEndpoint> {
  const all = [...endpoints]
  // The paths that clients know come last and win.
  return new Map([
    ...all.map(([path, endpoint]) => [PROTECTED_RESOURCE + path, endpoint] as const),
    ...all.map(([, endpoint]) => [new URL(endpoint.metadata).pathname, endpoint] as const),
  ])
}

/** A Fastify plugin that serves the metadata. */
export async function protectedResource(app: FastifyInstance, options: MetadataOptions): Promise<void> {
  const { endpoints, issuers, scopes } = options
  for (const [path, { resource }] of metadataPaths(endpoints)) {
    const body = JSON.stringify({
      resource,
      authorization_servers: issuers,
      ...(scopes.length > 0 && { scopes_supported: scopes }),
      bearer_methods_supported: ['header'],
    })
    publish(app, path, () => ({ body }))
  }
}

/** A challenge for bearer tokens (RFC 6750, 3; RFC 9728, 5.1). */
export function challenge(params: Readonly<Record<string, string | undefined>>): string {
  const pairs = Object.entries(params).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}="${value.replace(/["\\]/g, '\\$&')}"`],
  )
  return pairs.length === 0 ? 'Bearer' : `Bearer ${pairs.join(', ')}`
}
