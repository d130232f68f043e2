/** Both ends of one era, on transports of different kinds. Numbers are those of test/invariants.md. */
import t, { type Test } from 'tap'
import { startBridge } from '../support/bridge.js'
import { openStream } from '../support/events.js'
import { until } from '../support/eventually.js'
import { besideTheQuestion, initialize, LegacyClient } from '../support/legacy-client.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { LegacySse } from '../support/legacy-sse.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { type Answer, call, envelope, headersFor, LOG_LEVEL, post } from '../support/modern.js'
import { ModernHttp } from '../support/modern-http.js'
import { modernStdio } from '../support/modern-stdio.js'
import { openPipe } from '../support/pipe.js'

type Json = Record<string, unknown>

const progressing = { name: 'progress', arguments: { ms: 60_000 }, _meta: { progressToken: 'p' } }
const SUBSCRIPTION = 'io.modelcontextprotocol/subscriptionId'
const progressOf = ({ messages }: Answer) =>
  messages.flatMap(({ method, params }) => (method === 'notifications/progress' ? [params as Json] : []))

t.test('two clients with one id and one token at a server on a pipe each get their own', async (t) => {
  const modern = modernStdio(t)
  const { url } = await startBridge(t, modern.server)
  // A call that waits for a program to start gets progress about that.
  await call(url, 'tools/list')
  const ask = (n: number) =>
    call(
      url,
      'tools/call',
      { name: 'progress', arguments: { values: [n, n + 100], ms: 50 } },
      { id: 1, meta: { progressToken: 't' } },
    )
  const answers = await Promise.all(Array.from({ length: 10 }, (_, n) => ask(n + 1)))
  for (const [n, answer] of answers.entries()) {
    t.same(
      progressOf(answer).map(({ progressToken, progress }) => [progressToken, progress]),
      [
        ['t', n + 1],
        ['t', n + 101],
      ],
    )
    t.match(answer.message, { id: 1, result: { resultType: 'complete' } })
  }
  const said = await Promise.all(
    Array.from({ length: 10 }, (_, n) =>
      call(url, 'tools/call', { name: 'wait', arguments: { ms: 50, say: `say ${n}` } }),
    ),
  )
  for (const [n, { text }] of said.entries()) t.match(text, `"say ${n}"`)
  t.same(modern.violations(), [])
})

t.test('two subscriptions with one id at a server on a pipe are separate, each under its own id', async (t) => {
  const modern = modernStdio(t)
  const { url } = await startBridge(t, modern.server)
  const listen = (id: unknown, uri: string) => {
    const params = { notifications: { resourceSubscriptions: [uri] }, _meta: envelope() }
    const body = JSON.stringify({ jsonrpc: '2.0', id, method: 'subscriptions/listen', params })
    return openStream('POST', url, headersFor('subscriptions/listen'), body)
  }
  const rows: [id: unknown, uri: string][] = [
    [1, 'test://item/a'],
    [1, 'test://item/b'],
    ['1', 'test://item/c'],
  ]
  const streams = await Promise.all(rows.map(([id, uri]) => listen(id, uri)))
  await Promise.all(streams.map((stream) => stream.has(1)))
  await call(url, 'tools/call', { name: 'touch', arguments: { uris: rows.map(([, uri]) => uri) } })
  await Promise.all(streams.map((stream) => stream.has(2)))
  for (const [at, stream] of streams.entries()) {
    const [id, uri] = rows[at] as [unknown, string]
    t.match(stream.messages, [
      {
        method: 'notifications/subscriptions/acknowledged',
        params: { notifications: { resourceSubscriptions: [uri] } },
      },
      { method: 'notifications/resources/updated', params: { uri } },
    ])
    for (const { params } of stream.messages) t.equal(((params as Json)['_meta'] as Json)[SUBSCRIPTION], id)
    t.equal(stream.messages.length, 2)
  }
  streams[0]?.leave()
  await until(() => modern.cancelled().length === 1)
  await call(url, 'tools/call', { name: 'touch', arguments: { end: true } })
  for (const stream of streams.slice(1)) await stream.ended()
  t.match(streams[1]?.messages.at(-1), { id: 1, result: { _meta: { [SUBSCRIPTION]: 1 }, resultType: 'complete' } })
  t.match(streams[2]?.messages.at(-1), { id: '1', result: { _meta: { [SUBSCRIPTION]: '1' } } })
  t.same(modern.violations(), [])
})

