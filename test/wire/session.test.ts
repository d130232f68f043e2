/** Sessions with legacy servers: how they begin, whom they belong to, and what happens when they are lost. */
import t from 'tap'
import { EMPTY, parseObject, write } from '../../src/base/rpc/splice.js'
import { createBridge, startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { CAPABILITIES, call, envelope, headersFor, LOG_LEVEL, post } from '../support/modern.js'

t.test('a server gets initialize, then initialized, then the first request, with ids from 1', async (t) => {
  const http = await LegacyHttp.start(t)
  const { url } = await startBridge(t, { url: http.url })
  await call(url, 'tools/list')
  const heard = http.received.filter(
    ({ method, message }) => method === 'POST' && message['method'] !== 'server/discover',
  )
  t.same(
    heard.map(({ message }) => message['method']),
    ['initialize', 'notifications/initialized', 'tools/list'],
  )
  t.equal((heard[0]?.message['params'] as { protocolVersion: string }).protocolVersion, '2025-11-25')
  for (const { message } of http.received) if ('id' in message) t.ok(Number(message['id']) >= 1)
})

t.test('the session begins with the answer to initialize, also if that is an event', async (t) => {
  const http = await LegacyHttp.start(t, { streams: true })
  const { url } = await startBridge(t, { url: http.url })
  t.equal((await call(url, 'tools/list')).status, 200)
  for (const method of ['notifications/initialized', 'tools/list'])
    t.equal(http.of(method)[0]?.headers['mcp-session-id'], 'session-1', method)
})

t.test('offers a server that refuses the newest revision the one that it names', async (t) => {
  const stdio = legacyStdio(t, { initialize: 'refuse once' })
  const { url } = await startBridge(t, stdio.server)
  t.equal((await call(url, 'tools/list')).status, 200)
  const offered = stdio.messages().filter(({ method }) => method === 'initialize')
  t.same(
    offered.map(({ params }) => (params as { protocolVersion: string }).protocolVersion),
    ['2025-11-25', '2024-11-05'],
  )
})

t.test('refuses a server with an unknown revision, and ends its session', async (t) => {
  const http = await LegacyHttp.start(t, { revision: '2031-01-01' })
  const { url } = await startBridge(t, { url: http.url })
  const answer = await call(url, 'tools/list')
  t.match(
    { status: answer.status, error: answer.message.error },
    { status: 502, error: { data: { offered: '2031-01-01' } } },
  )
  t.equal(http.received.at(-1)?.method, 'DELETE')
})

t.test('refuses an answer to initialize without a revision in valid JSON', async (t) => {
  const versions: [name: string, members: object, offered: unknown][] = [
    ['absent', {}, null],
    ['null', { protocolVersion: null }, null],
    ['a number', { protocolVersion: 20251125 }, '20251125'],
    ['a long text', { protocolVersion: '2'.repeat(20_000) }, /^2{1,250}/],
  ]
  for (const [name, members, offered] of versions) {
    const result = { ...members, capabilities: {}, serverInfo: { name: 'n', version: '1' } }
    const http = await LegacyHttp.start(t, {
      override: ({ message }, response) => {
        if (message['method'] !== 'initialize') return false
        const text = JSON.stringify({ jsonrpc: '2.0', id: message['id'], result })
        response.writeHead(200, { 'content-type': 'application/json' }).end(text)
        return true
      },
    })
    const { url } = await startBridge(t, { url: http.url })
    const { message } = await call(url, 'tools/list')
    t.match(message.error, { code: -32603, data: { reason: 'upstream_incompatible', offered } }, name)
  }
})

t.test('nothing of the envelope reaches the server, and everything else does', async (t) => {
  const http = await LegacyHttp.start(t)
  const { url } = await startBridge(t, { url: http.url })
  const meta = {
    'com.example/k': { deep: [1] },
    traceparent: '00-1-2-03',
    'io.modelcontextprotocol/ui': 'x',
    progressToken: 'p',
    [LOG_LEVEL]: 'info',
  }
  await call(url, 'tools/call', { name: 'echo', arguments: {} }, { meta })
  const [sent] = http.of('tools/call')
  t.notMatch(sent?.body, /protocolVersion|clientInfo|clientCapabilities|logLevel/)
  const { progressToken, ...others } = (sent?.message['params'] as { _meta: Record<string, unknown> })._meta
  t.same(others, { 'com.example/k': { deep: [1] }, traceparent: '00-1-2-03', 'io.modelcontextprotocol/ui': 'x' })
  t.type(progressToken, 'number')
})

t.test('after the handshake every request has the version and the session, and no modern header', async (t) => {
  const http = await LegacyHttp.start(t, { revision: '2025-06-18' })
  const { url } = await startBridge(t, { url: http.url, headers: { 'X-Api-Key': 'k' } })
  await call(url, 'tools/call', { name: 'echo', arguments: {} })
  const later = http.received.slice(http.received.findIndex(({ message }) => message['method'] === 'initialize') + 1)
  t.ok(later.some(({ method }) => method === 'GET'))
  for (const { headers, method } of later) {
    t.match(headers, { 'mcp-protocol-version': '2025-06-18', 'mcp-session-id': 'session-1', 'x-api-key': 'k' }, method)
    t.notOk(
      Object.keys(headers).some(
        (name) => name === 'mcp-method' || name === 'mcp-name' || name.startsWith('mcp-param-'),
      ),
    )
  }
})

t.test('principals and capability sets share no session', async (t) => {
  const http = await LegacyHttp.start(t)
  const { bridge } = createBridge(t, { url: http.url })
  const ask = async (principal: string, capabilities: string) => {
    const log = { note() {}, debug() {}, warn() {} }
    const caller = { revision: '2026-07-28', capabilities, clientInfo: '{"name":"c","version":"1"}' }
    const signal = new AbortController().signal
    const abort = () => {}
    await bridge.server.handle({
      method: 'tools/list',
      params: EMPTY,
      meta: EMPTY,
      progress: false,
      caller,
      principal,
      notify: () => undefined,
      signal,
      abort,
      log,
    })
    return http.of('tools/list').at(-1)?.headers['mcp-session-id']
  }
  const sessions = [
    await ask('alice', '{}'),
    await ask('bob', '{}'),
    await ask('alice', '{"experimental":{"x":{}}}'),
    await ask('bob', '{"experimental":{"x":{}}}'),
  ]
  t.equal(new Set(sessions).size, 4)
  t.equal(await ask('alice', '{}'), sessions[0])
  t.equal(await ask('bob', ' {"experimental":{"x":{}}} '.trim()), sessions[3])

  const stdio = legacyStdio(t)
  const { url } = await startBridge(t, stdio.server)
  await call(url, 'tools/list')
  await call(url, 'tools/list', {}, { meta: { [CAPABILITIES]: { experimental: { x: {} } } } })
  await call(url, 'tools/list')
  t.equal(stdio.pids().length, 2)
})

t.test(
  'the log level of a session only becomes lower while it is in use, and is reset after a minute of rest',
  async (t) => {
    const stdio = legacyStdio(t)
    const { url } = await startBridge(t, stdio.server)
    const set = () =>
      stdio
        .messages()
        .flatMap(({ method, params }) => (method === 'logging/setLevel' ? [(params as { level: string }).level] : []))
    const callAt = (level: string) =>
      call(url, 'tools/call', { name: 'log', arguments: {} }, { meta: { [LOG_LEVEL]: level } })
    await callAt('debug')
    await callAt('error')
    t.same(set(), ['debug'])
    const now = performance.now.bind(performance)
    t.intercept(performance, 'now', { value: () => now() + 61_000 })
    await callAt('error')
    t.same(set(), ['debug', 'error'])
  },
)

t.test('reopens a session that the server has forgotten, and repeats the call once', async (t) => {
  const goneIn: [name: string, status: number, body: object | undefined][] = [
    ['404', 404, undefined],
    ['404 with an error', 404, { jsonrpc: '2.0', id: null, error: { code: -32001, message: 'Session not found' } }],
    [
      '400 of the well-known example',
      400,
      { jsonrpc: '2.0', error: { code: -32000, message: 'Bad Request: No valid session ID provided' } },
    ],
    [
      '400, not initialized',
      400,
      { jsonrpc: '2.0', id: 1, error: { code: -32600, message: 'Server not initialised' } },
    ],
  ]
  for (const [name, status, body] of goneIn) {
    let forget = false
    const http = await LegacyHttp.start(t, {
      override: ({ headers }, response) => {
        if (!forget || headers['mcp-session-id'] !== 'session-1') return false
        response.writeHead(status, { 'content-type': 'application/json' }).end(body && JSON.stringify(body))
        return true
      },
    })
    const { url } = await startBridge(t, { url: http.url })
    await call(url, 'tools/list')
    forget = true
    const answer = await call(url, 'tools/call', { name: 'act', arguments: {} })
    t.equal(answer.status, 200, name)
    t.equal(http.of('initialize').length, 2, name)
    t.equal(http.of('tools/call').length, 2, name)
    t.same(
      http.of('tools/call').map(({ headers }) => headers['mcp-session-id']),
      ['session-1', 'session-2'],
    )
  }
})

t.test('does not repeat a call that may have been executed', async (t) => {
  const http = await LegacyHttp.start(t)
  const { url } = await startBridge(t, { url: http.url })
  await call(url, 'prompts/list')
  const answer = await call(url, 'tools/call', { name: 'crash', arguments: {} })
  t.equal(answer.status, 200)
  t.match(answer.message.error, { code: -32603, data: { reason: 'upstream_closed', outcome: 'unknown' } })
  t.equal(http.of('tools/call').length, 1)

  const stdio = legacyStdio(t)
  const over = await startBridge(t, stdio.server)
  const died = await call(over.url, 'tools/call', { name: 'crash', arguments: {} })
  t.match(died.message.error, { code: -32603, message: /may have executed/, data: { outcome: 'unknown' } })
  t.equal(stdio.messages().filter(({ method }) => method === 'tools/call').length, 1)
})

t.test('repeats a call that only reads, once', async (t) => {
  let cuts = 1
  const http = await LegacyHttp.start(t, {
    override: ({ message }, response) => {
      if (!['prompts/list', 'tools/call'].includes(String(message['method'])) || cuts-- <= 0) return false
      response.socket?.resetAndDestroy()
      return true
    },
  })
  const { url } = await startBridge(t, { url: http.url, retry: 'safe' })
  t.equal((await call(url, 'prompts/list')).status, 200)
  t.equal(http.of('prompts/list').length, 2)
  await call(url, 'tools/list')
  cuts = 1
  t.ok(
    (await call(url, 'tools/call', { name: 'echo', arguments: {} })).message.result,
    'a tool that says that it only reads, because the operator lets it',
  )
  cuts = 2
  t.match((await call(url, 'prompts/list')).message.error, { data: { outcome: 'unknown' } })
  t.equal(http.of('prompts/list').length, 4)
})

t.test('restores the log level of a lost session before the next request', async (t) => {
  let forget = false
  const http = await LegacyHttp.start(t, {
    override: ({ headers }, response) => {
      if (!forget || headers['mcp-session-id'] !== 'session-1') return false
      response.writeHead(404).end()
      return true
    },
  })
  const { url } = await startBridge(t, { url: http.url })
  const level = { meta: { [LOG_LEVEL]: 'warning' } }
  await call(url, 'prompts/list', {}, level)
  forget = true
  await call(url, 'prompts/list', {}, level)
  const heard = http.received
    .filter(({ headers }) => headers['mcp-session-id'] === 'session-2')
    .map(({ message }) => message['method'])
  t.same(
    heard.filter((method) => method === 'logging/setLevel' || method === 'prompts/list'),
    ['logging/setLevel', 'prompts/list'],
  )
})

t.test('a call that only reads waits for a busy server', async (t) => {
  let busy = 0
  const http = await LegacyHttp.start(t, {
    override: ({ message }, response) => {
      if (!['prompts/list', 'tools/call'].includes(String(message['method'])) || busy-- <= 0) return false
      response.writeHead(503, { 'retry-after': '0' }).end()
      return true
    },
  })
  const { url } = await startBridge(t, { url: http.url })
  busy = 1
  t.equal((await call(url, 'prompts/list')).status, 200)
  busy = 1
  const answer = await call(url, 'tools/call', { name: 'act', arguments: {} })
  t.equal(answer.status, 503)
  t.equal(answer.headers['retry-after'], '0')
})

t.test('an idle session ends, and the next call opens another', async (t) => {
  const http = await LegacyHttp.start(t)
  const { url } = await startBridge(t, { url: http.url }, { timeouts: { idle: 200 } })
  await call(url, 'tools/list')
  await until(() => http.received.some(({ method }) => method === 'DELETE'))
  t.equal(http.received.find(({ method }) => method === 'DELETE')?.headers['mcp-session-id'], 'session-1')
  await call(url, 'tools/list')
  t.equal(http.of('initialize').length, 2)
})

t.test('bounds sessions: the least recently used one makes room', async (t) => {
  const stdio = legacyStdio(t)
  const { url } = await startBridge(t, stdio.server, { limits: { processes: 2 } })
  const as = (name: string) => ({ meta: { [CAPABILITIES]: { experimental: { [name]: {} } } } })
  for (const name of ['a', 'b', 'c', 'd']) t.equal((await call(url, 'tools/list', {}, as(name))).status, 200)
  t.equal(stdio.pids().length, 4)
  await until(() => stdio.seen().filter(({ line }) => line === 'input ended').length === 2)
  const leaving = new AbortController()
  const held = ['c', 'd'].map((name) =>
    call(url, 'tools/call', { name: 'wait', arguments: { ms: 600_000 } }, { ...as(name), signal: leaving.signal }),
  )
  await until(() => stdio.messages().filter(({ method }) => method === 'tools/call').length === 2)
  const refused = await call(url, 'tools/list', {}, as('e'))
  t.match(
    { status: refused.status, reason: refused.headers['mcp-bridge-error'] },
    { status: 503, reason: 'overloaded' },
  )
  leaving.abort()
  for (const one of held) await t.rejects(one, { code: 'ABORT_ERR' }, 'the calls went on until then')
})

t.test('isolation per request opens a session for each call and ends it', async (t) => {
  const http = await LegacyHttp.start(t)
  const { url } = await startBridge(t, { url: http.url, session: 'per-request' })
  await call(url, 'tools/list')
  await call(url, 'tools/list')
  t.equal(http.of('initialize').length, 2)
  await until(() => http.received.filter(({ method }) => method === 'DELETE').length === 2)
})

t.test('forwards a notification of an extension, without its envelope', async (t) => {
  const http = await LegacyHttp.start(t)
  const { url } = await startBridge(t, { url: http.url })
  const body = JSON.stringify({
    jsonrpc: '2.0',
    method: 'notifications/vendor',
    params: { n: 1, _meta: envelope({ 'v/k': 2 }) },
  })
  t.equal((await post(url, body, headersFor('notifications/vendor'))).status, 202)
  await until(() => http.of('notifications/vendor').length === 1)
  t.same(http.of('notifications/vendor')[0]?.message['params'], { n: 1, _meta: { 'v/k': 2 } })
})

t.test('ends child processes when the bridge stops: first gently, then by force', async (t) => {
  const stdio = legacyStdio(t)
  const { url, bridge } = await startBridge(t, stdio.server)
  await call(url, 'tools/list')
  await bridge.close()
  t.ok(stdio.seen().some(({ line }) => line === 'input ended'))
  t.throws(() => process.kill(Number(stdio.pids()[0]), 0), { code: 'ESRCH' })

  const stubborn = legacyStdio(t, { stubborn: true })
  const second = await startBridge(t, stubborn.server)
  await call(second.url, 'tools/list')
  const started = Date.now()
  await second.bridge.close()
  t.ok(stubborn.seen().some(({ line }) => line === 'SIGTERM'))
  t.throws(() => process.kill(Number(stubborn.pids()[0]), 0), { code: 'ESRCH' })
  t.ok(Date.now() - started >= 4_500, 'it was given its time')
})

t.test('arguments and results keep their bytes in both directions', async (t) => {
  const args =
    '{"big":12345678901234567890,"one":1.0,"order":{"b":1,"2":2},"text":"\\u00e9\u2028","exp":1e400,"neg":-0,"dup":1,"dup":2}'
  const params = `{"name":"echo","arguments":${args},"_meta":${JSON.stringify(envelope())}}`
  const body = `{"jsonrpc":"2.0","id":1,\n  "method":"tools/call",\r\n"params":${params}}`
  const stdio = legacyStdio(t)
  const http = await LegacyHttp.start(t)
  for (const server of [stdio.server, { url: http.url }]) {
    const { url } = await startBridge(t, server)
    const { text, message } = await post(url, body, headersFor('tools/call', { name: 'echo' }))
    t.equal((message.result as { content: { text: string }[] }).content[0]?.text, args, 'what the server saw')
    t.ok(text.includes(`"structuredContent":${args}`), 'what came back')
  }
  t.equal(write(parseObject(args)), args)
})
