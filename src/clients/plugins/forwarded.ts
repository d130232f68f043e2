/** Accepts users that a proxy in front of the bridge has signed in and names in a header. A secret proves the proxy. */
import { timingSafeEqual } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { digestedPrincipal, sha256 } from '../../base/crypto/digest.js'
import type { Grant } from '../../mcp/protocol/call.js'

/** The headers, in lower case, and the secret. */
export interface ForwardedUsers {
  user: string
  scopes?: string | undefined
  groups?: string | undefined
  /** Scopes by the names of groups. */
  map: Readonly<Record<string, readonly string[]>>
  /** What stands between two names. */
  separator: string
  secretHeader: string
  secret: string
}

const MAX_USER = 1_024
const UTF_8 = new TextDecoder('utf-8', { fatal: true })

/**
 * The caller that the proxy names, or `wrong` if the header may not be from the proxy. Undefined if the request
 * names nobody. `digest` is that of the secret.
 */
export function forwardedUser(
  { raw: { rawHeaders } }: FastifyRequest,
  proxy: ForwardedUsers & { digest: Buffer },
): { principal: string; grant: Grant } | 'wrong' | undefined {
  const { user, scopes, groups, secretHeader, digest } = proxy
  const users = valuesOf(user, rawHeaders)
  const secrets = valuesOf(secretHeader, rawHeaders)
  if (users.length === 0 && secrets.length === 0) return undefined
  const [name = '', shown = ''] = [users[0], secrets[0]]
  // Of two headers, one may come from the client, through a proxy that adds its own.
  if (users.length !== 1 || secrets.length !== 1 || !timingSafeEqual(sha256(shown), digest)) return 'wrong'
  if (name.trim() === '' || name.length > MAX_USER) return 'wrong'
  const given = [scopes, groups].map((header) => (header === undefined ? [] : valuesOf(header, rawHeaders)))
  if (given.some(({ length }) => length > 1)) return 'wrong'
  const [ofScopes = [], ofGroups = []] = given.map(([list = '']) => namesIn(list, proxy))
  return {
    principal: digestedPrincipal('forwarded', name),
    grant: { scopes: new Set(scopesFor(ofScopes, ofGroups, proxy)), extensible: false, subject: name },
  }
}

/** The names in a list, as the proxy joins them. */
function namesIn(list: string, { separator }: ForwardedUsers): readonly string[] {
  const parts = separator.trim() === '' ? list.split(/\s+/) : list.split(separator)
  return parts.map((name) => inUtf8(name.trim())).filter((name) => name !== '')
}

function scopesFor(
  scopes: readonly string[],
  groups: readonly string[],
  { groups: header, map }: ForwardedUsers,
): readonly string[] {
  const isOfGroups = header === undefined && Object.keys(map).length > 0
  const names = isOfGroups ? scopes : groups
  const mapped = names.flatMap((group) => (Object.hasOwn(map, group) ? (map[group] ?? []) : []))
  // What has a space is no scope: in a list it would be several.
  return isOfGroups ? mapped : [...scopes.filter((scope) => !/\s/.test(scope)), ...mapped]
}

/** Node.js reads each byte of a header as a character. */
function inUtf8(text: string): string {
  try {
    return UTF_8.decode(Buffer.from(text, 'latin1'))
  } catch {
    return text
  }
}

/** Removes the headers, so that nothing behind the bridge gets them. */
export function withoutForwarded(
  { raw: { headers } }: FastifyRequest,
  { user, scopes, groups, secretHeader }: ForwardedUsers,
): void {
  for (const name of [user, scopes, groups, secretHeader]) if (name !== undefined) delete headers[name]
}

/** All values of a header, by its name in lower case. */
export function valuesOf(name: string, rawHeaders: readonly string[]): string[] {
  return rawHeaders.filter((_, i) => i % 2 === 1 && rawHeaders[i - 1]?.toLowerCase() === name)
}
