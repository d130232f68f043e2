/** Headers of a server's answer that go on to the client. */
import type { FastifyReply } from 'fastify'
import { ofConnection } from '../../base/texts/headers.js'

/** Headers that concern the origin of the server or one body, and those that the bridge writes itself. */
const STAYING: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'transfer-encoding',
  'proxy-authenticate',
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

/** Sets the headers of an answer that go on: not those of its connection. */
export function carryBack(reply: FastifyReply, headers: Readonly<Record<string, string | string[] | undefined>>): void {
  // Most answers have only headers that stay.
  let isOfConnection: ((name: string) => boolean) | undefined
  for (const name in headers) {
    if (STAYING.has(name) || name.startsWith(CORS)) continue
    isOfConnection ??= ofConnection(headers['connection'])
    if (!isOfConnection(name)) reply.header(name, headers[name])
  }
}
