/** The address or command of a server in one canonical spelling, so that it is found once and keeps its credentials. */
import { parseAddress } from '../base/net/address.js'
import { failure } from '../base/net/failure.js'

export type Endpoint =
  | { readonly kind: 'http'; readonly url: string }
  | { readonly kind: 'stdio'; readonly command: string; readonly args: readonly string[] }

/** Characters that need no percent-encoding in a path and mean the same with it (RFC 3986, 2.3). */
const UNRESERVED = /^[\w.~-]$/

/**
 * The endpoint at an address: scheme and host in lower case, the host in ASCII and without a trailing dot, no default
 * port, no dot segments, no needless percent-encoding, no user and no fragment. The query is unchanged. Throws a
 * Failure.
 */
export function httpEndpoint(address: string): Endpoint & { kind: 'http' } {
  const url = parseAddress(address)
  if (url.protocol !== 'https:' && url.protocol !== 'http:')
    throw failure('url', 'scheme', `The address of a server must start with https:// or http://, not ${url.protocol}//`)
  url.username = ''
  url.password = ''
  url.hash = ''
  // Assigning an empty query removes a trailing question mark.
  if (url.search === '') url.search = ''
  url.pathname = url.pathname.replace(/%[0-9a-f]{2}/gi, (encoded) => {
    const character = String.fromCharCode(Number.parseInt(encoded.slice(1), 16))
    return UNRESERVED.test(character) ? character : encoded.toUpperCase()
  })
  return { kind: 'http', url: url.href }
}

/** The endpoint of a command. Its working folder and environment do not matter. */
export function stdioEndpoint(command: string, args: readonly string[] = []): Endpoint & { kind: 'stdio' } {
  return { kind: 'stdio', command, args }
}

/**
 * The key of an endpoint: equal for equal endpoints. A trailing slash in the path is ignored, because people and
 * documents are inconsistent about it.
 */
export function canonical(endpoint: Endpoint): string {
  if (endpoint.kind === 'stdio') return `stdio:${JSON.stringify([endpoint.command, ...endpoint.args])}`
  const url = new URL(endpoint.url)
  return `${url.origin}${url.pathname.replace(/(?<!\/)\/+$/, '')}${url.search}`
}
