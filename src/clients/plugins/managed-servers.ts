/** `PUT /servers/<name>` and `DELETE /servers/<name>` at the address for operators: servers that come and go while the bridge runs. */
import { timingSafeEqual } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { sha256 } from '../../base/crypto/digest.js'
import { Fault } from '../../base/fault/fault.js'
import type { ManagedServers } from '../../mcp/ports/managed-servers.js'

/** Most bytes of an entry. */
export const MAX_ENTRY = 64 * 1024
/** As notFound messages name it. */
export const SERVERS_PATH = '/servers/<name>'

/** A Fastify plugin that adds the routes. Without a token, they are not there. */
export async function managedServers(app: FastifyInstance, managed: ManagedServers): Promise<void> {
  app.route<{ Params: { name: string }; Querystring: { save?: unknown } }>({
    method: ['PUT', 'DELETE'],
    url: '/servers/:name',
    bodyLimit: MAX_ENTRY,
    // Before the body is read.
    onRequest: async ({ headers }, reply) => {
      const token = managed.token()
      if (token === undefined)
        throw new Fault('noSuchPath', 'Not found: "adminToken" is not set, so servers cannot be changed')
      if (isToken(headers.authorization, token)) return
      reply.header('www-authenticate', 'Bearer')
      throw new Fault('unauthorized', 'The token in "adminToken" is required')
    },
    handler: async ({ method, params, query, body }, reply) => {
      const isPut = method === 'PUT'
      const { status, body: said } = await managed.change(
        params.name,
        isPut ? (body ?? null) : undefined,
        query.save === 'true',
      )
      return reply.code(status).header('cache-control', 'no-store').send(said)
    },
  })
}

function isToken(authorization: string | undefined, token: string): boolean {
  const shown = /^bearer +([^ ].*)$/i.exec(authorization ?? '')?.[1] ?? ''
  return timingSafeEqual(sha256(shown), sha256(token))
}