t.test('the bridge checks headers, because the server sees none', async (t) => {
  const modern = modernStdio(t)
  const { url } = await startBridge(t, modern.server)
  await call(url, 'tools/list')
  const before = modern.messages().length
  const mismatches: [name: string, headers: Record<string, string | undefined>][] = [
    ['another method', { 'mcp-method': 'tools/list' }],
    ['no method', { 'mcp-method': undefined }],
    ['another name', { 'mcp-name': 'act' }],
    ['no name', { 'mcp-name': undefined }],
    ['another version', { 'mcp-protocol-version': '2025-11-25' }],
    ['no version', { 'mcp-protocol-version': undefined }],
  ]
  for (const [name, headers] of mismatches) {
    const refused = await call(url, 'tools/call', { name: 'echo', arguments: {} }, { id: 'x', headers })
    t.match(refused, { status: 400, message: { id: 'x', error: { code: -32020 } } }, name)
  }
  t.equal(modern.messages().length, before)
  const status = async (method: string, params: Json, headers = {}) =>
    (await call(url, method, params, { headers })).status
  t.equal(await status('nope/x', {}), 404)
  t.equal(await status('tools/call', { name: 'nobody' }), 200)
  t.equal(await status('tools/call', { name: 'task' }), 400, 'a missing capability')
})

t.test('the bridge checks mirrored arguments, too', async (t) => {
  const modern = modernStdio(t)
  const { url } = await startBridge(t, modern.server)
  const mirrored = (args: Json, headers: Record<string, string>) =>
    call(url, 'tools/call', { name: 'mirrored', arguments: args }, { headers })
  t.equal(
    (await mirrored({ region: 'é', count: 42 }, { 'mcp-param-region': '=?base64?w6k=?=', 'mcp-param-count': '42.0' }))
      .status,
    200,
  )
  const wrong: [name: string, args: Json, headers: Record<string, string>][] = [
    ['another value', { region: 'a' }, { 'mcp-param-region': 'b' }],
    ['no header', { region: 'a' }, {}],
    ['another number', { count: 42 }, { 'mcp-param-count': '43' }],
  ]
  for (const [name, args, headers] of wrong)
    t.match(await mirrored(args, headers), { status: 400, message: { error: { code: -32020 } } }, name)
  t.equal((await mirrored({ region: null }, {})).status, 200)
})

t.test('disconnecting from a call at a server on a pipe cancels it, with the id that the server knows', async (t) => {
  const modern = modernStdio(t)
  const { url } = await startBridge(t, modern.server)
  const leaving = new AbortController()
  const gone = t.rejects(
    call(url, 'tools/call', { name: 'wait', arguments: { ms: 60_000 } }, { id: 'x', signal: leaving.signal }),
  )
  const sent = () => modern.messages().find(({ method }) => method === 'tools/call')
  await until(() => sent() !== undefined)
  leaving.abort()
  await gone
  await until(() => modern.cancelled().length === 1)
  t.same(modern.cancelled(), [sent()?.['id']])
  t.same(modern.violations(), [])
})

t.test('reports the death of a server on a pipe in-band, and restarts it', async (t) => {
  const modern = modernStdio(t)
  const { url } = await startBridge(t, modern.server)
  t.equal((await call(url, 'tools/list')).status, 200)
  t.match(await call(url, 'tools/call', { name: 'crash' }), { status: 200, message: { error: { code: -32603 } } })
  t.equal((await call(url, 'tools/call', { name: 'echo', arguments: {} })).status, 200)
  t.equal(modern.pids().length, 2)
})

