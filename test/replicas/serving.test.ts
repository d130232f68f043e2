/** What lives in one replica is served by the others: parked calls, tasks, sessions, streams; and what servers say reaches all. */
import t, { type Test } from 'tap'
import { ADA, all, NAME, of, startAsker, talk, WAYS } from '../support/asking.js'
import { startBridge } from '../support/bridge.js'
import { openStream } from '../support/events.js'
import { until } from '../support/eventually.js'
import { LegacyClient } from '../support/legacy-client.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { ALL_LISTS, changed, hears, listen, told, updated } from '../support/listening.js'
import { call, post, send } from '../support/modern.js'
import { modernStdio } from '../support/modern-stdio.js'
import { noRedis, RedisServer } from '../support/redis.js'
import { SseClient } from '../support/sse-client.js'

type Json = Record<string, unknown>

const STATE_KEYS = ['a secret that all the replicas know of']
const TOKENS = { alice: 'token-of-alice-0123456789', bob: 'token-of-bob-0123456789' }

/** What comes of TOUCH, sorted. */
const BOTH_CHANGES = [changed('tools'), updated('test://static')]
const byMethod = (a: { method: unknown }, b: { method: unknown }) => (String(a.method) > String(b.method) ? -1 : 1)
const TOUCH = { name: 'touch', arguments: { tools: true, uris: ['test://static'] } }

/** So many replicas in front of one server. */
async function start(t: Test, server: object, settings: object = {}, count = 2) {
  const redis = await RedisServer.start(t)
  const shared = { redis: { url: redis.url, timeout: 30_000 }, stateKeys: STATE_KEYS, ...settings }
  const replicas = await Promise.all(Array.from({ length: count }, () => startBridge(t, server, shared)))
  return { redis, replicas, urls: replicas.map(({ url }) => url) as [string, string, string] }
}

const test = (name: string, body: (t: Test) => Promise<void>) => t.test(name, { skip: noRedis }, body)

for (const way of WAYS) {
  test(`a call that asks ${way} goes on by way of any replica, round after round`, async (t) => {
    const asker = await startAsker(t, way)
    const { urls } = await start(t, asker.server)
    const [here, there] = urls.map((url) => talk(url, asker)) as [ReturnType<typeof talk>, ReturnType<typeof talk>]
    const first = await here.steps([{ ask: [NAME] }, { ask: [NAME] }, { ask: [NAME] }])
    const params = here.paramsOf(first)
    const retry = (of: typeof first, to = there) =>
      to.call('tools/call', { ...params, inputResponses: all(of, ADA), requestState: of.state })
    const second = await retry(first)
    const third = await retry(second)
    t.same((await retry(third, here)).said, [ADA, ADA, ADA])
    t.equal(of(asker, 'tools/call').length, 1, 'the server was called once')
  })
}

test('progress comes through as it is made, and an answer again to who asks again', async (t) => {
  const asker = await startAsker(t, 'over stdio')
  const { urls } = await start(t, asker.server)
  const [here, there] = urls.map((url) => talk(url, asker)) as [ReturnType<typeof talk>, ReturnType<typeof talk>]
  const tell = (progress: number) => ({ tell: { method: 'notifications/progress', params: { progress } } })
  const steps = [{ ask: [NAME] }, tell(1), { wait: 300 }, tell(2), { wait: 100 }]
  const first = await here.steps(steps as Parameters<typeof here.steps>[0], {}, { meta: { progressToken: 'p' } })
  const retry = { ...here.paramsOf(first), inputResponses: all(first, ADA), requestState: first.state }
  const last = await there.call('tools/call', retry, { meta: { progressToken: 'q' } })
  t.match(String(last.headers['content-type']), 'text/event-stream')
  t.same(
    last.messages.flatMap(({ params }) => (params as Json | undefined) ?? []),
    [1, 2].map((progress) => ({ progressToken: 'q', progress })),
  )
  t.same(last.said, [ADA])
  t.same((await there.call('tools/call', retry)).said, [ADA])
  t.equal(of(asker, 'tools/call').length, 1)
})

test('who leaves a retry that is carried leaves the call', async (t) => {
  const asker = await startAsker(t, 'over stdio')
  const { urls } = await start(t, asker.server)
  const here = talk(urls[0], asker)
  const first = await here.steps([{ ask: [NAME] }, { wait: 60_000 }])
  const retry = { ...here.paramsOf(first), inputResponses: all(first, ADA), requestState: first.state }
  const controller = new AbortController()
  const left = talk(urls[1], asker).call('tools/call', retry, { signal: controller.signal })
  await until(() => of(asker).length === 1)
  controller.abort()
  await t.rejects(left)
  await until(() => of(asker, 'notifications/cancelled').length === 1)
})

