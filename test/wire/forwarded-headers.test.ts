/** Headers of callers by list: a server gets those of the caller of each request, those of its own list, and no others. */
import { readFileSync } from 'node:fs'
import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { EventRecorder } from '../../src/inspector/recorder/recorder.js'
import { Ring } from '../../src/inspector/ring.js'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { temporaryFolder } from '../support/folder.js'
import { LegacyClient } from '../support/legacy-client.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { LegacySse } from '../support/legacy-sse.js'
import { CAPABILITIES, call, post } from '../support/modern.js'
import { ModernHttp } from '../support/modern-http.js'
import { noRedis, RedisServer } from '../support/redis.js'
import { eventsIn } from '../support/sights.js'
import { SseClient } from '../support/sse-client.js'

type Json = Record<string, unknown>

interface Server {
  url: string
  received: readonly { headers: IncomingHttpHeaders; message: Json | undefined }[]
}

const SERVERS: Record<string, (t: Test) => Promise<Server>> = {
  modern: (t) => ModernHttp.start(t),
  legacy: (t) => LegacyHttp.start(t, { sessions: true }),
  'HTTP+SSE': async (t) => {
    const sse = await LegacySse.start(t)
    return { url: sse.url, received: sse.received }
  },
}
const PEOPLE = ['alice', 'bob'] as const
type Who = (typeof PEOPLE)[number]
const keyOf = (who: string) => `key-of-${who}-0123456789`
const headersOf = (who: Who) => ({
  'x-api-key': keyOf(who),
  'x-other-key': keyOf(who),
  'X-Jira-Token': `Bearer jira-of-${who}`,
})
const FORWARD = { 'X-Api-Key': true, 'x-jira-token': 'authorization' }

/** Who has called, by the argument of each call, and the headers that came with it. */
function calls({ received }: Server): { who: unknown; headers: IncomingHttpHeaders }[] {
  return received.flatMap(({ headers, message }) => {
    const { arguments: given } = (message?.['params'] ?? {}) as { arguments?: Json }
    return message?.['method'] === 'tools/call' ? [{ who: given?.['who'], headers }] : []
  })
}

/** Calls of a person by a client of each kind. */
async function use(url: string, who: Who): Promise<void> {
  const headers = headersOf(who)
  await call(url, 'tools/list', {}, { headers })
  await call(url, 'tools/call', { name: 'echo', arguments: { who } }, { headers })
  const legacy = await LegacyClient.open(url, { headers })
  await legacy.request('tools/list')
  await legacy.call('echo', { who })
  await legacy.end()
  const sse = await SseClient.open(url, '2025-11-25', {}, headers)
  await sse.request('tools/call', { name: 'echo', arguments: { who } })
  sse.stream.leave()
}

for (const [era, start] of Object.entries(SERVERS)) {
  t.test(`a ${era} server gets the headers of the caller of each request, and nobody else's`, async (t) => {
    const server = await start(t)
    const { url, log } = await startBridge(t, { url: server.url, forward: FORWARD })
    for (let round = 0; round < 2; round++) await Promise.all(PEOPLE.map((who) => use(url, who)))
    t.equal(calls(server).length, 12)
    for (const { who, headers } of calls(server))
      t.match(headers, { 'x-api-key': keyOf(String(who)), authorization: `Bearer jira-of-${who}` })
    for (const { headers } of server.received) {
      const [, who] = /^key-of-(\w+)-/.exec(String(headers['x-api-key'])) ?? []
      t.equal(headers.authorization, `Bearer jira-of-${who}`, 'one person in each request')
      t.notOk('x-jira-token' in headers, 'which goes under the other name only')
      t.notOk('x-other-key' in headers, 'and what is not in the list does not go')
    }
    t.notMatch(JSON.stringify(log), /key-of|jira-of/)
  })
}