t.test('log messages on a pipe go to the one call that wants them, and to nobody if it could be several', async (t) => {
  const modern = modernStdio(t)
  const { url } = await startBridge(t, modern.server)
  const levels = ({ messages }: Answer) =>
    messages.flatMap(({ method, params }) => (method === 'notifications/message' ? [(params as Json)['level']] : []))
  const log = (meta: Json, args: Json = {}) => call(url, 'tools/call', { name: 'log', arguments: args }, { meta })
  t.same(levels(await log({ [LOG_LEVEL]: 'warning' })), ['warning', 'error'])
  t.same(levels(await log({})), [])
  const both = await Promise.all([
    log({ [LOG_LEVEL]: 'debug' }, { ms: 200 }),
    call(url, 'tools/call', { name: 'wait', arguments: { ms: 200 } }, { meta: { [LOG_LEVEL]: 'debug' } }),
  ])
  t.same(levels(both[1]), [], 'what could be another’s')
})

t.test('a cancellation on the pipe closes the request at an HTTP server, and is not posted', async (t) => {
  const modern = await ModernHttp.start(t)
  const pipe = openPipe(t, { url: modern.url })
  const request = (id: unknown) => {
    const params = { name: 'wait', arguments: { ms: 60_000 }, _meta: envelope() }
    pipe.line(JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params }))
  }
  request('a')
  request('b')
  await until(() => modern.of('tools/call').length === 2)
  const params = { requestId: 'a', _meta: envelope() }
  pipe.line(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params }))
  await until(() => modern.cancelled.length === 1)
  await pipe.call('tools/list', {}, { id: 'after' })
  t.equal(modern.cancelled.length, 1, 'the other one goes on')
  t.equal(modern.of('notifications/cancelled').length, 0)
  t.notOk(pipe.messages().some(({ id }) => id === 'a'))
  t.same(modern.violations(), [])
})

t.test('on a pipe the bridge mirrors arguments, and drops tools with invalid annotations', async (t) => {
  const modern = await ModernHttp.start(t)
  const pipe = openPipe(t, { url: modern.url })
  const pages = [
    await pipe.call('tools/list', {}, { id: 1 }),
    await pipe.call('tools/list', { cursor: 'page 2' }, { id: 2 }),
  ]
  const names = pages.flatMap(({ result }) => (result as { tools: { name: string }[] }).tools.map(({ name }) => name))
  t.notOk(names.includes('badly-mirrored'))
  t.ok(names.includes('echo') && names.includes('mirrored'))
  t.match(await pipe.call('tools/call', { name: 'mirrored', arguments: { region: 'é' } }, { id: 3 }), { result: {} })
  t.equal(modern.of('tools/call')[0]?.headers['mcp-param-region'], '=?base64?w6k=?=')
  t.match(await pipe.call('tools/call', { name: 'badly-mirrored', arguments: {} }, { id: 4 }), {
    error: { code: -32602 },
  })
  t.equal(modern.of('tools/call').length, 1)

  const cold = openPipe(t, { url: modern.url })
  modern.forgetLists()
  t.match(await cold.call('tools/call', { name: 'mirrored', arguments: { count: 1 } }, { id: 1 }), { result: {} })
  t.same(modern.violations(), [])
})

t.test('a client over HTTP gets every tool, and drops invalid ones itself', async (t) => {
  const modern = await ModernHttp.start(t)
  const { url, bridge } = await startBridge(t, { url: modern.url })
  await bridge.server.warmUp()
  const { result } = (await call(url, 'tools/list')).message
  t.ok((result?.['tools'] as { name: string }[]).some(({ name }) => name === 'badly-mirrored'))
})

