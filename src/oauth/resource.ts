/** What a token is for (RFC 8707, RFC 9728). A resource is a text that is sent as it came: parsed here only to compare. */
import { parseAddress } from '../net/address.js'

/**
 * Whether a resource covers an endpoint: the same origin, and a path that is the same or above it, at the border of a
 * segment. A query has to be the endpoint's own.
 */
export function covers(resource: string, endpoint: string): boolean {
  const [outer, inner] = [parsed(resource), parsed(endpoint)]
  if (!outer || !inner || resource.includes('#') || outer.username !== '' || outer.password !== '') return false
  if (outer.origin === 'null' || outer.origin !== inner.origin) return false
  const above = outer.pathname.replace(/\/$/, '')
  if (outer.search !== '') return outer.search === inner.search && above === inner.pathname.replace(/\/$/, '')
  return inner.pathname === above || inner.pathname.startsWith(`${above}/`)
}

/** The resource that an endpoint is where nobody has said another: without a slash at its end, and without a query. */
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
