/** What a server is reached by, in the one spelling by which it is known: to be found once, and to keep its credentials. */
import { failure } from './failure.js'

export type Endpoint =
  | { readonly kind: 'http'; readonly url: string }
  | { readonly kind: 'stdio'; readonly command: string; readonly args: readonly string[] }

/** Characters that need no percent-encoding in a path (RFC 3986, 2.3), and mean the same with it. */
const UNRESERVED = /^[\w.~-]$/

/**
 * The endpoint at an address, as it is connected to: scheme and host in lower case, the host in ASCII and without a dot at
 * its end, no default port, no dot segments, percent-encoding only where it is needed; neither user nor fragment. The query
 * stays as it is. Throws a DiscoveryFailure.
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

/**
 * Parses an address, once and for all that is done with it. What parsers are known to read differently (white space,
 * control characters, backslashes) is no address. Throws a DiscoveryFailure.
 */
export function parseAddress(address: string): URL {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
  if (address.length > 2048 || /[\s\\\u0000-\u001f\u007f]/.test(address) || !URL.canParse(address))
    throw failure('url', 'malformed', 'This is no address that can be read in one way only')
  const url = new URL(address)
  // A name in DNS has at most 253 characters, and no label of it is empty or longer than 63.
  if (url.host !== '' && !/^(?=.{1,254}$)[^.]{1,63}(?:\.[^.]{1,63})*\.?$/.test(url.hostname))
    throw failure('url', 'malformed', 'This is no address that can be read in one way only')
  // The dot at the end says that the name is whole, which it is anyway.
  if (url.hostname.endsWith('.')) url.hostname = url.hostname.slice(0, -1)
  return url
}
