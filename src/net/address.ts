/** Addresses that can be read in one way only. */
import { failure } from './failure.js'

/**
 * Parses an address, once and for all that is done with it. What parsers are known to read differently (white space,
 * control characters, backslashes) is no address. Throws a Failure.
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
