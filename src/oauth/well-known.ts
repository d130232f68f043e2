/** Where metadata are: of resources (RFC 9728, 3.1) and of authorization servers (RFC 8414, 3.1 and 5), in order. */
import { parseAddress } from '../net/address.js'

/** Where the metadata of the resource at an endpoint may be: for its path first, then for the whole host. */
export function resourceMetadataPlaces(endpoint: string): readonly string[] {
  const { origin, pathname, search } = parseAddress(endpoint)
  const root = `${origin}/.well-known/oauth-protected-resource`
  const own = `${root}${pathname === '/' ? '' : pathname}${search}`
  return own === root ? [root] : [own, root]
}

/** Where the metadata of an issuer may be, in the order of MCP 2025-11-25 and 2026-07-28. Throws a Failure. */
export function issuerMetadataPlaces(issuer: string): readonly string[] {
  const { origin, pathname } = parseAddress(issuer)
  const path = pathname.replace(/\/$/, '')
  const inserted = ['oauth-authorization-server', 'openid-configuration'].map(
    (name) => `${origin}/.well-known/${name}${path}`,
  )
  return path === '' ? inserted : [...inserted, `${origin}${path}/.well-known/openid-configuration`]
}

/** The one place where a server of 2025-03-26 has metadata of the authorization server that it is itself. */
export function legacyMetadataPlace(endpoint: string): string {
  return `${parseAddress(endpoint).origin}/.well-known/oauth-authorization-server`
}
