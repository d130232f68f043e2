/**
 * What went wrong in a host that came to connect servers of both eras (openclaw/mcporter 0.13.0, its list of changes), and is the
 * bridge's to get right in front of a legacy server, for clients on stdio and over HTTP. See hosts.slow.ts for servers that exit
 * at the probe, start slowly, or refuse it in words of their own.
 */
import type { ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { listen, listenText } from '../support/listening.js'
import { call } from '../support/modern.js'
import { openPipe } from '../support/pipe.js'

type Json = Record<string, unknown>

interface Way {
  bridge: { close(hurry: boolean): Promise<void> }
  ask(method: string, params?: Json): Promise<{ result?: Json; error?: { code: number } }>
  /** Opens a subscription, and resolves when it is acknowledged. */
  listen(): Promise<unknown>
}

const WAYS: Record<string, (t: Test, server: object) => Promise<Way>> = {
  stdio: async (t, server) => {
    const { bridge, call: ask, line, messages } = openPipe(t, server)
    let id = 1
    return {
      bridge,
      ask: (method, params) => ask(method, params, { id: id++ }),
      listen: () => {
        line(listenText({ toolsListChanged: true }, { id: 'listening' }))
        return until(() => messages().some(({ method }) => String(method).endsWith('acknowledged')), 'the subscription')
      },
    }
  },
  HTTP: async (t, server) => {
    const { bridge, url } = await startBridge(t, server)
    return {
      bridge,
      ask: async (method, params) => (await call(url, method, params)).message as Awaited<ReturnType<Way['ask']>>,
      listen: async () => {
        const stream = await listen(url, { toolsListChanged: true })
        await until(() => stream.messages.length > 0, 'the subscription')
      },
    }
  },
}

const ECHO = { name: 'echo', inputSchema: { type: 'object' } }

/** A legacy server whose list of tools is this. */
function listing(t: Test, result: Json) {
  return LegacyHttp.start(t, {
    sessions: true,
    override: ({ message }, response: ServerResponse) => {
      if (message['method'] !== 'tools/list') return false
      const text = JSON.stringify({ jsonrpc: '2.0', id: message['id'], result })
      response.writeHead(200, { 'content-type': 'application/json' }).end(text)
      return true
    },
  })
}

for (const [way, open] of Object.entries(WAYS)) {
  t.test(`a tool that is listed twice can be called, ${way}`, async (t) => {
    const { url } = await listing(t, { tools: [ECHO, ECHO] })
    const { ask } = await open(t, { url, tools: ['echo'] })
    t.match((await ask('tools/list')).result, { tools: [{ name: 'echo' }] })
    t.ok((await ask('tools/call', { name: 'echo', arguments: {} })).result)
  })

  t.test(`a list that goes on under the same cursor is not read for ever, ${way}`, async (t) => {
    const server = await listing(t, { tools: [ECHO], nextCursor: 'again' })
    const { ask } = await open(t, { url: server.url, tools: ['*'] })
    t.ok((await ask('tools/call', { name: 'nothing', arguments: {} })).error)
    t.ok(server.of('tools/list').length <= 3, `${server.of('tools/list').length} requests`)
  })

  for (const silent of ['initialize', 'server/discover'])
    t.test(`a bridge that ends does not wait for a server that never answers ${silent}, ${way}`, async (t) => {
      const server = await LegacyHttp.start(t, { override: ({ message }) => message['method'] === silent })
      const { bridge, ask } = await open(t, { url: server.url })
      ask('tools/list').catch(() => {})
      await until(() => server.of(silent).length > 0, silent)
      await bridge.close(true)
      t.pass('it has ended')
    })

  t.test(`a bridge that ends does not wait for subscriptions, ${way}`, async (t) => {
    const { bridge, listen: subscribe } = await open(t, { url: (await LegacyHttp.start(t, { sessions: true })).url })
    await subscribe()
    await bridge.close(true)
    t.pass('it has ended')
  })
}

t.test('another spelling of an address is the same server, with the same session', async (t) => {
  const server = await LegacyHttp.start(t, { sessions: true })
  const { url } = await startBridge(t, { url: server.url })
  for (const path of ['/mcp', '/%6dcp', '/m%63p', '/%6D%63%70'])
    t.equal((await call(new URL(path, url).href, 'tools/call', { name: 'echo', arguments: {} })).status, 200, path)
  t.equal(server.of('initialize').length, 1)
})
