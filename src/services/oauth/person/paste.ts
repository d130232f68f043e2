/** Reads the redirect address that a person copied from a browser on another machine. */

import { parseUrl } from '../../../base/texts/parse-url.js'

const MAX_PASTED = 16 * 1024

/** The parameters of an authorization response, in an address or in its query alone. Undefined if there are none. */
export function readPasted(text: string): URLSearchParams | undefined {
  const line = text.trim()
  if (line === '' || line.length > MAX_PASTED || /\s/.test(line)) return undefined
  const query = parseUrl(line)?.search ?? line.replace(/^[^?]*\?/, '')
  const params = new URLSearchParams(query)
  return params.has('state') && (params.has('code') || params.has('error')) ? params : undefined
}
