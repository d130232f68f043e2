/**
 * The well-known addresses of metadata: of resources (RFC 9728, 3.1) and of authorization servers (RFC 8414, 3.1 and
 * 5), in order.
 */
import { parseAddress } from '../../base/net/address.js'

/** The addresses of a resource's metadata: for its path first, then for the whole host. */
export function resourceMetadataPlaces(endpoint: string): readonly string[] {
  const { origin, pathname, search } = parseAddress(endpoint)
  const root = `${origin}/.well-known/oauth-protected-resource`
  const own = `${root}${pathname === '/' ? '' : pathname}${search}`
  return own === root ? [root] : [own, root]
}

/** The addresses of an issuer's metadata, in the order of MCP 2025-11-25 and 2026-07-28. Throws a Failure. */
export function issuerMetadataPlaces(issuer: string): readonly string[] {
  const { origin, pathname } = parseAddress(issuer)
  const path = pathname.replace(/\/$/, '')
  const inserted = ['oauth-authorization-server', 'openid-configuration'].map(
    (name) => `${origin}/.well-known/${name}${path}`,
  )
  return path === '' ? inserted : [...inserted, `${origin}${path}/.well-known/openid-configuration`]
}

/** The address of the metadata of a server of 2025-03-26, which is its own authorization server. */
export function legacyMetadataPlace(endpoint: string): string {
  return `${parseAddress(endpoint).origin}/.well-known/oauth-authorization-server`
}
