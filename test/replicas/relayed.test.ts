/** Relayed sessions, of which replicas share the owner: each replica knows a session before its client does. */
import t, { type Test } from 'tap'
import { RelayedSessions } from '../../src/downstream/http/relayed-sessions.js'
import type { SharedStore } from '../../src/ports/replicas.js'
import { Cookies } from '../../src/upstream/transport/cookies.js'
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
  return { redis, server, urls: replicas.map(({ url }) => url) as [string, string, string] }
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

t.test('an answer to initialize waits for the shared store, however slow it is', async (t) => {
  const written: ((worked: boolean) => void)[] = []
  const records = { remember: () => new Promise<boolean>((resolve) => written.push(resolve)) } as unknown as SharedStore
  const sessions = new RelayedSessions({ max: 9, shared: { server: 's', records, idle: 60_000 }, report: () => {} })
  let known = false
  const opening = sessions.opened('id', { principal: 'alice', ours: false })?.then(() => {
    known = true
  })
  t.equal(await sessions.isOf('alice', 'id', false), true)
  t.equal(known, false)
  t.equal(written.length, 1, 'a session that is being written is not written again')
  written[0]?.(false)
  await opening
  t.equal(known, true, 'a store that fails does not keep the answer')
  await sessions.isOf('alice', 'id', false)
  t.equal(written.length, 2, 'the next use writes again what was not written')
  written[1]?.(true)
  await sessions.isOf('alice', 'id', false)
  t.equal(written.length, 2)
  const again = sessions.shareAgain()
  t.equal(written.length, 3)
  written[2]?.(false)
  await again
  await until(() => written.length === 4, 'another try, though nobody uses the session')
  sessions.close()
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

t.test('every replica sends the cookies of a relayed session, wherever they were set', { skip: noRedis }, async (t) => {
  const { server, urls } = await start(t, 3, 30_000, settingCookies())
  const at = ({ headers }: LegacyClient, n: number, method: string, params = {}) => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 5, method, params })
    return send('POST', urls[n] as string, body, headers as never)
  }
  const clients = await Promise.all(
    Array.from({ length: 8 }, () => LegacyClient.open(urls[0], { headers: { authorization } })),
  )
  /** The cookie that came with the last request of the session. */
  const last = ({ session }: LegacyClient) =>
    server.received.findLast(({ headers }) => headers['mcp-session-id'] === session)?.headers.cookie
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

t.test('a record has the cookies of a session; one of another origin or without cookies changes none', async (t) => {
  const values = new Map<string, string>()
  const records = {
    recall: async (kind: string, name: string) => values.get(`${kind} ${name}`),
    remember: async (kind: string, name: string, text: string) => !!values.set(`${kind} ${name}`, text),
  } as unknown as SharedStore
  const replica = (origin: string) =>
    new RelayedSessions({
      max: 9,
      shared: { server: 's', records, idle: 60_000 },
      cookies: () => new Cookies(new URL('/mcp', origin)),
      report: () => {},
    })
  const sent = (sessions: RelayedSessions): string | undefined =>
    sessions.cookiesOf('id')?.addTo('/mcp', {} as Record<string, string>)['cookie']
  const [one, two, other] = [replica('http://a.test'), replica('http://a.test'), replica('http://a.test:81')]
  const cookies = new Cookies(new URL('http://a.test/mcp'))
  cookies.keepFrom('/mcp', { 'set-cookie': 'LB=1' })
  await one.opened('id', { principal: 'alice', ours: false, cookies })
  for (const sessions of [two, other]) t.equal(await sessions.isOf('alice', 'id', false), true)
  t.equal(sent(two), 'LB=1')
  t.equal(sent(other), undefined, 'cookies know no port')
  for (const [name, text] of values) values.set(name, JSON.stringify({ ...JSON.parse(text), cookies: undefined }))
  await two.isOf('alice', 'id', false)
  t.equal(sent(two), 'LB=1', 'an older replica shares none')
  two.cookiesOf('id')?.keepFrom('/mcp', { 'set-cookie': 'LB=2' })
  await two.cookiesTaken('id')
  await one.isOf('alice', 'id', false)
  t.equal(sent(one), 'LB=2')
  t.equal(two.cookiesTaken('id'), undefined, 'nothing is written twice')
})

t.test('an unused relayed session is forgotten, and one with an open request is not', async (t) => {
  const ended: string[] = []
  const written: string[] = []
  const remember = async (_kind: string, name: string) => {
    written.push(name)
    return true
  }
  const sessions = new RelayedSessions({
    max: 9,
    idle: 80,
    shared: { server: 's', records: { remember } as unknown as SharedStore, idle: 80 },
    report: (what, id) => void (what === 'ended' && ended.push(id)),
  })
  t.teardown(() => sessions.close())
  const owner = { principal: 'alice', ours: false }
  await sessions.opened('unused', owner)
  await sessions.opened('streaming', owner)
  const leave = sessions.begin('streaming')
  await until(() => ended.length > 0)
  t.same(ended, ['unused'])
  const before = written.length
  await until(() => written.length > before + 2, 'the store being told of the session in use')
  t.notOk(written.slice(before).includes('s unused'))
  leave()
  await until(() => sessions.size === 0)
})

t.test('relayed sessions whose clients left leave nothing behind', async (t) => {
  const server = await LegacyHttp.start(t, { sessions: true })
  const auth = { tokens: { alice: TOKEN } }
  const { url, bridge } = await startBridge(t, { url: server.url }, { auth, timeouts: { clientIdle: 200 } })
  const open = () => LegacyClient.open(url, { headers: { authorization }, ready: false })
  const left = async () => {
    const http = await bridge.mounts.get('test')?.http()
    return http?.gauges.find(({ bound }) => bound === 'relayed_sessions')?.used
  }
  // On a busy machine, a session may be forgotten before its stream opens.
  let stream = await (await open()).listen()
  while (stream.status !== 200) stream = await (await open()).listen()
  await Promise.all(Array.from({ length: 20 }, open))
  await until(async () => (await left()) === 1, 'only the one with a stream')
  stream.leave()
  await until(async () => (await left()) === 0)
})
