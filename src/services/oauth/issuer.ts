/** Compares issuers. */

/** An issuer without a path. */
const BARE = /^https?:\/\/[^/?#]+\/?$/i

/**
 * Whether two issuers are the same. They are compared as text (RFC 8414, 3.3), except that an issuer without a path may
 * end with a slash: as an address it is the same, and libraries such as pydantic add one.
 */
export function sameIssuer(one: string, other: string): boolean {
  return one === other || (BARE.test(one) && BARE.test(other) && withoutSlash(one) === withoutSlash(other))
}

function withoutSlash(issuer: string): string {
  return issuer.endsWith('/') ? issuer.slice(0, -1) : issuer
}
