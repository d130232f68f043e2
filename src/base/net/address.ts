/** Parses addresses, and refuses ambiguous ones. */

import { parseUrl } from '../texts/parse-url.js'
import { failure } from './failure.js'

/**
 * Parses an address. Refuses characters that parsers treat differently: white space, control characters, backslashes.
 * Throws a Failure.
 */
export function parseAddress(address: string): URL {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
  const isClear = address.length <= 2048 && !/[\s\\\u0000-\u001f\u007f]/.test(address)
  const url = isClear ? parseUrl(address) : undefined
  if (!url) throw failure('url', 'malformed', 'Invalid or ambiguous address')
  // A name in DNS has at most 253 characters, and no label of it is empty or longer than 63.
  if (url.host !== '' && !/^(?=.{1,254}$)[^.]{1,63}(?:\.[^.]{1,63})*\.?$/.test(url.hostname))
    throw failure('url', 'malformed', 'Invalid or ambiguous address')
  // A trailing dot only marks the name as complete.
  if (url.hostname.endsWith('.')) url.hostname = url.hostname.slice(0, -1)
  return url
}
