/** HTTP+SSE towards legacy clients: one stream out, messages posted in. Numbers are those of test/invariants.md. */
import { get, type IncomingMessage } from 'node:http'
import t, { type Test } from 'tap'
import { startBridge } from '../support/bridge.js'
import { openStream } from '../support/events.js'
import { until } from '../support/eventually.js'
import { besideTheQuestion, initialize } from '../support/legacy-client.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { envelope, send } from '../support/modern.js'
import { ModernHttp } from '../support/modern-http.js'
import { modernStdio } from '../support/modern-stdio.js'
import { SseClient } from '../support/sse-client.js'

const REVISIONS = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25']
const TOKENS = { alice: 'alice-0123456789abcdef', bob: 'bob-0123456789abcdef' }

async function start(t: Test, settings: object = {}) {
  const modern = await ModernHttp.start(t)
  return { modern, ...(await startBridge(t, { url: modern.url }, settings)) }
}

const calls = (modern: ModernHttp) => modern.cancelled.filter(({ message }) => message?.['method'] === 'tools/call')
const ping = (id: unknown) => ({ jsonrpc: '2.0', id, method: 'ping' })

t.test('the stream first names the endpoint, on its own origin and with an unguessable id', async (t) => {
  const { url } = await start(t)
  const [client, other] = [await SseClient.connect(url), await SseClient.connect(url)]
  t.match(client.stream, {
    status: 200,
    headers: { 'content-type': 'text/event-stream', 'cache-control': 'no-store, no-transform' },
  })
  t.same(client.stream.events[0]?.event, 'endpoint')
  t.match(client.stream.events[0]?.data, /^\/message\?sessionId=[A-Za-z0-9_-]{22,}$/)
  t.equal(new URL(client.messagesUrl).origin, new URL(url).origin)
  t.not(client.messagesUrl, other.messagesUrl)
  t.equal(client.stream.headers['mcp-session-id'], undefined)
})

t.test('the endpoint is an absolute path, with the path of the public address', async (t) => {
  const said = async (settings: object, stream: string) => {
    const { url } = await start(t, settings)
    const opened = await openStream('GET', new URL(stream, url).href, { accept: 'text/event-stream' })
    await until(() => opened.events.length > 0, 'the first event')
    opened.leave()
    return opened.events[0]?.data?.replace(/sessionId=.*/, 'sessionId=')
  }
  t.equal(await said({}, '/sse'), '/message?sessionId=')
  t.equal(await said({}, '/test/sse'), '/test/message?sessionId=')
  t.equal(await said({ publicUrl: 'https://tools.example' }, '/sse'), '/message?sessionId=')
  t.equal(await said({ publicUrl: 'https://tools.example/bridge/' }, '/sse'), '/bridge/message?sessionId=')
  t.equal(await said({ publicUrl: 'https://tools.example/bridge' }, '/test/sse'), '/bridge/test/message?sessionId=')
  t.equal(await said({ publicUrl: 'https://tools.example/bridge/mcp' }, '/sse'), '/bridge/message?sessionId=')
})

t.test('accepts a posted message at once, and answers on the stream', async (t) => {
  const { url, modern } = await start(t)
  for (const revision of REVISIONS) {
    const client = await SseClient.connect(url)
    const posted = await client.post(initialize(revision))
    t.match(posted, { status: 202, text: '' }, revision)
    t.match(await client.answer('hello'), { result: { protocolVersion: revision, serverInfo: { name: 'scripted' } } })
    t.equal((await client.post({ jsonrpc: '2.0', method: 'notifications/initialized' })).status, 202)
    const answer = await client.request('tools/call', { name: 'echo', arguments: { x: 1 } })
    t.match(answer, { result: { content: [{ text: '{"x":1}' }] } })
    const progressed = await client.request('tools/call', { name: 'progress', _meta: { progressToken: 'p' } })
    t.match(progressed, { result: { content: [] } })
    const progress = client.messages.filter(({ method }) => method === 'notifications/progress')
    t.match(
      progress,
      [1, 2, 3, 4, 5].map((each) => ({ params: { progressToken: 'p', progress: each } })),
      revision,
    )
    t.notMatch(client.stream.text, /^(?:id|retry):/m, 'no ids, and nothing to be taken up again')
    client.stream.leave()
  }
  t.same(besideTheQuestion(modern.violations()), [])
})

t.test('the end of the stream ends the session and its running calls', async (t) => {
  const { url, modern } = await start(t)
  const client = await SseClient.open(url, '2024-11-05')
  await until(() => modern.subscriptions === 1)
  for (const id of [1, 2]) {
    const params = { name: 'wait', arguments: { ms: 60_000 } }
    t.equal((await client.post({ jsonrpc: '2.0', id, method: 'tools/call', params })).status, 202)
  }
  await until(() => modern.of('tools/call').length === 2)
  client.stream.leave()
  await until(() => calls(modern).length === 2, 'the end of the calls')
  await until(() => modern.subscriptions === 0, 'the end of the subscription')
  t.equal((await client.post(ping(3))).status, 404)
})

