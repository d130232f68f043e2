/** Reads the address that a browser was sent back to, where a person has copied it because the browser is elsewhere. */

const MAX_LENGTH = 16 * 1024

/** The parameters of an authorization response: of a whole address, or of its query alone. Undefined where there are none. */
export function readPasted(text: string): URLSearchParams | undefined {
  const line = text.trim()
  if (line === '' || line.length > MAX_LENGTH || /\s/.test(line)) return undefined
  const query = URL.canParse(line) ? new URL(line).search : line.replace(/^[^?]*\?/, '')
  const params = new URLSearchParams(query)
  return params.has('state') && (params.has('code') || params.has('error')) ? params : undefined
}
