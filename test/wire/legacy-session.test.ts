/** Sessions of legacy clients over Streamable HTTP: how they begin, whose they are, and how they end. */
import t, { type Test } from 'tap'
import { startBridge } from '../support/bridge.js'
import { leaper } from '../support/clock.js'
import { until } from '../support/eventually.js'
import { BOTH, besideTheQuestion, LegacyClient, type OpenOptions } from '../support/legacy-client.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { type Answer, post, send } from '../support/modern.js'
import { type HttpPlan, ModernHttp } from '../support/modern-http.js'
import { problems, type SchemaRevision } from '../support/schema.js'

const IDLE = 3_600_000
const REVISIONS: SchemaRevision[] = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25']
const TOKENS = { alice: 'alice-0123456789abcdef', bob: 'bob-0123456789abcdef' }
const auth = { auth: { tokens: TOKENS } }
const as = (who: keyof typeof TOKENS) => ({ authorization: `Bearer ${TOKENS[who]}` })

async function start(t: Test, settings: object = {}, plan: HttpPlan = {}) {
  const modern = await ModernHttp.start(t, plan)
  const { url, bridge, log } = await startBridge(t, { url: modern.url }, settings)
  return { modern, url, bridge, log, open: (options?: OpenOptions) => LegacyClient.open(url, options) }
}

/** Everything that a client can see of an answer, but for the time. */
function seen({ status, headers: { date: _, ...headers }, text }: Answer): string {
  return JSON.stringify({ status, headers, text })
}

t.test('answers each revision with itself, and every other version with the newest', async (t) => {
  const { open, modern } = await start(t)
  const rows: [asked: string, answered: SchemaRevision][] = [
    ...REVISIONS.map((revision): [string, SchemaRevision] => [revision, revision]),
    ['2024-10-07', '2024-11-05'],
    ['2099-01-01', '2025-11-25'],
    ['2026-07-28', '2025-11-25'],
    ['banana', '2025-11-25'],
    ['', '2025-11-25'],
    ['constructor', '2025-11-25'],
    ['__proto__', '2025-11-25'],
  ]
  for (const [asked, answered] of rows) {
    const { opened } = await open({ revision: asked })
    const { result = {} } = opened.message
    t.equal(opened.status, 200, asked)
    t.match(opened.headers['content-type'], /^application\/json/, asked)
    t.equal(opened.message['id'], 'hello')
    t.equal(result['protocolVersion'], answered, asked)
    t.same(problems(answered, 'InitializeResult', result), [], asked)
    t.match(result, { serverInfo: { name: 'scripted', version: '1.0.0' }, instructions: 'Be brief.' })
    for (const key of ['resultType', 'supportedVersions', 'ttlMs', 'cacheScope']) t.notOk(key in result, key)
    t.notMatch(opened.text, /io\.modelcontextprotocol/)
  }
  t.same(besideTheQuestion(modern.violations()), [])
})

t.test('capabilities are those of the server, also those that the bridge does not know', async (t) => {
  const tools = { listChanged: true }
  const extensions = { 'io.modelcontextprotocol/tasks': {}, 'com.example/x': { y: 1 } }
  const capabilities = { tools, resources: { subscribe: true }, experimental: { z: {} }, extensions, future: {} }
  const { open } = await start(t, {}, { capabilities })
  const { opened } = await open()
  t.same(opened.message.result?.['capabilities'], {
    tools,
    resources: { subscribe: true },
    experimental: { z: {} },
    extensions: { 'com.example/x': { y: 1 } },
    future: {},
  })
})

t.test('takes the name of a server from wherever it is, or else that of the bridge', async (t) => {
  const named = async (serverInfo: 'body' | 'none') => {
    const { open } = await start(t, {}, { serverInfo })
    return (await open()).opened.message.result?.['serverInfo']
  }
  t.match(await named('body'), { name: 'scripted', version: '1.0.0' })
  t.match(await named('none'), { name: 'mcp-bridge', version: '0.0.0' })
})

t.test('an initialize without a version opens nothing', async (t) => {
  const { url } = await start(t)
  for (const params of [undefined, {}, { protocolVersion: 1 }, { protocolVersion: null }, []]) {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params })
    const answer = await post(url, body, BOTH)
    t.match(answer, { status: 200, message: { id: 1, error: { code: -32602 } } }, body)
    t.equal(answer.headers['mcp-session-id'], undefined, body)
  }
})

t.test('reports an unreachable server in-band, and opens no session', async (t) => {
  const { url } = await startBridge(t, { url: 'http://127.0.0.1:9/mcp' })
  const { opened } = await LegacyClient.open(url)
  t.match(opened, { status: 200, message: { id: 'hello', error: { code: -32603 } } })
  t.equal(opened.headers['mcp-session-id'], undefined)
})