t.test('a cancelled call is cancelled at the server, and not answered', async (t) => {
  const { url, modern } = await start(t)
  const client = await SseClient.open(url, '2024-11-05')
  const params = { name: 'wait', arguments: { ms: 60_000 } }
  await client.post({ jsonrpc: '2.0', id: 'taken', method: 'tools/call', params })
  await until(() => modern.of('tools/call').length === 1)
  await client.post({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'taken' } })
  await until(() => calls(modern).length === 1)
  await client.request('ping')
  t.notOk(client.messages.some(({ id }) => id === 'taken'))
})

t.test('changes come on the stream without a GET', async (t) => {
  const { url, modern } = await start(t)
  const client = await SseClient.open(url, '2024-11-05')
  await until(() => modern.subscriptions === 1)
  t.same((await client.request('resources/subscribe', { uri: 'test://static' }))['result'], {})
  modern.touch({ tools: true, uris: ['test://static'] })
  const told = () => client.messages.filter(({ id }) => id === undefined)
  await until(() => told().length === 2)
  t.same(told(), [
    { jsonrpc: '2.0', method: 'notifications/tools/list_changed' },
    { jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri: 'test://static' } },
  ])
})

t.test('server/discover is an unknown method, on the stream, before and after initialize', async (t) => {
  const { url, modern } = await start(t)
  const client = await SseClient.connect(url)
  const discover = (id: unknown, params: object = {}) => ({ jsonrpc: '2.0', id, method: 'server/discover', params })
  for (const [id, params] of [
    ['bare', {}],
    ['in its envelope', { _meta: envelope() }],
  ] as const) {
    t.match(await client.post(discover(id, params)), { status: 202, text: '' })
    t.match(await client.answer(id), { error: { code: -32601 } }, id)
  }
  await client.post(initialize('2025-11-25'))
  t.match(await client.answer('hello'), { result: {} }, 'so that the client can go on with initialize')
  await client.post(discover('later', { _meta: envelope() }))
  t.match(await client.answer('later'), { error: { code: -32601 } })
  t.equal(modern.of('subscriptions/listen').length, 0)
})

t.test('ignores an envelope: the session of the stream counts', async (t) => {
  const { url, modern } = await start(t)
  const client = await SseClient.open(url, '2025-06-18')
  const _meta = envelope({ 'io.modelcontextprotocol/logLevel': 'debug', 'com.example/k': 1 })
  const answer = await client.request('tools/call', { name: 'log', _meta })
  t.match(answer, { result: { content: [] } })
  t.notOk('resultType' in (answer['result'] as object))
  t.same(
    client.messages.filter(({ method }) => method === 'notifications/message'),
    [],
  )
  const [sent] = modern.of('tools/call')
  t.match(sent?.message?.['params'], {
    _meta: { 'com.example/k': 1, 'io.modelcontextprotocol/clientInfo': { name: 'old' } },
  })
})

t.test('before initialize answers only ping', async (t) => {
  const { url, modern } = await start(t)
  const client = await SseClient.connect(url)
  t.same((await client.request('ping'))['result'], {})
  t.match(await client.request('tools/list'), { error: { code: -32600 } })
  t.equal((await client.post({ jsonrpc: '2.0', method: 'notifications/cancelled' })).status, 202)
  t.equal(modern.of('tools/list').length, 0)
})

t.test('reports an invalid form at once, and other errors on the stream', async (t) => {
  const { url } = await start(t)
  const client = await SseClient.open(url, '2024-11-05')
  const rows: [name: string, body: string, status: number, code: number][] = [
    ['no JSON', '{', 400, -32700],
    ['no message', '{"jsonrpc":"2.0","id":1,"method":7}', 400, -32600],
    ['an array', '[]', 400, -32600],
    ['a batch', '[{"jsonrpc":"2.0","id":1,"method":"ping"}]', 400, -32600],
  ]
  for (const [name, body, status, code] of rows)
    t.match(await client.post(body), { status, message: { error: { code } } }, name)
  t.equal((await client.post(ping(1), { 'content-type': 'text/plain' })).status, 415)
  t.match(await client.request('nope/x', {}, 'x'), { error: { code: -32601 } })
  t.same((await client.request('ping', {}, 'p'))['result'], {})
})

t.test('answers a batch of 2025-03-26 with an array on the stream', async (t) => {
  const { url } = await start(t)
  const client = await SseClient.open(url, '2025-03-26')
  t.equal((await client.post([ping('a'), { jsonrpc: '2.0', method: 'notifications/x' }, ping('b')])).status, 202)
  const arrays = () => client.messages.filter((message) => Array.isArray(message)) as unknown as object[][]
  await until(() => arrays().length === 1)
  t.same(new Set(arrays()[0]?.map((each) => (each as { id: unknown }).id)), new Set(['a', 'b']))
})