test('a state of somebody else, or of another call, is refused where it comes', async (t) => {
  const asker = await startAsker(t, 'over stdio')
  const { urls, replicas } = await start(t, asker.server, { auth: { tokens: TOKENS } })
  const as = (token: string) => ({ headers: { authorization: `Bearer ${token}` } })
  const first = await talk(urls[0]).steps([{ ask: [NAME] }], {}, as(TOKENS.alice))
  const retry = {
    name: 'steps',
    arguments: { steps: [{ ask: [NAME] }] },
    inputResponses: all(first, ADA),
    requestState: first.state,
  }
  const there = talk(urls[1])
  const theirs = await there.call('tools/call', retry, as(TOKENS.bob))
  t.match(theirs.message.error, { code: -32602, data: { reason: 'invalid_request_state' } })
  const other = await there.call('tools/call', { ...retry, arguments: { steps: [] } }, as(TOKENS.alice))
  t.match(other.message.error, { code: -32602, data: { reason: 'invalid_request_state' } })
  const carried = replicas[1]?.log.filter(({ event }) => event === 'call_forwarded')
  t.same(carried, [], 'nothing was carried')
  t.same((await there.call('tools/call', retry, as(TOKENS.alice))).said, [ADA])
})

test('a task is known to all', async (t) => {
  const asker = await startAsker(t, 'over stdio')
  const { urls } = await start(t, asker.server)
  const extensions = { 'io.modelcontextprotocol/tasks': {} }
  const capabilities = { extensions, elicitation: {} }
  const [here, there] = urls.map((url) => talk(url, { capabilities })) as [
    ReturnType<typeof talk>,
    ReturnType<typeof talk>,
  ]
  const made = await here.call('tools/call', { name: 'job', arguments: {} })
  const taskId = String(made.message.result?.['taskId'])
  const looked = await there.call('tasks/get', { taskId })
  t.match(looked.message.result, { taskId })
  const stream = await listen(urls[1], { taskIds: [taskId] }, { capabilities })
  await stream.has(1)
  t.match(stream.messages[0], { params: { notifications: { taskIds: [taskId] } } })
  stream.leave()
  const cancelled = await there.call('tasks/cancel', { taskId })
  t.notOk(cancelled.message.error)
})

test('a session of a legacy client is served by all: its requests, its stream, what it is asked, its end', async (t) => {
  const { urls } = await start(t, legacyStdio(t).server)
  const client = await LegacyClient.open(urls[0])
  const there = { ...client.headers }
  const request = (method: string, body: unknown, url = urls[1]) =>
    send(method, url, JSON.stringify(body), there as never)
  const listed = await request('POST', { jsonrpc: '2.0', id: 5, method: 'tools/list' })
  t.equal(listed.status, 200)
  t.equal(listed.message['id'], 5)
  t.ok(Array.isArray(listed.message.result?.['tools']))
  t.match(String(listed.headers['content-type']), 'application/json')
  t.ok(listed.headers['content-length'] !== undefined)
  t.equal((await request('POST', { jsonrpc: '2.0', method: 'notifications/initialized' })).status, 202)

  // Asked on a stream by way of one, it answers by way of the other.
  const own = { ...there, accept: 'text/event-stream', 'content-type': undefined }
  const stream = await openStream('GET', urls[1], own)
  t.equal(stream.status, 200)
  t.match(String(stream.headers['content-type']), 'text/event-stream')
  const touched = await request('POST', { jsonrpc: '2.0', id: 8, method: 'tools/call', params: TOUCH }, urls[0])
  t.equal(touched.status, 200)
  await until(() => stream.messages.some(({ method }) => method === changed('tools').method))
  stream.leave()
  const again = await openStream('GET', urls[1], { ...own, 'last-event-id': stream.ids[0] })
  await until(() => again.messages.length > 0)
  t.match(again.messages[0], changed('tools'), 'and has again what came after an event')
  again.leave()

  t.equal((await send('DELETE', urls[1], undefined, there as never)).status, 200)
  t.equal((await request('POST', { jsonrpc: '2.0', id: 6, method: 'tools/list' })).status, 404)
  t.equal((await request('POST', { jsonrpc: '2.0', id: 7, method: 'tools/list' }, urls[0])).status, 404)
})

