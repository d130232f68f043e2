/** Replicas of the bridge in front of a server with several addresses. */
import t from 'tap'
import { startBridge } from '../support/bridge.js'
import { LegacyClient } from '../support/legacy-client.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { send } from '../support/modern.js'
import { ownSessions } from '../support/own-sessions.js'
import { noRedis, RedisServer } from '../support/redis.js'

const ECHO = JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: 'echo', arguments: {} } })

t.test('a session goes on at the other replica, at the same address', { skip: noRedis }, async (t) => {
  const redis = await RedisServer.start(t)
  const servers = [
    await LegacyHttp.start(t, { override: ownSessions() }),
    await LegacyHttp.start(t, { override: ownSessions() }),
  ]
  const settings = {
    redis: { url: redis.url, timeout: 30_000 },
    stateKeys: ['a secret that all the replicas know of'],
    auth: { tokens: { alice: 'alice-alice-alice-alice', bob: 'bob-bob-bob-bob-bob' } },
  }
  const entry = { url: servers.map(({ url }) => url) }
  const [one, two] = [await startBridge(t, entry, settings), await startBridge(t, entry, settings)]
  const headers = { authorization: 'Bearer alice-alice-alice-alice' }
  const clients: LegacyClient[] = []
  while (clients.length < 8) clients.push(await LegacyClient.open(one.url, { headers }))
  const opened = servers.map((server) => server.of('initialize').length)
  t.ok(Math.min(...opened) > 0, `${opened}`)
  const at = async (url: string, more: object = {}) => {
    const sent = clients.map((client) => send('POST', url, ECHO, { ...client.headers, ...more } as never))
    return (await Promise.all(sent)).map(({ status }) => status)
  }
  t.strictSame(new Set(await at(two.url)), new Set([200]), 'by way of its replica')
  await one.bridge.close()
  t.strictSame(new Set(await at(two.url)), new Set([200]), 'without it')
  const bob = { authorization: 'Bearer bob-bob-bob-bob-bob' }
  t.strictSame(new Set(await at(two.url, bob)), new Set([404]), 'nobody else has it')
  t.strictSame(
    servers.map((server) => server.of('initialize').length),
    opened,
    'no session was opened again',
  )
  for (const server of servers) {
    const sessions = server.of('tools/call').map(({ headers: sent }) => sent['mcp-session-id'])
    t.equal(new Set(sessions).size, server.of('initialize').length, 'each address has its own')
  }
})
