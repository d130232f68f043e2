/** Several messages in one array, which 2025-03-26 knows and no other revision. Numbers are those of test/invariants.md. */
import t, { type Test } from 'tap'
import { startBridge } from '../support/bridge.js'
import { openStream } from '../support/events.js'
import { until } from '../support/eventually.js'
import { BOTH, besideTheQuestion, initialize, LegacyClient } from '../support/legacy-client.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { type Answer, envelope, post } from '../support/modern.js'
import { ModernHttp } from '../support/modern-http.js'

type Json = Record<string, unknown>

const R03 = '2025-03-26'
const request = (id: unknown, method: string, params?: Json) => ({
  jsonrpc: '2.0',
  id,
  method,
  ...(params && { params }),
})
const tool = (id: unknown, name: string, args: Json = {}, meta?: Json) =>
  request(id, 'tools/call', { name, arguments: args, ...(meta && { _meta: meta }) })
const notification = (method: string, params?: Json) => ({ jsonrpc: '2.0', method, ...(params && { params }) })
const opening = JSON.parse(initialize(R03)) as Json

async function start(t: Test, settings: object = {}, revision = R03) {
  const modern = await ModernHttp.start(t)
  const { url } = await startBridge(t, { url: modern.url }, settings)
  return { modern, url, client: await LegacyClient.open(url, { revision }) }
}

/** What an array answers, by id. */
const byId = ({ text }: Answer) => new Map((JSON.parse(text) as Json[]).map((each) => [each['id'], each]))

function isRefused(t: Test, { status, text, message }: Answer, name: string) {
  t.match({ status, code: message.error?.code }, { status: 400, code: -32600 }, name)
  t.notMatch(text, /"id"/, name)
}

t.test('answers a batch by one array, and the server gets single messages', async (t) => {
  const { client, modern } = await start(t)
  const answer = await client.post([
    tool('a', 'echo', { n: 1 }),
    notification('notifications/vendor', { k: 1 }),
    tool(2, 'echo', { n: 2 }),
  ])
  t.match(answer, { status: 200, headers: { 'content-type': /^application\/json/ } })
  const answers = byId(answer)
  t.equal(answers.size, 2)
  t.match(answers.get('a'), { result: { content: [{ text: '{"n":1}' }] } })
  t.match(answers.get(2), { result: { content: [{ text: '{"n":2}' }] } })
  await until(() => modern.of('notifications/vendor').length === 1)
  t.equal(modern.of('tools/call').length, 2)
  t.notOk(modern.received.some(({ body }) => body.startsWith('[')))
  const violations = besideTheQuestion(modern.violations()).filter(({ rule }) => rule !== 'notification')
  t.same(violations, [])
})

t.test('sends requests of a batch to the server at the same time', async (t) => {
  const { client, modern } = await start(t)
  const batch = Array.from({ length: 5 }, (_, n) => tool(n, 'wait', { ms: 60_000 }))
  const posted = client.post(batch)
  await until(() => modern.of('tools/call').length === 5, 'all of them at once')
  for (let requestId = 0; requestId < 5; requestId++) await client.notify('notifications/cancelled', { requestId })
  const { status, text } = await posted
  t.same({ status, text }, { status: 202, text: '' }, 'all of them were taken back')
})

t.test('a message before an answer makes the whole response a stream, which ends with the last answer', async (t) => {
  const { client } = await start(t)
  const answer = await client.post([
    tool('a', 'progress', { values: [1, 2], ms: 50 }, { progressToken: 'pa' }),
    tool('b', 'progress', { values: [3], ms: 10 }, { progressToken: 'pb' }),
    tool('c', 'echo'),
  ])
  t.match(answer.headers['content-type'], 'text/event-stream')
  const progress = answer.messages.filter(({ method }) => method !== undefined).map(({ params }) => params as Json)
  t.same(
    new Set(progress.map(({ progressToken, progress: at }) => `${progressToken} ${at}`)),
    new Set(['pa 1', 'pa 2', 'pb 3']),
  )
  const answers = answer.messages.filter(({ method }) => method === undefined)
  t.same(answers.map(({ id }) => id).sort(), ['a', 'b', 'c'])
  t.notOk(answer.messages.some((message) => Array.isArray(message)))
  const ids = answer.text.match(/^id: .*$/gm) ?? []
  t.equal(new Set(ids).size, 6, 'every event can be gone on from')
})

t.test('a broken stream of a batch can be resumed', async (t) => {
  const { client, modern } = await start(t)
  const body = JSON.stringify([
    tool('a', 'progress', { values: [1], ms: 'held' }, { progressToken: 'p' }),
    tool('b', 'wait', { ms: 'held' }),
  ])
  const stream = await openStream('POST', client.url, client.headers, body)
  await stream.has(1)
  const last = stream.ids.at(-1)
  stream.leave()
  const again = await client.listen(last)
  t.equal(again.status, 200)
  await until(() => modern.of('tools/call').length === 2, 'both calls at the server')
  modern.letGo()
  await again.ended()
  t.same(again.messages.map(({ id }) => id).sort(), ['a', 'b'])
})

