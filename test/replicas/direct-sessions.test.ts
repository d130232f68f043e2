/** Sessions of the server itself, which replicas share: each replica knows a session before its client does. */
import type { ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { LegacyClient } from '../support/legacy-client.js'
import { LegacyHttp, type Override } from '../support/legacy-http.js'
import { send } from '../support/modern.js'
import { noRedis, RedisServer } from '../support/redis.js'

const TOKEN = 'token-of-alice-0123456789'
const settings = { auth: { tokens: { alice: TOKEN } }, stateKeys: ['a secret that all the replicas know of'] }
const authorization = `Bearer ${TOKEN}`

/** So many replicas in front of one legacy server with sessions of its own. */
async function start(t: Test, count: number, timeout = 30_000, override: Override = () => false) {
  const redis = await RedisServer.start(t)
  const server = await LegacyHttp.start(t, { sessions: true, override })
  const options = { ...settings, redis: { url: redis.url, timeout } }
  const replicas = await Promise.all(Array.from({ length: count }, () => startBridge(t, { url: server.url }, options)))
  return { redis, server, replicas, urls: replicas.map(({ url }) => url) as [string, string, string] }
}

const LIST = JSON.stringify({ jsonrpc: '2.0', id: 5, method: 'tools/list' })
const statusAt = async (url: string, { headers }: LegacyClient) =>
  (await send('POST', url, LIST, headers as never)).status

t.test('all replicas know a session when its client gets the answer', { skip: noRedis }, async (t) => {
  const { urls } = await start(t, 2)
  for (let round = 0; round < 10; round++) {
    const statuses = await Promise.all(
      Array.from({ length: 16 }, async () => {
        const client = await LegacyClient.open(urls[0], { headers: { authorization } })
        return statusAt(urls[1], client)
      }),
    )
    t.same([...new Set(statuses)], [200])
  }
})

t.test(
  'a session that was opened without Redis is known to all replicas once Redis is back',
  { skip: noRedis },
  async (t) => {
    const { redis, urls } = await start(t, 2, 1_000)
    await redis.stop()
    const client = await LegacyClient.open(urls[0], { headers: { authorization } })
    await redis.start()
    await until(async () => (await statusAt(urls[1], client)) === 200)
  },
)

t.test(
  'sessions survive a Redis that returns empty, although nobody uses them meanwhile',
  { skip: noRedis },
  async (t) => {
    const { redis, urls } = await start(t, 3, 1_000)
    const client = await LegacyClient.open(urls[0], { headers: { authorization } })
    t.equal(await statusAt(urls[1], client), 200)
    await redis.stop()
    await redis.start()
    await until(async () => (await statusAt(urls[2], client)) === 200)
  },
)

/** Sets a cookie for each session, and another value when the session calls a tool. */
function settingCookies(): Override {
  let count = 0
  return ({ message }, response) => {
    const sets = message['method'] === 'initialize' || message['method'] === 'tools/call'
    if (sets) response.setHeader('set-cookie', [`LB=${++count}; Path=/; HttpOnly`, 'other=1; Path=/elsewhere'])
    return false
  }
}

t.test('every replica sends the cookies of a session, wherever they were set', { skip: noRedis }, async (t) => {
  const { server, urls } = await start(t, 3, 30_000, settingCookies())
  const at = ({ headers }: LegacyClient, n: number, method: string, params = {}) => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 5, method, params })
    return send('POST', urls[n] as string, body, headers as never)
  }
  const clients = await Promise.all(
    Array.from({ length: 8 }, (_, n) => LegacyClient.open(urls[0], { headers: { authorization, 'x-client': `${n}` } })),
  )
  /** The cookie that came with the last request of the session. */
  const last = ({ headers: own }: LegacyClient) =>
    server.received.findLast(({ headers }) => headers['x-client'] === own['x-client'])?.headers.cookie
  const first = clients.map(last)
  t.equal(new Set(first).size, 8, 'sessions share no cookies')
  await Promise.all(
    clients.map(async (client, n) => {
      for (const replica of [1, 2, 0, 2]) {
        t.equal((await at(client, replica, 'tools/list')).status, 200)
        t.equal(last(client), first[n])
      }
      for (const [calling, next, another] of [
        [1, 0, 2],
        [2, 1, 0],
      ] as const) {
        const before = last(client)
        const answer = await at(client, calling, 'tools/call', { name: 'echo' })
        t.equal(answer.headers['set-cookie'], undefined)
        await at(client, next, 'tools/list')
        const after = last(client)
        t.not(after, before)
        t.match(after, /^LB=\d+$/)
        await at(client, another, 'tools/list')
        t.equal(last(client), after)
      }
    }),
  )
  t.equal(new Set(clients.map(last)).size, 8)
})

t.test('without Redis, cookies of a session stay, and are shared once it is back', { skip: noRedis }, async (t) => {
  const { redis, server, urls } = await start(t, 2, 1_000, settingCookies())
  const client = await LegacyClient.open(urls[0], { headers: { authorization } })
  await redis.stop()
  t.equal((await client.call('echo')).status, 200)
  t.equal((await client.request('tools/list')).status, 200)
  t.equal(server.received.at(-1)?.headers.cookie, 'LB=2')
  await redis.start()
  await until(async () => (await statusAt(urls[1], client)) === 200)
  t.equal(server.received.at(-1)?.headers.cookie, 'LB=2')
})

t.test('a replica that shuts down opens no stream at another one, where it would end', { skip: noRedis }, async (t) => {
  let open: ServerResponse | undefined
  const { server, replicas, urls } = await start(t, 2, 30_000, ({ method, message }, response) => {
    if (message['method'] !== 'tools/call' && method !== 'GET') return false
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
    if (method !== 'GET') open = response
    return true
  })
  const client = await LegacyClient.open(urls[0], { headers: { authorization } })
  const calling = client.stream('tools/call', { name: 'echo', arguments: {} }, { id: 'c' })
  await until(() => open !== undefined, 'a call that holds up the end')
  const closing = replicas[0]?.bridge.close()
  const isRefused = async () => (await LegacyClient.open(urls[0], { headers: { authorization } })).opened.status === 503
  await until(isRefused, 'the refusal of sessions')
  const streams = () => server.received.filter(({ method }) => method === 'GET').length
  const before = streams()
  const ending = await client.listen()
  await ending.ended()
  t.equal(ending.status, 200)
  t.equal(streams(), before)
  const elsewhere = Object.assign(Object.create(client) as LegacyClient, { url: urls[1] })
  t.equal((await elsewhere.listen()).status, 200)
  t.ok(streams() > before)
  open?.end('data: {"jsonrpc":"2.0","id":"c","result":{}}\n\n')
  await (await calling).ended()
  await closing
})
