/** Pings that keep sessions with legacy servers alive: the bridge's own, those of clients, and none with modern servers. */
import t from 'tap'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { LegacyClient } from '../support/legacy-client.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { call } from '../support/modern.js'
import { ModernHttp } from '../support/modern-http.js'

t.test('a session without calls gets pings, and ends all the same when it is idle', async (t) => {
  const legacy = await LegacyHttp.start(t, { sessions: true })
  const server = { url: legacy.url, ping: 1_000, timeouts: { idle: 2_500 } }
  const { url } = await startBridge(t, server)
  t.equal((await call(url, 'tools/list')).status, 200)
  const session = legacy.of('tools/list')[0]?.headers['mcp-session-id']
  t.ok(session)
  await until(() => legacy.of('ping').length > 0)
  t.equal(legacy.of('ping')[0]?.headers['mcp-session-id'], session)
  await until(() => legacy.received.some(({ method }) => method === 'DELETE'))
})

t.test('the session of a legacy client gets them, too', async (t) => {
  const legacy = await LegacyHttp.start(t, { sessions: true })
  const { url } = await startBridge(t, { url: legacy.url, ping: 1_000 })
  const client = await LegacyClient.open(url)
  t.equal((await client.call('echo', { text: 'a' })).status, 200)
  await until(() => legacy.of('ping').length > 1)
  t.equal((await client.call('echo', { text: 'b' })).status, 200, 'the session goes on')
})

t.test('a modern server has no sessions and gets none', async (t) => {
  const modern = await ModernHttp.start(t)
  const { url } = await startBridge(t, { url: modern.url, ping: 1_000 })
  for (let i = 0; i < 12; i++) {
    t.equal((await call(url, 'tools/list')).status, 200)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  t.notOk(modern.received.some(({ message }) => message?.['method'] === 'ping'))
})
