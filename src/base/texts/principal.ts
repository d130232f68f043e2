/** Principals as texts. */

/** How the principal of a caller begins whose own headers servers get: with a digest of those, and the principal of the person. */
export const KEYED = 'k:'
const DIGEST_OF_HEADERS = /^k:([0-9a-f]{32}):/
/** A principal that is the digest of a token, and how many characters of digests are shown. */
const DIGEST = /^t:[0-9a-f]{16,}$/
const SHOWN_DIGEST = 12
const SHOWN_KEYED = / k:[0-9a-f]{12}$/

/** The principal of a person with certain headers: with other headers, nothing is the same one's. `digest` is of the headers. */
export function keyedPrincipal(person: string, digest: string): string {
  return `k:${digest}:${person}`
}

/** The principal of the person, whatever headers of theirs servers get: for limits, scopes, accounts and the audit log. */
export function personOf(principal: string): string {
  return principal.startsWith(KEYED) ? principal.replace(DIGEST_OF_HEADERS, '') : principal
}

/** The displayed form of a principal: a name, or the start of the digest of a token, and that of the digest of headers. */
export function shownPrincipal(principal: string): string {
  const [, keys] = DIGEST_OF_HEADERS.exec(principal) ?? []
  if (keys !== undefined) return `${shownPrincipal(personOf(principal))} k:${keys.slice(0, SHOWN_DIGEST)}`
  return DIGEST.test(principal) ? principal.slice(0, 't:'.length + SHOWN_DIGEST) : principal
}

/** The person in a displayed form. */
export function shownPerson(shown: string): string {
  return shown.replace(SHOWN_KEYED, '')
}
