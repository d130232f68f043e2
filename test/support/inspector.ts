/** The inspector alone, with events that a test tells it. */

import type { AddressInfo } from 'node:net'
import { type FastifyListenOptions, fastify } from 'fastify'
import { refuse } from '../../src/downstream/http/replies.js'
import type { Ring } from '../../src/inspect/ring.js'
import { type InspectorOptions, inspector } from '../../src/inspect/routes.js'
import { origin } from '../../src/plugins/origin.js'
import { Fault } from '../../src/protocol/fault.js'
import type { Scope } from './scope.js'

export const TOKEN = 'a-token-for-tests-only'

/** Serves an inspector on a port of its own, or elsewhere. Gives the address of a port. */
export async function startInspector(
  t: Scope,
  ring: Ring,
  more: Partial<InspectorOptions> = {},
  where: FastifyListenOptions = { port: 0, host: '127.0.0.1' },
  allowedHosts: readonly string[] = [],
): Promise<string> {
  const app = fastify({ forceCloseConnections: true })
  app.setErrorHandler((error, _request, reply) => refuse(reply, Fault.from(error)))
  await app.register(origin, { allowedHosts, allowedOrigins: [], addresses: true, open: [] })
  await app.register(inspector, {
    ring,
    version: '0.0.0',
    token: TOKEN,
    hide: [],
    page: undefined,
    servers: () => [],
    onViewer: () => {},
    onPayloads: () => {},
    ...more,
  })
  await app.listen(where)
  t.teardown(() => app.close())
  return `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`
}