t.test('the session id comes with the answer to initialize, and with no other', async (t) => {
  const { open, modern } = await start(t)
  const client = await open()
  t.match(client.session, /^[A-Za-z0-9_-]{22,}$/)
  const listening = await client.listen()
  const answers = [
    await client.request('ping'),
    await client.request('tools/list'),
    await client.notify('notifications/initialized'),
    await client.call('progress', {}, { meta: { progressToken: 1 } }),
    await client.request('nope/x'),
    await client.post('[]'),
    listening,
    await client.end(),
    await client.request('ping'),
  ]
  for (const { headers } of answers) t.equal(headers['mcp-session-id'], undefined)
  t.same(besideTheQuestion(modern.violations()), [])
})

t.test('every session has an id of its own', async (t) => {
  const { open } = await start(t)
  const clients = await Promise.all(Array.from({ length: 20 }, () => open()))
  t.equal(new Set(clients.map(({ session }) => session)).size, 20)
})

t.test('a deleted session is gone for every request', async (t) => {
  const { open } = await start(t)
  const client = await open()
  const listening = await client.listen()
  const ended = await client.end()
  t.equal(ended.status, 200)
  t.equal(ended.text, '')
  await listening.ended()
  t.match(await client.request('ping', {}, { id: 7 }), { status: 404, message: { id: 7, error: { code: -32600 } } })
  t.equal((await client.notify('notifications/initialized')).status, 404)
  t.equal((await client.listen()).status, 404)
  t.equal((await client.end()).status, 404)
})

t.test('a request without a session gets the reason, and the server gets nothing', async (t) => {
  const { url, modern, bridge } = await start(t)
  await bridge.server.warmUp()
  const before = modern.received.length
  const message = (id: unknown, method: string) => JSON.stringify({ jsonrpc: '2.0', id, method })
  for (const method of ['ping', 'tools/list', 'subscriptions/listen'])
    t.match(await post(url, message(5, method), BOTH), { status: 400, message: { id: 5 } }, method)
  const notified = await post(url, message(undefined, 'notifications/initialized'), BOTH)
  t.match(notified, { status: 400, message: { error: { code: -32600 } } })
  t.notOk('id' in notified.message)
  t.equal((await post(url, '{"jsonrpc":"2.0","id":1,"result":{}}', BOTH)).status, 400)
  t.equal((await send('GET', url, undefined, { accept: 'text/event-stream' })).status, 400)
  t.equal((await send('DELETE', url, undefined, {})).status, 400)
  t.equal(modern.received.length, before)
})

t.test('deleting a session cancels its requests, at the server, too', async (t) => {
  const { open, modern } = await start(t)
  const client = await open()
  const listening = await client.listen()
  await until(() => modern.subscriptions === 1)
  const waiting = await client.stream('tools/call', {
    name: 'progress',
    arguments: { ms: 60_000 },
    _meta: { progressToken: 1 },
  })
  await waiting.has(5)
  await client.end()
  await waiting.ended()
  await listening.ended()
  await until(() => modern.subscriptions === 0, 'the end of the subscription')
  await until(
    () => modern.cancelled.some(({ message }) => message?.['method'] === 'tools/call'),
    'the end of the call at the server',
  )
})

t.test('answers an unknown, a deleted, an expired and a foreign session identically', async (t) => {
  const { open, modern, url } = await start(t, { ...auth, timeouts: { clientIdle: IDLE, keepAlive: 50 } })
  const leap = leaper(t)
  const expired = await open({ headers: as('alice') })
  await expired.request('resources/subscribe', { uri: 'test://static' })
  leap(IDLE)
  await until(() => modern.subscriptions === 0, 'the expiry of the session')
  const deleted = await open({ headers: as('alice') })
  await deleted.end()
  const foreign = await open({ headers: as('bob') })
  const listening = await foreign.listen()
  t.equal(listening.status, 200)
  const ids = ['made-up', 'x'.repeat(1_000), '__proto__', expired.session, deleted.session, foreign.session]

  const ways: [name: string, send: (headers: Record<string, string>) => Promise<Answer>][] = [
    ['a request', (headers) => post(url, '{"jsonrpc":"2.0","id":"q","method":"tools/list"}', { ...BOTH, ...headers })],
    ['ping', (headers) => post(url, '{"jsonrpc":"2.0","id":1,"method":"ping"}', { ...BOTH, ...headers })],
    [
      'discover',
      (headers) => post(url, '{"jsonrpc":"2.0","id":1,"method":"server/discover"}', { ...BOTH, ...headers }),
    ],
    ['a notification', (headers) => post(url, '{"jsonrpc":"2.0","method":"notifications/x"}', { ...BOTH, ...headers })],
    ['an answer', (headers) => post(url, '{"jsonrpc":"2.0","id":1,"result":{}}', { ...BOTH, ...headers })],
    ['a batch', (headers) => post(url, '[{"jsonrpc":"2.0","id":1,"method":"ping"}]', { ...BOTH, ...headers })],
    ['GET', (headers) => send('GET', url, undefined, { accept: 'text/event-stream', ...headers })],
    ['GET from an event', (headers) => send('GET', url, undefined, { 'last-event-id': 'g1-0', ...headers })],
    ['DELETE', (headers) => send('DELETE', url, undefined, headers)],
  ]
  for (const [name, ask] of ways) {
    const answers = await Promise.all(ids.map((id) => ask({ ...as('alice'), 'mcp-session-id': id })))
    t.equal(answers[0]?.status, 404, name)
    t.match(answers[0]?.message, { error: { code: -32600 } }, name)
    t.equal(new Set(answers.map(seen)).size, 1, name)
  }
  t.equal((await foreign.request('ping')).status, 200, 'and the owner has noticed nothing')
  t.notOk(listening.over)
  t.same(
    modern.of('tools/list').map(({ headers }) => headers),
    [],
  )
})