t.test('each server of a group gets those of its own list', async (t) => {
  const [jira, stock, plain] = [await SERVERS['legacy']?.(t), await ModernHttp.start(t), await ModernHttp.start(t)]
  const { url: first } = await startBridge(
    t,
    {},
    {
      mcpServers: {
        jira: { url: jira?.url, forward: { 'x-jira-token': 'authorization' } },
        stock: { url: stock.url, forward: { 'x-api-key': true } },
        plain: { url: plain.url },
      },
      groups: { team: {} },
    },
  )
  const url = new URL('/team/mcp', first).href
  const inGroup = async (who: Who) => {
    const headers = headersOf(who)
    for (const name of ['jira__echo', 'stock__echo', 'plain__echo'])
      await call(url, 'tools/call', { name, arguments: { who } }, { headers })
    const legacy = await LegacyClient.open(url, { headers })
    for (const name of ['jira__echo', 'stock__echo', 'plain__echo']) await legacy.call(name, { who })
    await legacy.notify('notifications/roots/list_changed')
  }
  await Promise.all(PEOPLE.map(inGroup))
  const seen = (server: Server | undefined) =>
    new Set(
      server &&
        calls(server).map(({ who, headers }) => JSON.stringify([who, headers['x-api-key'], headers.authorization])),
    )
  t.same(seen(jira), new Set(PEOPLE.map((who) => JSON.stringify([who, undefined, `Bearer jira-of-${who}`]))))
  t.same(seen(stock), new Set(PEOPLE.map((who) => JSON.stringify([who, keyOf(who), undefined]))))
  t.same(seen(plain), new Set(PEOPLE.map((who) => JSON.stringify([who, undefined, undefined]))))
  for (const { headers } of plain.received) t.notMatch(JSON.stringify(headers), /key-of|jira-of/)
})

t.test('what belongs to a caller with one key does not exist for the same caller with another one', async (t) => {
  for (const auth of [undefined, { tokens: { anna: 'token-of-anna-0123456789' } }]) {
    const server = await LegacyHttp.start(t, { sessions: true })
    const { url } = await startBridge(
      t,
      { url: server.url, forward: FORWARD, cache: 60_000, cacheFor: 'public' },
      auth && { auth },
    )
    const who = auth ? { authorization: 'Bearer token-of-anna-0123456789' } : {}
    const alice = { ...who, ...headersOf('alice') }
    const bob = { ...who, ...headersOf('bob') }
    const client = await LegacyClient.open(url, { headers: alice })
    t.match((await client.call('echo', { who: 'alice' })).message, { result: {} })
    t.equal((await client.request('ping', undefined, { headers: bob })).status, 404, 'a session')
    t.equal(
      (await client.request('ping', undefined, { headers: { 'x-api-key': undefined } })).status,
      404,
      'without it',
    )
    const lists = () => server.of('tools/list').length
    await call(url, 'tools/list', {}, { headers: alice })
    const before = lists()
    await call(url, 'tools/list', {}, { headers: alice })
    t.equal(lists(), before, 'a cached list')
    await call(url, 'tools/list', {}, { headers: bob })
    t.equal(lists(), before + 1, 'of one person')
    t.match(server.of('tools/list').at(-1)?.headers, { 'x-api-key': keyOf('bob') })
  }
})

t.test('tasks and subscriptions are those of the caller with the same key', async (t) => {
  const server = await ModernHttp.start(t)
  const { url } = await startBridge(t, { url: server.url, forward: FORWARD })
  const meta = { [CAPABILITIES]: { extensions: { 'io.modelcontextprotocol/tasks': {} } } }
  const ask = async (who: Who, method: string, params: Json) =>
    (await call(url, method, params, { meta, headers: headersOf(who) })).message
  const made = await ask('alice', 'tools/call', { name: 'task', arguments: { polls: 9 } })
  const { taskId } = made.result as { taskId: string }
  t.match(await ask('bob', 'tasks/get', { taskId }), { error: { message: 'Unknown or expired taskId' } })
  t.match(await ask('alice', 'tasks/get', { taskId }), { result: { taskId } })
  const listen = (who: Who) => ask(who, 'subscriptions/listen', { notifications: { toolsListChanged: true } })
  const listening = Promise.all(PEOPLE.map(listen))
  await until(() => server.of('subscriptions/listen').length === 2, 'one each')
  t.same(
    server
      .of('subscriptions/listen')
      .map(({ headers }) => headers['x-api-key'])
      .sort(),
    PEOPLE.map(keyOf),
  )
  server.touch({ end: true })
  await listening
})