t.test('accepts messages that need no answer, without a body', async (t) => {
  const { client } = await start(t)
  const batch = [
    notification('notifications/x'),
    { jsonrpc: '2.0', id: 5, result: {} },
    notification('notifications/y'),
  ]
  const { status, text } = await client.post(batch)
  t.same({ status, text }, { status: 202, text: '' })
})

t.test('each invalid element has its own answer', async (t) => {
  const { client } = await start(t)
  const { status, text } = await client.post([
    request('a', 'ping'),
    { jsonrpc: '2.0', id: 'b', method: 7 },
    { jsonrpc: '2.0', id: null, method: 'ping' },
    'text',
    [request('c', 'ping')],
    request('a', 'ping'),
    request('d', 'nope/x'),
  ])
  t.equal(status, 200)
  const answers = (JSON.parse(text) as { id?: string; error?: { code: number } }[]).map(({ id, error }) => [
    id,
    error?.code,
  ])
  t.same(
    new Set(answers.map((each) => JSON.stringify(each))),
    new Set(['["a",null]', '["b",-32600]', '[null,-32600]', '["a",-32600]', '["d",-32601]']),
  )
  t.equal(answers.length, 7)
  t.notMatch(text, /"id":null/)
})

t.test('a cancelled request has no answer in the array', async (t) => {
  const { client, modern } = await start(t)
  const posted = client.post([tool('kept', 'wait', { ms: 500 }), tool('taken', 'wait', { ms: 60_000 })])
  await until(() => modern.of('tools/call').length === 2)
  await client.notify('notifications/cancelled', { requestId: 'taken' })
  const answers = byId(await posted)
  t.same([...answers.keys()], ['kept'])
})

t.test('refuses an array in every other revision', async (t) => {
  for (const revision of ['2024-11-05', '2025-06-18', '2025-11-25']) {
    const { client, modern } = await start(t, {}, revision)
    const before = modern.received.length
    isRefused(t, await client.post([request(1, 'ping')]), revision)
    isRefused(t, await client.post([tool(1, 'echo'), notification('notifications/x')]), revision)
    isRefused(t, await client.post([]), `${revision}, empty`)
    t.equal(modern.received.length, before)
  }
})

t.test('refuses an array with initialize, inside and outside of a session', async (t) => {
  const { client, url, modern } = await start(t)
  isRefused(t, await client.post([opening]), 'in a session')
  isRefused(t, await client.post([request(1, 'ping'), opening]), 'among others')
  isRefused(t, await post(url, JSON.stringify([opening]), BOTH), 'out of a session')
  isRefused(t, await post(url, JSON.stringify([request(1, 'ping')]), BOTH), 'without a session')
  isRefused(t, await client.post([]), 'empty')
  t.equal(modern.of('tools/call').length, 0)
})

t.test('refuses an array with a modern message, inside and outside of a session', async (t) => {
  const { client } = await start(t)
  const modern = request(2, 'tools/list', { _meta: envelope() })
  isRefused(t, await client.post([request(1, 'ping'), modern]), 'in the body')
  isRefused(t, await client.post([request(1, 'ping')], { 'mcp-protocol-version': '2026-07-28' }), 'in the header')
})

t.test('an array may have a hundred elements', async (t) => {
  const { client } = await start(t)
  const pings = (count: number) => Array.from({ length: count }, (_, n) => request(n, 'ping'))
  t.equal(byId(await client.post(pings(100))).size, 100)
  isRefused(t, await client.post(pings(101)), '101')
})

t.test('a slow array becomes a stream with keep-alive comments', async (t) => {
  const { client } = await start(t, { timeouts: { commitAfter: 50, keepAlive: 50 } })
  const answer = await client.post([tool('a', 'wait', { ms: 1_500 }), request('b', 'ping')])
  t.match(answer.headers['content-type'], 'text/event-stream')
  t.same(answer.messages.map(({ id }) => id).sort(), ['a', 'b'])
})

t.test('a batch for a program is one array, too', async (t) => {
  const legacy = legacyStdio(t)
  const { url } = await startBridge(t, legacy.server)
  const client = await LegacyClient.open(url, { revision: R03 })
  const answer = await client.post([tool('a', 'echo', { n: 1 }), notification('notifications/x'), request('b', 'ping')])
  t.match(answer.headers['content-type'], /^application\/json/)
  t.same([...byId(answer).keys()].sort(), ['a', 'b'])
  await until(() => legacy.messages().some(({ method }) => method === 'notifications/x'))
  t.notOk(legacy.seen().some(({ line }) => line.startsWith('[')))
})