t.test('a session of the server belongs to its owner, too, and nobody else learns of it', async (t) => {
  const legacy = await LegacyHttp.start(t)
  const { url } = await startBridge(t, { url: legacy.url }, auth)
  const alice = await LegacyClient.open(url, { headers: as('alice') })
  t.equal(alice.session, 'session-1')
  t.equal((await alice.request('tools/list')).status, 200)
  const before = legacy.received.length
  const ask = async (id: string) => {
    const headers = { ...BOTH, ...as('bob'), 'mcp-session-id': id }
    return [
      await post(url, '{"jsonrpc":"2.0","id":1,"method":"tools/list"}', headers),
      await post(url, '{"jsonrpc":"2.0","method":"notifications/x"}', headers),
      await send('GET', url, undefined, { ...headers, accept: 'text/event-stream' }),
      await send('DELETE', url, undefined, headers),
    ].map(seen)
  }
  const unknown = await ask('session-2')
  t.same(await ask('session-1'), unknown)
  for (const one of unknown) t.match(one, /^\{"status":404,/)
  t.equal(legacy.received.length, before, 'the server has heard nothing of it')
})

t.test('accepts a header with another known revision, or refuses it if configured', async (t) => {
  const { open } = await start(t)
  const client = await open({ revision: '2025-06-18' })
  const version = (value: string) => client.request('ping', {}, { id: 3, headers: { 'mcp-protocol-version': value } })
  for (const known of ['2025-11-25', '2025-03-26', '2024-11-05']) t.equal((await version(known)).status, 200, known)
  for (const unknown of ['2024-99-99', '1.0', '']) {
    const answer = await version(unknown)
    t.match(answer, { status: 400, message: { id: 3, error: { code: -32600 } } }, unknown)
    t.match(answer.message.error?.data?.['supported'], ['2026-07-28', '2025-11-25'], unknown)
  }
  t.match(await version('2026-07-28'), { status: 400, message: { id: 3, error: { code: -32602 } } })
  t.match(await version('2099-01-01'), { status: 400, message: { id: 3, error: { code: -32602 } } })

  const strict = await start(t, { compat: { ignoreVersionSkew: false } })
  const other = await strict.open({ revision: '2025-06-18' })
  const refused = await other.request('ping', {}, { headers: { 'mcp-protocol-version': '2025-11-25' } })
  t.match(refused, { status: 400, message: { error: { code: -32600 } } })
  t.equal((await other.request('ping')).status, 200)
  const none = await other.request('ping', {}, { headers: { 'mcp-protocol-version': undefined } })
  t.equal(none.status, 200, 'a header that is missing means what was negotiated')
})

t.test('with a modern header GET and DELETE are not allowed, whatever session is named', async (t) => {
  const { open } = await start(t)
  const client = await open()
  const modern = { 'mcp-protocol-version': '2026-07-28' }
  const listening = await client.listen(undefined, modern)
  t.equal(listening.status, 405)
  t.match(listening.headers.allow, /POST/)
  const deleted = await send('DELETE', client.url, undefined, { ...client.headers, ...modern })
  t.equal(deleted.status, 405)
  t.match(deleted.headers['allow'], /POST/)
  t.equal((await client.request('ping')).status, 200, 'the session is still there')
})

t.test('initialize in a session opens another, and the first continues', async (t) => {
  const { open } = await start(t)
  const first = await open()
  const second = await open({ headers: { 'mcp-session-id': first.session } })
  t.not(second.session, first.session)
  const gone = await open({ headers: { 'mcp-session-id': 'made-up' } })
  for (const client of [first, second, gone]) t.equal((await client.request('ping')).status, 200)
})

t.test('serves requests before the client has sent initialized', async (t) => {
  const { open } = await start(t)
  const client = await open({ ready: false })
  t.match((await client.call('echo', { x: 1 })).message, { result: { structuredContent: { x: 1 } } })
})

t.test('a session ends when it is idle for a while, and not while in use', async (t) => {
  const calls: (() => void)[] = []
  const override: HttpPlan['override'] = ({ message }, response) => {
    if (message?.['method'] !== 'tools/call') return false
    const result = { resultType: 'complete', content: [] }
    const answer = JSON.stringify({ jsonrpc: '2.0', id: message['id'], result })
    calls.push(() => response.writeHead(200, { 'content-type': 'application/json' }).end(answer))
    return true
  }
  const { open, modern } = await start(t, { timeouts: { clientIdle: IDLE, keepAlive: 50 } }, { override })
  const leap = leaper(t)
  const [idle, listening, calling] = [await open(), await open(), await open()]
  const stream = await listening.listen()
  const call = calling.call('any')
  await until(() => calls.length === 1, 'the call at the server')
  await idle.request('resources/subscribe', { uri: 'test://static' })
  t.equal(modern.of('subscriptions/listen').length, 2)
  leap(IDLE)
  await until(() => modern.subscriptions === 1, 'the end of the idle session')
  t.equal((await idle.request('ping')).status, 404)
  for (const answer of calls) answer()
  t.match(await call, { status: 200, message: { result: { content: [] } } })
  t.equal((await calling.request('ping')).status, 200)
  t.equal((await listening.request('ping')).status, 200)
  t.notOk(stream.over)
})

t.test('bounds sessions: the least recently used one makes room, if it is idle', async (t) => {
  const { open } = await start(t, { limits: { clientSessions: 2 } })
  const [first, second] = [await open(), await open()]
  await first.request('ping')
  const third = await open()
  t.equal((await second.request('ping')).status, 404, 'the one that was idle longest is gone')
  t.equal((await first.request('ping')).status, 200)
  const streams = [await first.listen(), await third.listen()]
  const { opened } = await open()
  t.match(opened, { status: 503, headers: { 'retry-after': '1', 'mcp-bridge-error': 'overloaded' } })
  t.match(opened.message, { id: 'hello', error: { code: -32603 } })
  t.equal(opened.headers['mcp-session-id'], undefined)
  for (const stream of streams) stream.leave()
  const patient = async () => (await open()).opened.status === 200
  await until(patient)
})

t.test("bounds what it remembers of owners of the server's sessions, and using one keeps it", async (t) => {
  const legacy = await LegacyHttp.start(t)
  const { url } = await startBridge(t, { url: legacy.url }, { ...auth, limits: { clientSessions: 2, perPrincipal: 1 } })
  const open = () => LegacyClient.open(url, { headers: as('alice') })
  const [first, second] = [await open(), await open()]
  await first.request('ping')
  const third = await open()
  t.same(
    [(await first.request('ping')).status, (await second.request('ping')).status, (await third.request('ping')).status],
    [200, 404, 200],
  )
})

t.test('refuses a body over the limit in a session as anywhere, and the session continues', async (t) => {
  const { open } = await start(t, { limits: { bodyBytes: 2_000 } })
  const client = await open()
  const large = await client.call('echo', { text: 'x'.repeat(3_000) })
  t.match(large, { status: 413, message: { error: { code: -32600 } } })
  t.equal((await client.call('echo', { text: 'x' })).status, 200)
})

t.test('distinguishes arrays, broken messages and wrong media types inside and outside of a session', async (t) => {
  const { open } = await start(t)
  const client = await open()
  const rows: [
    name: string,
    body: string,
    headers: Record<string, string | undefined>,
    status: number,
    code: number,
  ][] = [
    ['no JSON', '{', {}, 400, -32700],
    ['nothing', '', {}, 400, -32700],
    ['an empty array', '[]', {}, 400, -32600],
    ['an array', '[{"jsonrpc":"2.0","id":1,"method":"ping"}]', {}, 400, -32600],
    ['the id null', '{"jsonrpc":"2.0","id":null,"method":"ping"}', {}, 400, -32600],
    ['another JSON-RPC', '{"jsonrpc":"1.0","id":null,"method":"ping"}', {}, 400, -32600],
    ['text', '{"jsonrpc":"2.0","id":1,"method":"ping"}', { 'content-type': 'text/plain' }, 415, -32600],
    ['no events taken', '{"jsonrpc":"2.0","id":1,"method":"ping"}', { accept: 'application/json' }, 406, -32600],
  ]
  for (const [name, body, headers, status, code] of rows) {
    const answer = await client.post(body, headers)
    t.match({ status: answer.status, code: answer.message.error?.code }, { status, code }, name)
    t.notMatch(answer.text, /"id":null/, name)
  }
  t.equal((await client.listen(undefined, { accept: 'application/json' })).status, 406)
  t.equal((await client.request('ping')).status, 200)
})