t.test("a subscription on the pipe is reported under the client's own id", async (t) => {
  const modern = await ModernHttp.start(t)
  const pipe = openPipe(t, { url: modern.url })
  const params = { notifications: { toolsListChanged: true }, _meta: envelope() }
  pipe.line(JSON.stringify({ jsonrpc: '2.0', id: 'sub', method: 'subscriptions/listen', params }))
  await until(() => modern.subscriptions === 1)
  modern.touch({ tools: true })
  await until(() => pipe.messages().length === 2)
  modern.touch({ end: true })
  await until(() => pipe.messages().length === 3)
  t.match(pipe.messages(), [
    { method: 'notifications/subscriptions/acknowledged', params: { _meta: { [SUBSCRIPTION]: 'sub' } } },
    { method: 'notifications/tools/list_changed', params: { _meta: { [SUBSCRIPTION]: 'sub' } } },
    { id: 'sub', result: { _meta: { [SUBSCRIPTION]: 'sub' } } },
  ])
})

/** A legacy server of an old revision by each transport, and what it has heard. */
const OLD: Record<string, (t: Test) => Promise<{ server: object; heard(): Json[] }>> = {
  HTTP: async (t) => {
    const legacy = await LegacyHttp.start(t, { revision: '2024-11-05' })
    return { server: { url: legacy.url }, heard: () => legacy.received.map(({ message }) => message) }
  },
  'HTTP+SSE': async (t) => {
    const legacy = await LegacySse.start(t, { revision: '2024-11-05' })
    return { server: { url: legacy.url, type: 'sse' }, heard: () => legacy.received.map(({ message }) => message) }
  },
  stdio: async (t) => {
    const legacy = legacyStdio(t, { revision: '2024-11-05' })
    return { server: legacy.server, heard: () => legacy.messages() }
  },
}

for (const [transport, start] of Object.entries(OLD)) {
  t.test(
    `an old server over ${transport} and a new client agree on the old revision, and nothing is changed`,
    async (t) => {
      const { server, heard } = await start(t)
      const { url } = await startBridge(t, server)
      const capabilities = { elicitation: { form: {}, url: {} }, tasks: { list: {} }, roots: { listChanged: true } }
      const client = await LegacyClient.open(url, { revision: '2025-11-25', capabilities })
      t.match(client.opened.message, {
        id: 'hello',
        result: { protocolVersion: '2024-11-05', serverInfo: { name: 'scripted' }, instructions: 'Be brief.' },
      })
      const opening = heard().find(({ method }) => method === 'initialize')
      t.same(opening?.['params'], (JSON.parse(initialize('2025-11-25', { capabilities })) as Json)['params'])
      t.equal(heard().filter(({ method }) => method === 'initialize').length, 1)

      const args = { n: 1, _meta: { deep: true } }
      const meta = { 'v/k': 1, 'io.modelcontextprotocol/related-task': { taskId: 'x' } }
      const params = { name: 'echo', arguments: args, task: { ttl: 5 } }
      const answer = await client.request('tools/call', params, { id: 'mine', meta })
      t.equal(
        answer.text,
        `{"jsonrpc":"2.0","id":"mine","result":{"content":[{"type":"text","text":${JSON.stringify(JSON.stringify(args))}}],"structuredContent":${JSON.stringify(args)}}}`,
        'nothing is taken out of a result that the revision does not know',
      )
      t.same(heard().find(({ method }) => method === 'tools/call')?.['params'], { ...params, _meta: meta })
      const { tools } = (await client.request('tools/list')).message.result as { tools: Json[] }
      t.ok(
        tools.some((tool) => 'execution' in tool || 'annotations' in tool),
        'nor out of a list',
      )
      t.match((await client.request('resources/read', { uri: 'test://missing' })).message.error, { code: -32002 })
      t.match((await client.request('nope/x')).message.error, { code: -32601 })
      const version = { 'mcp-protocol-version': '2025-11-25' }
      t.equal(
        (await client.request('ping', {}, { headers: version })).status,
        200,
        'a client may name what it asked for',
      )
      const progress = await client.call('progress', {}, { meta: { progressToken: 'p' } })
      t.same(
        progressOf(progress).map(({ progressToken }) => progressToken),
        ['p', 'p', 'p', 'p', 'p'],
      )
    },
  )
}

