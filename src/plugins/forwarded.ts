/** Accepts users that a proxy in front of the bridge has signed in and names in a header. A secret proves the proxy. */
import { timingSafeEqual } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { digestedPrincipal, sha256 } from '../crypto/digest.js'
import type { Grant } from '../protocol/call.js'

/** The headers, in lower case, and the secret. */
export interface ForwardedUsers {
  user: string
  scopes?: string | undefined
  secretHeader: string
  secret: string
}

const MAX_USER = 1_024

/**
 * The caller that the proxy names, or `wrong` if the header may not be from the proxy. Undefined if the request
 * names nobody. `digest` is that of the secret.
 */
export function forwardedUser(
  { raw: { rawHeaders } }: FastifyRequest,
  { user, scopes, secretHeader, digest }: ForwardedUsers & { digest: Buffer },
): { principal: string; grant: Grant } | 'wrong' | undefined {
  const users = valuesOf(user, rawHeaders)
  const secrets = valuesOf(secretHeader, rawHeaders)
  if (users.length === 0 && secrets.length === 0) return undefined
  const [name = '', shown = ''] = [users[0], secrets[0]]
  // Of two headers, one may come from the client, through a proxy that adds its own.
  if (users.length !== 1 || secrets.length !== 1 || !timingSafeEqual(sha256(shown), digest)) return 'wrong'
  if (name.trim() === '' || name.length > MAX_USER) return 'wrong'
  const given = scopes === undefined ? [] : valuesOf(scopes, rawHeaders)
  if (given.length > 1) return 'wrong'
  const words = (given[0] ?? '').split(/[\s,]+/).filter((word) => word !== '')
  return {
    principal: digestedPrincipal('forwarded', name),
    grant: { scopes: new Set(words), extensible: false, subject: name },
  }
}

/** Removes the headers, so that nothing behind the bridge gets them. */
export function withoutForwarded(
  { raw: { headers } }: FastifyRequest,
  { user, scopes, secretHeader }: ForwardedUsers,
): void {
  for (const name of [user, scopes, secretHeader]) if (name !== undefined) delete headers[name]
}

function valuesOf(name: string, rawHeaders: readonly string[]): string[] {
  return rawHeaders.filter((_, i) => i % 2 === 1 && rawHeaders[i - 1]?.toLowerCase() === name)
}