test('what is posted to a session of HTTP+SSE may come to any replica', async (t) => {
  const { urls } = await start(t, legacyStdio(t).server)
  const client = await SseClient.open(urls[0], '2024-11-05')
  const there = client.messagesUrl.replace(new URL(urls[0]).origin, new URL(urls[1]).origin)
  const body = JSON.stringify({ jsonrpc: '2.0', id: 'x', method: 'tools/list' })
  t.equal((await post(there, body, { 'content-type': 'application/json' })).status, 202)
  t.match(await client.answer('x'), { result: { tools: Array } })
  client.stream.leave()
})

test("a session that the server keeps itself is its owner's in all replicas", async (t) => {
  const server = await LegacyHttp.start(t, { sessions: true })
  const { urls, redis } = await start(t, { url: server.url }, { auth: { tokens: TOKENS } }, 3)
  const alice = { authorization: `Bearer ${TOKENS.alice}` }
  const client = await LegacyClient.open(urls[0], { headers: alice })
  const body = JSON.stringify({ jsonrpc: '2.0', id: 5, method: 'tools/list' })
  const mine = await send('POST', urls[1], body, client.headers as never)
  t.equal(mine.status, 200)
  const theirs = await send('POST', urls[1], body, {
    ...client.headers,
    authorization: `Bearer ${TOKENS.bob}`,
  } as never)
  t.equal(theirs.status, 404)

  await redis.stop()
  t.equal((await send('POST', urls[1], body, client.headers as never)).status, 200, 'who knows it knows it still')
  const unknown = await send('POST', urls[2], body, client.headers as never)
  t.equal(unknown.status, 503, 'and who cannot know it does not say that there is none')
  t.match(unknown.message.error, { data: { reason: 'store_unavailable' } })
})

test('what a process says has changed reaches the streams of all replicas, and nobody else', async (t) => {
  const { urls } = await start(t, legacyStdio(t).server, { auth: { tokens: TOKENS } }, 3)
  const as = (token: string) => ({ headers: { authorization: `Bearer ${token}` } })
  const filter = { ...ALL_LISTS, resourceSubscriptions: ['test://static'] }
  const streams = await Promise.all(urls.map((url) => listen(url, filter, as(TOKENS.alice))))
  const bobs = await listen(urls[1], filter, as(TOKENS.bob))
  for (const stream of [...streams, bobs]) await stream.has(1)
  await call(urls[0], 'tools/call', TOUCH, as(TOKENS.alice))
  for (const stream of streams) t.same((await hears(stream, 2)).sort(byMethod), BOTH_CHANGES)
  t.same(told(bobs), [])
  for (const stream of [...streams, bobs]) stream.leave()
})

test('what a process of a modern server says has changed reaches those who listen by way of another, too', async (t) => {
  const { urls } = await start(t, modernStdio(t).server)
  const filter = { toolsListChanged: true, resourceSubscriptions: ['test://static'] }
  const [one, two] = await Promise.all([listen(urls[0], filter), listen(urls[1], filter)])
  const lists = await listen(urls[1], { promptsListChanged: true })
  for (const stream of [one, two, lists]) await stream.has(1)
  await call(urls[0], 'tools/call', TOUCH)
  for (const stream of [one, two]) t.same((await hears(stream, 2)).sort(byMethod), BOTH_CHANGES)
  // At once another one: who has read after the first has to read again.
  await call(urls[0], 'tools/call', TOUCH)
  for (const stream of [one, two]) await hears(stream, 4)
  t.equal(told(two).length, 4, 'once each')
  t.same(told(lists), [], 'and nothing that was not asked for')
  await call(urls[0], 'tools/call', TOUCH)
  await hears(two, 6)
  t.equal(told(one).length, 6, 'no replica tells again what another one has told')
  for (const stream of [one, two, lists]) stream.leave()
})

test('what is kept of a server is dropped when another replica hears that it has changed', async (t) => {
  const { server, messages } = legacyStdio(t)
  const { urls } = await start(t, { ...server, cache: 60_000 })
  const ask = async () => (await call(urls[1], 'tools/list')).status
  await ask()
  await ask()
  const asked = () => messages().filter(({ method }) => method === 'tools/list').length
  const before = asked()
  await call(urls[0], 'tools/call', TOUCH)
  await until(async () => {
    await ask()
    return asked() > before
  })
})

test('what one replica has found out of a server, the others need not ask', async (t) => {
  const server = await LegacyHttp.start(t)
  const { urls } = await start(t, { url: server.url })
  await call(urls[0], 'tools/list')
  const probes = () => server.received.filter(({ message }) => message?.['method'] === 'server/discover').length
  const before = probes()
  t.equal((await call(urls[1], 'tools/list')).status, 200)
  t.equal(probes(), before)
})
