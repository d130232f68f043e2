/** The resource of a token (RFC 8707, RFC 9728). A resource is sent as received; it is parsed only for comparisons. */
import { parseAddress } from '../../base/net/address.js'

/**
 * Whether a resource covers an endpoint: same origin, and the same path or a parent of it, by whole segments. If the
 * resource has a query, it must equal the endpoint's.
 */
export function covers(resource: string, endpoint: string): boolean {
  const [outer, inner] = [parsed(resource), parsed(endpoint)]
  if (!outer || !inner || resource.includes('#') || outer.username !== '' || outer.password !== '') return false
  if (outer.origin === 'null' || outer.origin !== inner.origin) return false
  const above = outer.pathname.replace(/\/$/, '')
  if (outer.search !== '') return outer.search === inner.search && above === inner.pathname.replace(/\/$/, '')
  return inner.pathname === above || inner.pathname.startsWith(`${above}/`)
}

/** The resource of an endpoint if none is published: without a trailing slash and without a query. */
export function canonicalResource(endpoint: string): string {
  const { origin, pathname } = new URL(endpoint)
  return origin + pathname.replace(/(?<!\/)\/+$/, '')
}

function parsed(address: string): URL | undefined {
  try {
    return parseAddress(address)
  } catch {
    return undefined
  }
}
