/** What stays open of HTTP servers that the bridge has left: nothing, and no call is cut off. */
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import t, { type Test } from 'tap'
import { createBridge, settingsOf } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { LegacySse } from '../support/legacy-sse.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { call } from '../support/modern.js'
import { ModernHttp } from '../support/modern-http.js'

/** Notes the connections of a server. It keeps idle ones open for minutes, and says so. */
function watched() {
  const sockets = new Set<Socket>()
  return {
    sockets,
    override: (_received: unknown, response: ServerResponse) => {
      response.setHeader('keep-alive', 'timeout=500')
      if (response.socket) sockets.add(response.socket)
      return false
    },
  }
}

const KINDS: Record<string, (t: Test, override: ReturnType<typeof watched>['override']) => Promise<object>> = {
  'a legacy server': async (t, override) => ({ url: (await LegacyHttp.start(t, { override })).url }),
  'a modern server': async (t, override) => ({ url: (await ModernHttp.start(t, { override })).url }),
  'a server with HTTP+SSE': async (t, override) => ({ url: (await LegacySse.start(t, { override })).url }),
}

/** A bridge with a server that has been called, and another one. */
async function started(t: Test, server: object, more: object = {}) {
  const kept = legacyStdio(t).server
  const configured = (server: object | undefined) => ({ mcpServers: { kept, ...(server && { server }) }, ...more })
  const { bridge } = createBridge(t, {}, configured(server))
  const urls = await bridge.listen({ kind: 'http', host: '127.0.0.1', port: 0, path: '/mcp' })
  const url = urls.get('server') as string
  t.equal((await call(url, 'tools/call', { name: 'echo', arguments: {} })).status, 200)
  return { bridge, url, reload: (server?: object) => bridge.reload(settingsOf(configured(server))) }
}

for (const [kind, start] of Object.entries(KINDS)) {
  const ways: Record<string, (bridge: Awaited<ReturnType<typeof started>>, server: object) => Promise<unknown>> = {
    removes: ({ reload }) => reload(),
    changes: ({ reload }, server) => reload({ ...server, headers: { 'x-other': '1' } }),
  }
  for (const [what, leave] of Object.entries(ways))
    for (const more of [{}, { groups: { all: {} } }])
      t.test(`a reload that ${what} ${kind} closes its connections ${JSON.stringify(more)}`, async (t) => {
        const { sockets, override } = watched()
        const server = await start(t, override)
        const running = await started(t, server, more)
        const before = [...sockets]
        t.ok(before.length > 0)
        await leave(running, server)
        await until(() => before.every(({ destroyed }) => destroyed), 'the end of the connections')
      })

  t.test(`a bridge that is closed leaves no connection to ${kind}`, async (t) => {
    const { sockets, override } = watched()
    const { bridge } = await started(t, await start(t, override))
    await bridge.close()
    await until(() => [...sockets].every(({ destroyed }) => destroyed), 'the end of the connections')
    t.ok(sockets.size > 0)
  })
}

t.test('a call in progress is answered before the connections of its server close', async (t) => {
  const { sockets, override } = watched()
  const modern = await ModernHttp.start(t, { override })
  const { url, reload } = await started(t, { url: modern.url }, { timeouts: { drainTimeout: 60_000 } })
  const answer = call(url, 'tools/call', { name: 'wait', arguments: { ms: 'held' } })
  await until(() => modern.received.some(({ body }) => body.includes('"held"')), 'the call')
  const before = [...sockets]
  await reload()
  t.ok(before.some(({ destroyed }) => !destroyed))
  modern.letGo()
  t.match(await answer, { status: 200, message: { result: Object } })
  await until(() => before.every(({ destroyed }) => destroyed), 'the end of the connections')
})
