/** Names in JSON Pointers (RFC 6901): `~` and `/` are escaped. */

/** A name as a token of a JSON Pointer. */
export function tokenOf(name: string): string {
  return name.includes('~') || name.includes('/') ? name.replaceAll('~', '~0').replaceAll('/', '~1') : name
}

/** The name that a token of a JSON Pointer stands for. */
export function nameOfToken(token: string): string {
  return token.includes('~') ? token.replaceAll('~1', '/').replaceAll('~0', '~') : token
}
