/** The inspector alone, with events that a test tells it. */

import type { AddressInfo } from 'node:net'
import { type FastifyListenOptions, fastify } from 'fastify'
import { Fault } from '../../src/base/fault/fault.js'
import { SseDecoder } from '../../src/base/rpc/sse.js'
import { refuse } from '../../src/clients/http/replies.js'
import { origin } from '../../src/clients/plugins/origin.js'
import type { InspectorOptions } from '../../src/inspector/answers.js'
import type { RecordedEvent } from '../../src/inspector/recorder/events.js'
import type { Ring } from '../../src/inspector/ring.js'
import { inspector } from '../../src/inspector/routes.js'
import type { InspectedBridge } from '../../src/mcp/ports/inspected-bridge.js'
import type { ServerStatus } from '../../src/mcp/ports/server-status.js'
import type { Scope } from './scope.js'

export const TOKEN = 'a-token-for-tests-only'

/** A bridge with servers that cannot be called. */
export function bridgeOf(servers: readonly ServerStatus[]): InspectedBridge {
  const none = async () => undefined
  return { servers: () => servers, targets: () => [], hidden: none, bodyBytes: 1_024, call: none }
}

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
    bridge: bridgeOf([]),
    mayTry: false,
    tryToken: undefined,
    ...more,
  })
  await app.listen(where)
  t.teardown(() => app.close())
  return `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`
}

/** A viewer: reads a stream of events until it is closed. */
export function follow(t: Scope, url: string, headers: Record<string, string> = {}) {
  const abort = new AbortController()
  t.teardown(() => abort.abort())
  const events: RecordedEvent[] = []
  const named: string[] = []
  const ended = (async () => {
    const response = await fetch(url, {
      headers: { authorization: `Bearer ${TOKEN}`, ...headers },
      signal: abort.signal,
    })
    const decoder = new SseDecoder()
    for await (const chunk of response.body ?? [])
      for (const { event, data } of decoder.push(chunk)) {
        if (event === 'message') events.push(JSON.parse(Buffer.concat(data).toString()) as RecordedEvent)
        else named.push(event)
      }
  })().catch(() => {})
  return { events, named, ended, stop: () => abort.abort() }
}