t.test('scopes, accounts and limits are those of the person, whatever the key', async (t) => {
  const server = await ModernHttp.start(t)
  const { url, log } = await startBridge(
    t,
    { url: server.url, forward: FORWARD, scopes: { echo: ['read'] } },
    {
      auth: {
        tokens: { anna: { token: 'token-of-anna-0123456789', scopes: ['read'] }, ben: 'token-of-ben-0123456789' },
      },
      limits: { tools: [{ tools: 'test__echo', max: 2, every: '1m' }] },
    },
  )
  const ask = async (token: string, who: Who) =>
    (
      await call(
        url,
        'tools/call',
        { name: 'echo', arguments: { who } },
        {
          headers: { ...headersOf(who), authorization: `Bearer ${token}` },
        },
      )
    ).message
  t.notMatch(await ask('token-of-anna-0123456789', 'alice'), { result: { isError: true } })
  t.notMatch(await ask('token-of-anna-0123456789', 'bob'), { result: { isError: true } })
  const third = await ask('token-of-anna-0123456789', 'bob')
  t.match(third.error, { data: { reason: 'rate_limited' } }, 'the limit is used up')
  t.match(await ask('token-of-ben-0123456789', 'alice'), { result: { isError: true } }, 'no scope')
  t.equal(calls(server).length, 2)
  t.match(JSON.stringify(log), /"principal":"anna k:[0-9a-f]{12}"/)
})

t.test('no value is in what is recorded, logged, audited, measured or said', async (t) => {
  const ring = new Ring({ payloads: 'all' })
  const refuses = (received: { headers: IncomingHttpHeaders }, response: ServerResponse): boolean => {
    if (received.headers['x-api-key'] !== keyOf('bob')) return false
    response.writeHead(401, { 'content-type': 'text/plain' }).end(`No such key: ${received.headers['x-api-key']}`)
    return true
  }
  const servers = [await ModernHttp.start(t, { override: refuses }), await LegacyHttp.start(t, { override: refuses })]
  const mcpServers = Object.fromEntries(servers.map(({ url }, i) => [`s${i}`, { url, forward: FORWARD }]))
  const file = join(temporaryFolder(t), 'audit.jsonl')
  const settings = { mcpServers, groups: { team: {} }, audit: { file } }
  const started = await startBridge(t, {}, settings, { recorder: new EventRecorder(ring.record) })
  const said: string[] = []
  for (const path of ['/s0/mcp', '/s1/mcp', '/team/mcp'])
    for (const who of PEOPLE) {
      const url = new URL(path, started.url).href
      const headers = headersOf(who)
      const { text } = await call(url, 'tools/call', { name: 's1__echo', arguments: { who } }, { headers })
      const legacy = await LegacyClient.open(url, { headers })
      said.push(text, legacy.opened.text, (await legacy.call('s0__echo', { who })).text)
    }
  const events = eventsIn(ring).map((one) => JSON.stringify(one))
  t.ok(events.length > 50, `${events.length} events`)
  said.push(...events, JSON.stringify(started.log), readFileSync(file, 'utf8'))
  said.push(await (await fetch(new URL('/metrics', started.url))).text())
  for (const text of said) t.notMatch(text, /key-of|jira-of/)
})

t.test('a required header that is missing is named', async (t) => {
  const require = { 'x-api-key': { require: true }, 'x-jira-token': { as: 'authorization' } }
  for (const [era, start] of Object.entries(SERVERS)) {
    const server = await start(t)
    const { url } = await startBridge(t, { url: server.url, forward: require })
    const headers = { 'x-jira-token': 'Bearer x' }
    const modern = await call(url, 'tools/call', { name: 'echo' }, { headers })
    t.match(modern.message, { result: { isError: true, content: [{ text: /requires the header x-api-key/ }] } }, era)
    const list = await call(url, 'tools/list', {}, { headers: { 'x-api-key': '' } })
    t.match(list.message, { error: { data: { reason: 'header_missing', header: 'x-api-key' } } })
    const { opened } = await LegacyClient.open(url)
    t.match(opened.message.error, { message: /requires the header x-api-key/ })
    t.same(calls(server), [])
    await use(url, 'alice')
    t.equal(calls(server).length, 3)
  }
})

