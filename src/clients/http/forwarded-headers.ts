/** Selects the headers of a client's request that go on in a session of the server itself. */
import { ofConnection } from '../../base/texts/headers.js'

/** Headers that concern the bridge or the session, beside those of the connection; the pattern has prefixes of more names. */
const STAYING: ReadonlySet<string> = new Set([
  'host',
  'content-length',
  'origin',
  'cookie',
  'forwarded',
  'authorization',
  'mcp-session-id',
  'last-event-id',
])
const STAYING_LIKE = /^(?:proxy-|x-forwarded-|sec-)/

/** The headers that go on: not those of the connection. The server's own id of the session is added later. */
export function forwardedHeadersIn(headers: Record<string, string | string[] | undefined>): Record<string, string> {
  const isOfConnection = ofConnection(headers['connection'])
  const stays = (name: string) => isOfConnection(name) || STAYING.has(name) || STAYING_LIKE.test(name)
  // Node.js sends a header that has several values as several ones.
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !stays(name))) as Record<string, string>
}
