/** Headers of a server's answer that go on to the client. */
import type { FastifyReply } from 'fastify'

/** Headers of one connection or of one body, and those that the bridge writes itself. */
const STAYING: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'date',
  'server',
  'set-cookie',
  'alt-svc',
  'content-type',
  'content-length',
  'content-encoding',
  'mcp-session-id',
  'last-event-id',
  'www-authenticate',
])
const CORS = 'access-control-'

/** Sets the headers of an answer that go on: not those that `Connection` names (RFC 9110, 7.6.1). */
export function carryBack(reply: FastifyReply, headers: Readonly<Record<string, string | string[] | undefined>>): void {
  let named: string | undefined
  for (const name in headers) {
    if (STAYING.has(name) || name.startsWith(CORS)) continue
    named ??= `,${[headers['connection'] ?? []].flat().join(',').replace(/[ \t]/g, '').toLowerCase()},`
    if (!named.includes(`,${name},`)) reply.header(name, headers[name])
  }
}
