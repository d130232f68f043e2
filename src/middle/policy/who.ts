/** Makes the key of a caller, under which policies and groups remember what a server has listed to it. */
import { digest } from '../../base/crypto/digest.js'
import { canonical } from '../../base/rpc/canonical.js'
import { memoize, perObject } from '../../base/rpc/memoize.js'
import type { Call, Grant } from '../../mcp/protocol/call.js'

/** Separates person and capabilities. It does not occur in digests. */
const OF_PERSON = '/'

/**
 * A key that is equal for callers that get equal lists: principal and credential, which identify the person,
 * capabilities, scopes, and whether the caller sends headers.
 */
export function whoOf({
  principal,
  credential,
  caller,
  paramHeaders,
  grant,
}: Pick<Call, 'principal' | 'credential' | 'caller' | 'paramHeaders' | 'grant'>): string {
  const person = credential === undefined ? digestOfPrincipal(principal) : digestOf(principal, credential)
  return `${person}${OF_PERSON}${digestOfCapabilities(caller.capabilities)}${paramHeaders ? '+' : ''}${grant ? digestOfScopes(grant) : ''}`
}

/** Computed once for each token. */
const digestOfScopes = perObject(({ scopes }: Grant) => digest(JSON.stringify([...scopes].sort())))

/** The part of a key that is equal for callers who differ in their capabilities alone. */
export function personIn(who: string): string {
  return who.slice(0, who.indexOf(OF_PERSON))
}

const digestOf = (principal: string, credential?: Call['credential']) => digest(JSON.stringify([principal, credential]))
const digestOfPrincipal = memoize((principal) => digestOf(principal))
const digestOfCapabilities = memoize((capabilities) => digest(canonical(capabilities)))
