/** Guesses the intended address from an invalid one. */

const HOST =
  /^(localhost|\d{1,3}(?:\.\d{1,3}){3}|\[[\da-f:]+\]|[a-z0-9-]+(?:\.[a-z0-9-]+)+)(:\d{1,5})?(\/[^\s?#]*)?(?:[?#]|$)/i
/** After a scheme, a host may have one label. */
const AFTER_SCHEME = /^[\\/]*([a-z0-9-]+(?:\.[a-z0-9-]+)*|\[[\da-f:]+\])(:\d{1,5})?(\/[^\s?#]*)?(?:[?#]|$)/i
/** Frequent mistakes in schemes: a missing slash, missing letters, WebSocket. */
const SCHEMES: readonly (readonly [pattern: RegExp, scheme: string])[] = [
  [/^wss:\/\//i, 'https://'],
  [/^ws:\/\//i, 'http://'],
  [/^(?:https:?[\\/]{1,3}|https:(?![\\/])|ht?t?ps:\/\/)/i, 'https://'],
  [/^(?:http:?[\\/]{1,3}|http:(?![\\/])|ht?t?p:\/\/)/i, 'http://'],
  [/^(?:sse|streamable-?http|tcp):\/\//i, 'http://'],
]

/** The http address that was probably intended, without user and query, which may be secret; undefined if none is likely. */
function addressMeant(text: string): string | undefined {
  const port = /^:?(\d{2,5})(\/[^\s?#]*)?$/.exec(text)
  if (port) return `http://127.0.0.1:${port[1]}${port[2] ?? ''}`
  const [pattern, scheme] = SCHEMES.find(([one]) => one.test(text)) ?? []
  const [, host, at = '', path = ''] =
    pattern === undefined ? (HOST.exec(text) ?? []) : (AFTER_SCHEME.exec(text.replace(pattern, '')) ?? [])
  if (host === undefined) return undefined
  const isPublic = /[a-z]/i.test(host) && host.toLowerCase() !== 'localhost' && (at === '' || at === ':443')
  return `${scheme ?? (isPublic ? 'https://' : 'http://')}${host}${at}${path}`
}

/** The end of a message about an invalid address: a suggestion, or nothing. */
export function addressHint(text: unknown, path = ''): string {
  const meant = typeof text === 'string' && !/^https?:\/\/[^/\\]\S*$/.test(text) ? addressMeant(text) : undefined
  if (meant === undefined) return ''
  return `: did you mean ${meant}${new URL(meant).pathname === '/' ? path : ''}?`
}
