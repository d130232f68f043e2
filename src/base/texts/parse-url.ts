/**
 * Parses an address, relative to another one if that is given. Undefined if it is invalid.
 *
 * `URL.canParse` must not be asked: once Node.js 20 has compiled a function that calls it often, it says of valid addresses
 * with letters like "ü" that they are invalid.
 */
export function parseUrl(text: string, base?: string | URL): URL | undefined {
  try {
    return new URL(text, base)
  } catch {
    return undefined
  }
}

/** The port of an address, or the default of its scheme. */
export function portOf({ protocol, port }: { protocol: string; port?: string | number | null | undefined }): number {
  return Number(port) || (protocol === 'https:' ? 443 : 80)
}

/** The host of a URL without the brackets of an IPv6 address. */
export function withoutBrackets(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, '')
}
