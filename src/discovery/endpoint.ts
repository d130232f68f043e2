/** What a server is reached by, in the one spelling by which it is known: to be found once, and to keep its credentials. */
import { parseAddress } from '../net/address.js'
import { failure } from '../net/failure.js'

export type Endpoint =
  | { readonly kind: 'http'; readonly url: string }
  | { readonly kind: 'stdio'; readonly command: string; readonly args: readonly string[] }

/** Characters that need no percent-encoding in a path (RFC 3986, 2.3), and mean the same with it. */
const UNRESERVED = /^[\w.~-]$/

/**
 * The endpoint at an address, as it is connected to: scheme and host in lower case, the host in ASCII and without a dot at
 * its end, no default port, no dot segments, percent-encoding only where it is needed; neither user nor fragment. The query
 * stays as it is. Throws a Failure.
 */
export function httpEndpoint(address: string): Endpoint & { kind: 'http' } {
  const url = parseAddress(address)
  if (url.protocol !== 'https:' && url.protocol !== 'http:')
    throw failure('url', 'scheme', `An address of a server begins with https:// or http://, not ${url.protocol}//`)
  url.username = ''
  url.password = ''
  url.hash = ''
  // An empty query is none, and assigning it takes away its question mark.
  if (url.search === '') url.search = ''
  url.pathname = url.pathname.replace(/%[0-9a-f]{2}/gi, (encoded) => {
    const character = String.fromCharCode(Number.parseInt(encoded.slice(1), 16))
    return UNRESERVED.test(character) ? character : encoded.toUpperCase()
  })
  return { kind: 'http', url: url.href }
}

/** The endpoint that a command is. Its working folder and its environment make no other one of it. */
export function stdioEndpoint(command: string, args: readonly string[] = []): Endpoint & { kind: 'stdio' } {
  return { kind: 'stdio', command, args }
}

/**
 * The one key of an endpoint: two endpoints are the same if theirs is. A slash at the end of the path makes no difference,
 * because people and documents put it or leave it out as they like; the address itself keeps it.
 */
export function canonical(endpoint: Endpoint): string {
  if (endpoint.kind === 'stdio') return `stdio:${JSON.stringify([endpoint.command, ...endpoint.args])}`
  const url = new URL(endpoint.url)
  return `${url.origin}${url.pathname.replace(/(?<!\/)\/+$/, '')}${url.search}`
}