t.test('a session with a program has its questions and its messages, each on one stream', async (t) => {
  const legacy = legacyStdio(t)
  const { url } = await startBridge(t, legacy.server, { timeouts: { reuse: 100 } })
  const [first, second] = [await LegacyClient.open(url), await LegacyClient.open(url)]
  t.equal(legacy.pids().length, 2, 'each session has a child of its own')
  const listening = await first.listen()
  t.equal(listening.status, 200)
  const pinged = first.call('ask', { method: 'ping' }, { id: 'asking' })
  await listening.has(1)
  const [question] = listening.messages
  t.match(question, { jsonrpc: '2.0', method: 'ping' })
  t.equal((await first.post({ jsonrpc: '2.0', id: question?.['id'], result: { x: 1 } })).status, 202)
  t.match((await pinged).message, { id: 'asking', result: { content: [{ text: '{"x":1}' }] } })

  const asked = await second.stream('tools/call', { name: 'ask', arguments: { method: 'roots/list' } }, { id: 'b' })
  await asked.has(1)
  t.match(asked.messages[0], { method: 'roots/list' }, 'where nothing else is open, on that of the call')
  await second.post({ jsonrpc: '2.0', id: asked.messages[0]?.['id'], error: { code: -1, message: 'no' } })
  await asked.ended()
  t.match(asked.answer('b'), { result: { content: [{ text: /"code":-1/ }] } })
  await first.end()
  await until(() => legacy.seen().filter(({ line }) => line === 'input ended').length === 1, 'the end of its child')
  t.equal((await second.request('ping')).status, 200)
})

t.test('a cancelled call ends its resumable stream with the same error as a translated one', async (t) => {
  const { url } = await startBridge(t, legacyStdio(t).server)
  const client = await LegacyClient.open(url)
  const streaming = await client.stream('tools/call', progressing, { id: 'a' })
  await streaming.has(5)
  await client.notify('notifications/cancelled', { requestId: 'a' })
  await streaming.ended()
  t.match(streaming.answer('a'), { error: { code: -32603, message: 'Request cancelled' } })
})

t.test('a program that dies ends its sessions, and clients are told', async (t) => {
  const legacy = legacyStdio(t)
  const { url } = await startBridge(t, legacy.server)
  const client = await LegacyClient.open(url)
  const waiting = client.call('wait', { ms: 60_000 }, { id: 'waiting' })
  const streaming = await client.stream('tools/call', progressing, { id: 'streaming' })
  await streaming.has(5)
  const listening = await client.listen()
  const unknown = { error: { code: -32603, data: { outcome: 'unknown' } } }
  t.match(await client.call('crash'), { status: 200, message: unknown })
  t.match(await waiting, { status: 200, message: { id: 'waiting', ...unknown } })
  await streaming.ended()
  t.match(streaming.answer('streaming'), unknown)
  await listening.ended()
  t.equal((await client.request('ping')).status, 404)
  const other = await LegacyClient.open(url)
  t.equal((await other.request('ping')).status, 200)
})

t.test('a modern server gets no invalid request from clients of either kind at once', async (t) => {
  const modern = await ModernHttp.start(t)
  const { url } = await startBridge(t, { url: modern.url })
  const legacy = await LegacyClient.open(url)
  await Promise.all(
    Array.from({ length: 10 }, (_, n) => [
      legacy.call('echo', { n }),
      call(url, 'tools/call', { name: 'echo', arguments: { n } }),
      post(
        url,
        JSON.stringify({ jsonrpc: '2.0', id: n, method: 'prompts/list', params: { _meta: envelope() } }),
        headersFor('prompts/list'),
      ),
    ]).flat(),
  )
  t.same(besideTheQuestion(modern.violations()), [])
})
