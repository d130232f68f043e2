/** Checks hosts and origins that requests may name: what none of them can name is refused, with the right spelling. */
import { isHost, originOf } from '../base/texts/host-name.js'
import { parseUrl } from '../base/texts/parse-url.js'

const SCHEME = /^[a-z][a-z\d+.-]*:\/\//i
const IPV6 = /^[\da-f]*:[\da-f]*:[\da-f:.]*$/i
const HOST = 'has to be a host, such as tools.example.com, tools.example.com:8443 or *.example.com'
const ORIGIN = 'has to be an origin like https://app.example.com'

/** What is wrong with a host; undefined if nothing is. */
export function wrongHost(text: string): string | undefined {
  if (isHost(text)) return undefined
  if (text === '*') return `${HOST}; * for all hosts is not supported`
  const bare = unquoted(text)
    .replace(SCHEME, '')
    .replace(/^[^/]*@/, '')
    .replace(/[/?#].*$/s, '')
    // A host without a port is allowed with all ports.
    .replace(/:\*$/, '')
    .replace(/^\./, '*.')
  const meant = IPV6.test(bare) ? `[${bare}]` : bare
  if (isHost(meant)) return `${HOST}: write "${meant}"`
  return /[\s,;]/.test(text.trim()) ? `${HOST}: write each host as an element of its own` : HOST
}

/** What is wrong with an origin, which is an address; undefined if nothing is. */
export function wrongOrigin(text: string): string | undefined {
  if (originOf(text) !== undefined) return undefined
  if (text === '*') return `${ORIGIN}; * for all origins is not supported`
  const bare = unquoted(text)
  const url = parseUrl(SCHEME.test(bare) ? bare : `http://${bare}`)
  const meant = url && `${url.protocol}//${url.host}`
  return meant !== undefined && originOf(meant) !== undefined ? `${ORIGIN}: write "${meant}"` : ORIGIN
}

/** A value from a file of variables may still have its quotes. */
function unquoted(text: string): string {
  const bare = text.trim()
  const isQuoted = bare.length > 1 && /["']/.test(bare.charAt(0)) && bare.endsWith(bare.charAt(0))
  return isQuoted ? bare.slice(1, -1).trim() : bare
}