t.test('refuses an invalid batch before it is accepted', async (t) => {
  const { url } = await start(t)
  const client = await SseClient.open(url, '2025-03-26')
  const opening = JSON.parse(initialize('2025-03-26')) as object
  for (const batch of [[], [ping(1), opening], Array.from({ length: 101 }, (_, n) => ping(n))])
    t.match(await client.post(batch), { status: 400, message: { error: { code: -32600 } } }, `${batch.length}`)
  await client.request('ping', {}, 'after')
  t.equal(client.messages.length, 2, 'and nothing of it is answered')
})

t.test('a session belongs to its owner: that of another caller, or an ended one, is not found', async (t) => {
  const { url } = await start(t, { auth: { tokens: TOKENS } })
  const alice = await SseClient.connect(url, { authorization: `Bearer ${TOKENS.alice}` })
  const bob = { authorization: `Bearer ${TOKENS.bob}` }
  const unknown = await send('POST', new URL('message?sessionId=made-up', url).href, JSON.stringify(ping(1)), {
    'content-type': 'application/json',
    ...bob,
  })
  const foreign = await alice.post(ping(1), bob)
  t.equal(foreign.status, 404)
  t.same([unknown.status, unknown.text], [foreign.status, foreign.text])
  t.equal((await alice.post(ping(1))).status, 202)
  t.match(await alice.answer(1), { result: {} })
  const none = await send('POST', new URL('message', url).href, JSON.stringify(ping(1)), {
    'content-type': 'application/json',
    ...bob,
  })
  t.equal(none.status, 404)
})

t.test('tells newer clients that try a POST first to use GET', async (t) => {
  const { url } = await start(t)
  const stream = new URL('sse', url).href
  const posted = await send('POST', stream, initialize('2025-11-25'), { 'content-type': 'application/json' })
  t.equal(posted.status, 405)
  t.equal(posted.headers['allow'], 'GET')
  const picky = await openStream('GET', stream, { accept: 'application/json' })
  t.equal(picky.status, 406)
})

t.test('bounds streams', async (t) => {
  const { url } = await start(t, { limits: { clientSessions: 2 } })
  const open = [await SseClient.connect(url), await SseClient.connect(url)]
  const third = await openStream('GET', new URL('sse', url).href, { accept: 'text/event-stream' })
  t.equal(third.status, 503)
  for (const { stream } of open) t.notOk(stream.over)
})

t.test('the session of a program belongs to the stream, and ends with it', async (t) => {
  for (const server of [legacyStdio(t), modernStdio(t)]) {
    const { url } = await startBridge(t, server.server)
    const client = await SseClient.open(url, '2024-11-05')
    const answer = await client.request('tools/call', { name: 'echo', arguments: { x: 1 } })
    t.match(answer, { result: { content: [{ text: '{"x":1}' }] } })
    client.stream.leave()
  }
  const legacy = legacyStdio(t)
  const { url } = await startBridge(t, legacy.server, { timeouts: { reuse: 100 } })
  const client = await SseClient.open(url, '2024-11-05')
  client.stream.leave()
  await until(() => legacy.seen().some(({ line }) => line === 'input ended'), 'the end of the child')
})

t.test('a slow reader misses nothing, however much has waited for it', async (t) => {
  const { url, modern } = await start(t)
  const response = await new Promise<IncomingMessage>((resolve) =>
    get(new URL('sse', url), { headers: { accept: 'text/event-stream' }, agent: false }, resolve),
  )
  t.teardown(() => response.destroy())
  let text = ''
  response.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk
  })
  await until(() => text.includes('\n\n'))
  const messages = new URL(/data: (.*)/.exec(text)?.[1] ?? '', new URL('sse', url)).href
  const headers = { 'content-type': 'application/json' }
  const said = (id: string) => text.includes(`"id":"${id}","result"`)
  await send('POST', messages, initialize('2024-11-05'), headers)
  await until(() => said('hello'))

  response.pause()
  const tool = (id: string, name: string, args: object, meta?: object) => {
    const params = { name, arguments: args, ...(meta && { _meta: meta }) }
    return send('POST', messages, JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params }), headers)
  }
  for (const id of ['large 1', 'large 2']) await tool(id, 'echo', { text: 'x'.repeat(3_000_000) })
  for (const id of ['a', 'b', 'c']) await tool(id, 'progress', {}, { progressToken: id })
  await until(() => modern.of('tools/call').length === 5)
  response.resume()
  for (const id of ['large 1', 'large 2', 'a', 'b', 'c']) await until(() => said(id), `an answer to ${id}`)
  t.equal(text.split('notifications/progress').length - 1, 15)
})

t.test('an idle stream gets keep-alive comments', async (t) => {
  const { url } = await start(t, { timeouts: { keepAlive: 30 } })
  const client = await SseClient.connect(url)
  await until(() => client.stream.events.filter(({ comment }) => comment === 'keep-alive').length >= 2)
})