t.test('a group goes on without a server whose header a caller lacks, and says so', async (t) => {
  const [stock, plain] = [await ModernHttp.start(t), await ModernHttp.start(t)]
  const { url: first } = await startBridge(
    t,
    {},
    {
      mcpServers: { stock: { url: stock.url, forward: { 'x-api-key': { require: true } } }, plain: { url: plain.url } },
      groups: { team: {} },
    },
  )
  const url = new URL('/team/mcp', first).href
  const names = async (headers: Record<string, string>) => {
    const { message } = await call(url, 'tools/list', {}, { headers })
    return new Set((message.result?.['tools'] as { name: string }[]).map(({ name }) => name.split('__')[0]))
  }
  t.same(await names({}), new Set(['plain']))
  t.same(await names(headersOf('alice')), new Set(['stock', 'plain']))
  const { message } = await call(url, 'tools/call', { name: 'stock__echo' })
  t.match(message, { result: { isError: true, content: [{ text: /"stock" requires the header x-api-key/ }] } })
})

t.test('a header that comes twice is refused', async (t) => {
  const server = await ModernHttp.start(t)
  const { url } = await startBridge(t, { url: server.url, forward: FORWARD })
  const { status, message } = await call(url, 'tools/list', {}, { headers: { 'x-api-key': ['one', 'two'] } })
  t.equal(status, 400)
  t.match(message.error, { message: 'The header x-api-key appears twice' })
  t.same(
    server.received.filter(({ headers }) => 'x-api-key' in headers),
    [],
  )
})

t.test('the header of a caller replaces that of the bridge where that is said, and only for that caller', async (t) => {
  for (const [era, start] of Object.entries(SERVERS)) {
    const server = await start(t)
    const { url } = await startBridge(t, {
      url: server.url,
      headers: { 'X-Api-Key': 'key-of-bridge' },
      forward: { 'x-api-key': { replace: true } },
    })
    await use(url, 'alice')
    for (const { headers } of calls(server)) t.equal(headers['x-api-key'], keyOf('alice'), era)
    await call(url, 'tools/call', { name: 'echo', arguments: {} })
    t.equal(calls(server).at(-1)?.headers['x-api-key'], 'key-of-bridge')
  }
})

t.test('a server that wants a key is ready without anybody, and a wrong key is about its caller only', async (t) => {
  const server = await ModernHttp.start(t, {
    override: ({ headers }, response) => {
      if (headers['x-api-key'] === keyOf('alice')) return false
      response.writeHead(401).end('wrong key')
      return true
    },
  })
  const { url, bridge } = await startBridge(t, { url: server.url, forward: FORWARD })
  t.equal(await bridge.server.warmUp(), undefined)
  for (let round = 0; round < 3; round++) {
    const wrong = await call(url, 'tools/call', { name: 'echo' }, { headers: headersOf('bob') })
    t.match(wrong.message.error, { data: { reason: 'upstream_auth_required' } })
    const right = await call(url, 'tools/call', { name: 'echo' }, { headers: headersOf('alice') })
    t.match(right.message, { result: {} })
  }
})

t.test('replicas know a caller by a digest of the headers', { skip: noRedis }, async (t) => {
  const redis = await RedisServer.start(t)
  const server = await LegacyHttp.start(t, { sessions: true })
  const shared = { redis: { url: redis.url }, stateKeys: ['a secret that all the replicas know of'] }
  const start = () => startBridge(t, { url: server.url, forward: FORWARD }, shared)
  const [one, other] = [await start(), await start()]
  const client = await LegacyClient.open(one.url, { headers: headersOf('alice') })
  await client.call('echo', { who: 'alice' })
  const elsewhere = (who: Who) =>
    post(other.url, client.text('tools/call', { name: 'echo', arguments: { who: 'alice' } }, {}), {
      ...client.headers,
      ...headersOf(who),
    })
  t.equal((await elsewhere('bob')).status, 404)
  t.match((await elsewhere('alice')).message, { result: {} })
  await until(() => calls(server).length === 2, 'both calls')
  for (const { headers } of calls(server)) t.equal(headers['x-api-key'], keyOf('alice'))
  t.notMatch(JSON.stringify([...one.log, ...other.log]), /key-of|jira-of/)
})
