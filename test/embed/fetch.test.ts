/** Requests of the Fetch API, answered without a network. */
import t from 'tap'
import { createBridge } from '../../src/app/embed/create.js'
import { holdTimers } from '../support/clock.js'
import { until } from '../support/eventually.js'
import { type LegacyStdio, legacyStdio } from '../support/legacy-stdio.js'
import { envelope, headersFor } from '../support/modern.js'

const URL_ = 'http://localhost/mcp'

function requestFor(
  method: string,
  params: object = {},
  more: RequestInit & { url?: string; meta?: object } = {},
): Request {
  const { url = URL_, meta = {}, headers, ...init } = more
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: envelope({ ...meta }) } })
  return new Request(url, {
    method: 'POST',
    body,
    headers: { ...headersFor(method, { ...params }), ...headers },
    ...init,
  })
}

/** What a server has received with a method. */
const received = (server: LegacyStdio | undefined, wanted: string) =>
  server?.messages().filter(({ method }) => method === wanted) ?? []

const echo = (a: unknown) => ['tools/call', { name: 'echo', arguments: { a } }] as const

const WAIT = ['tools/call', { name: 'wait', arguments: { ms: 60_000 } }] as const

t.test('answers a request as over a network', async (t) => {
  const bridge = await createBridge({ mcpServers: { it: legacyStdio(t).server } })
  t.teardown(() => bridge.close())
  const answer = await bridge.fetch(requestFor(...echo(1)))
  t.equal(answer.status, 200)
  t.match(answer.headers.get('content-type'), /^application\/json/)
  t.equal(answer.headers.get('connection'), null)
  t.match(await answer.json(), { result: { resultType: 'complete' } })
  const elsewhere = await bridge.fetch(requestFor(...echo(1), { url: 'http://localhost/healthz' }))
  t.match([elsewhere.status, await elsewhere.json()], [404, { error: { message: /endpoints are \/mcp, \/it\/mcp/ } }])
  const foreign = await bridge.fetch(requestFor(...echo(1), { url: 'http://evil.example/mcp' }))
  t.equal(foreign.status, 403)
  const large = 'x'.repeat(200_000)
  const back = await bridge.fetch(requestFor(...echo(large)))
  t.ok((await back.text()).includes(large), 'bodies are streamed in both directions')
})

t.test('lengths and headers of another connection are not believed', async (t) => {
  const bridge = await createBridge({ mcpServers: { it: legacyStdio(t).server } })
  t.teardown(() => bridge.close())
  // As of an application that has parsed the body, has written it again, and passes on all headers.
  const wrong: Record<string, string>[] = [
    { 'content-length': '100000' },
    { 'content-length': '1' },
    { 'content-length': '-' },
    { 'transfer-encoding': 'chunked', 'content-length': '7' },
    { 'transfer-encoding': 'gzip, chunked' },
    { connection: 'close, x-hop', 'keep-alive': 'timeout=5', 'x-hop': '1', 'proxy-connection': 'close' },
    { connection: 'Upgrade', upgrade: 'websocket' },
    { connection: 'content-type' },
    { expect: '100-continue' },
    { te: 'trailers', trailer: 'x-later' },
  ]
  for (const headers of wrong) {
    const answer = await bridge.fetch(requestFor(...echo(1), { headers }))
    t.match(
      [answer.status, await answer.json()],
      [200, { result: { resultType: 'complete' } }],
      JSON.stringify(headers),
    )
  }
  const empty = new Request(URL_, { method: 'POST', headers: { ...headersFor('ping'), 'content-length': '7' } })
  t.equal((await bridge.fetch(empty)).status, 400)
  const listening = new Request(URL_, { headers: { accept: 'text/event-stream', 'content-length': '7' } })
  t.equal((await bridge.fetch(listening)).status, 400, 'a GET without a session')
})

t.test('a request whose body has been read is refused', async (t) => {
  const bridge = await createBridge({ mcpServers: { it: legacyStdio(t).server } })
  t.teardown(() => bridge.close())
  const used = requestFor(...echo(1))
  await used.text()
  await t.rejects(bridge.fetch(used), { name: 'TypeError', message: /has been read before/ })
  const locked = requestFor(...echo(1))
  locked.body?.getReader()
  await t.rejects(bridge.fetch(locked), { name: 'TypeError', message: /has been read before/ })
})

t.test('two bridges in one process are separate', async (t) => {
  const servers = [legacyStdio(t), legacyStdio(t)]
  const bridges = await Promise.all(servers.map(({ server }) => createBridge({ mcpServers: { it: server } })))
  t.teardown(() => Promise.all(bridges.map((bridge) => bridge.close())))
  const [one, other] = bridges
  await one?.fetch(requestFor(...echo('first')))
  await other?.fetch(requestFor(...echo('second')))
  const calls = (i: number) => JSON.stringify(received(servers[i], 'tools/call'))
  t.match([calls(0), calls(1)], [/first/, /second/])
  t.notMatch(calls(0), /second/)
  t.notMatch(calls(1), /first/)
  await one?.close()
  const answer = await other?.fetch(requestFor(...echo('third')))
  t.match(await answer?.json(), { result: { resultType: 'complete' } }, 'the end of one is not the end of the other')
})

t.test('callers are those that `principal` names, and no others', async (t) => {
  const it = legacyStdio(t)
  const principal = async ({ headers }: Request) => headers.get('x-user') ?? undefined
  const bridge = await createBridge({ mcpServers: { it: it.server }, principal })
  t.teardown(() => bridge.close())
  for (const user of ['ada', 'bob', 'ada'])
    t.equal((await bridge.fetch(requestFor(...echo(1), { headers: { 'x-user': user } }))).status, 200)
  t.equal(received(it, 'initialize').length, 2, 'each has a session of its own')
  t.equal((await bridge.fetch(requestFor(...echo(1)))).status, 401)
})

t.test('aborting a request, or the body of its answer, cancels the call', async (t) => {
  const it = legacyStdio(t)
  const bridge = await createBridge({ mcpServers: { it: it.server }, timeouts: { commitAfter: 10 } })
  t.teardown(() => bridge.close())
  const giving = new AbortController()
  const given = bridge.fetch(requestFor(...WAIT, { signal: giving.signal }))
  await until(() => received(it, 'tools/call').length === 1, 'the call')
  giving.abort(new Error('enough'))
  await t.rejects(
    given.then((answer) => answer.text()),
    /enough|abort/,
  )
  await until(() => received(it, 'notifications/cancelled').length === 1, 'a cancellation')
  // An answer that takes long begins as an event stream.
  const begun = await bridge.fetch(requestFor(...WAIT))
  t.match(begun.headers.get('content-type'), /^text\/event-stream/)
  await begun.body?.cancel()
  await until(() => received(it, 'notifications/cancelled').length === 2, 'another one')
})

t.test('a closed bridge ends its sessions, and answers nothing', async (t) => {
  const it = legacyStdio(t)
  const bridge = await createBridge({ mcpServers: { it: it.server } })
  await bridge.fetch(requestFor(...echo(1)))
  await bridge.close()
  t.equal((await bridge.fetch(requestFor(...echo(1)))).status, 503)
})

t.test('a path at which there can be no endpoint is refused in words of the program', async (t) => {
  const wrong = (path: string) => createBridge({ path, mcpServers: { it: legacyStdio(t).server } })
  for (const path of ['mcp', '//evil.example/mcp', '/mcp?a=1', '/a b', '/t/:tenant/mcp', '/x/*']) {
    const error = await wrong(path).catch((one: Error) => one)
    t.match((error as Error).message, `path: "${path}" has `, path)
    t.notMatch((error as Error).message, /listen/, path)
  }
  for (const [path, at] of Object.entries({ '/tools/': '/tools', '/': '/mcp' })) {
    const bridge = await wrong(path)
    t.teardown(() => bridge.close())
    const answer = await bridge.fetch(requestFor(...echo(1), { url: `http://localhost${at}` }))
    t.equal(answer.status, 200, path)
  }
})

/** A request whose body does not end. */
function endless(begun = '{"jsonrpc":"2.0",'): { request: Request; cancelled: () => boolean } {
  let cancelled = false
  const body = new ReadableStream({
    start: (controller) => {
      if (begun !== '') controller.enqueue(new TextEncoder().encode(begun))
    },
    cancel: () => {
      cancelled = true
    },
  })
  const request = new Request(URL_, {
    method: 'POST',
    body,
    headers: headersFor('tools/list'),
    duplex: 'half',
  } as RequestInit)
  return { request, cancelled: () => cancelled }
}

for (const [name, begun] of [['does not end'], ['does not even begin', '']] as const)
  t.test(`refuses a request whose body ${name}`, async (t) => {
    const timers = holdTimers(t, 60_000)
    const timeouts = { call: 3_600_000 }
    const bridge = await createBridge({ mcpServers: { it: legacyStdio(t).server }, timeouts })
    t.teardown(() => bridge.close())
    const before = await bridge.fetch(requestFor('tools/list'))
    t.match(await before.json(), { result: {} })
    const answering = bridge.fetch(endless(begun).request)
    await until(() => timers.waiting > 0, 'the body to be read')
    timers.run()
    const answer = await answering
    t.equal(answer.status, 408)
    t.match(await answer.json(), { error: { code: -32600, message: 'Request timeout: 60 s for the whole request' } })
  })

t.test('a body that fails is the error of its request, and nobody waits for its first byte', async (t) => {
  const bridge = await createBridge({ mcpServers: { it: legacyStdio(t).server } })
  t.teardown(() => bridge.close())
  const failing = new ReadableStream({
    pull: (controller) => controller.error(new Error('the disk of the application')),
  })
  const init = { method: 'POST', headers: headersFor('tools/list'), duplex: 'half' } as RequestInit
  await t.rejects(bridge.fetch(new Request(URL_, { ...init, body: failing })), {
    message: 'the disk of the application',
  })
  const nowhere = await bridge.fetch(new Request('http://localhost/nowhere', { ...init, body: new ReadableStream({}) }))
  t.equal(nowhere.status, 404)
})

t.test('refuses a request whose headers are too large, as a port does', async (t) => {
  const bridge = await createBridge({ mcpServers: { it: legacyStdio(t).server } })
  t.teardown(() => bridge.close())
  for (const body of ['{}', 'x'.repeat(1_000_000)]) {
    const headers = { ...headersFor('tools/list'), 'mcp-name': 'x'.repeat(20_000) }
    const answer = await bridge.fetch(new Request(URL_, { method: 'POST', headers, body }))
    t.equal(answer.status, 431)
    t.match(await answer.json(), { error: { code: -32600, message: /^Too many headers/ } })
  }
})

t.test('options that cannot be used are refused by name, each with what to do', async (t) => {
  const upstream = 'https://example.com/mcp'
  const rows: [options: unknown, wanted: RegExp][] = [
    [undefined, /^createBridge takes an object with options, as in \{ "upstream"/],
    [null, /^createBridge takes an object/],
    ['https://example.com/mcp', /^createBridge takes an object/],
    [{}, /^mcpServers: names no server: add one, as in/],
    [{ mcpServers: {} }, /^mcpServers: names no server/],
    [{ mcpServers: { a: upstream } }, /^mcpServers\.a: has to be an object: \{ "url"/],
    [{ mcpServers: { a: null } }, /^mcpServers\.a: has to be an object/],
    [{ mcpServers: [{ url: upstream }] }, /^mcpServers: has to be an object of servers by name, not a list/],
    [{ upstream: 7 }, /^upstream: has to be a string/],
    [{ upstream, groups: true }, /^groups: has to be/],
    [{ upstream, env: 'HOME' }, /^env: has to be an object/],
    [{ upstream, path: 7 }, /^path: has to be a path/],
    [{ upstream, principal: 'ada' }, /^principal: has to be a function/],
    [{ upstream, logger: 'info' }, /^logger: has to be a log with the functions debug, info, warn, error.*no debug$/],
    [{ upstream, logger: { debug() {}, info() {} } }, /it has no warn$/],
    [{ upstrem: upstream }, /upstrem: is not an option: did you mean "upstream"/],
    [{ upstream, redis: {} }, /^redis: means nothing in a program, only for the command: leave it out$/],
    [{ upstream, listen: 'http://127.0.0.1:1/mcp', metrics: true }, /^listen: means nothing.*\nmetrics: means nothing/],
    [{ upstream, discover: ['https://example.com'], inspect: true, tls: {} }, /^discover: .*\ninspect: .*\ntls: /],
  ]
  for (const [options, wanted] of rows) {
    const name = JSON.stringify(options) ?? 'none'
    await t.rejects(createBridge(options as never), { name: 'ConfigError', message: wanted }, name)
  }
  await (await createBridge({ upstream, redis: undefined } as never)).close()
})

t.test('after its end, a request gets a JSON-RPC error that says so', async (t) => {
  const server = legacyStdio(t)
  const bridge = await createBridge({ mcpServers: { it: server.server } })
  await bridge.fetch(requestFor(...echo(1)))
  await bridge.close()
  const calls = received(server, 'tools/call').length
  const answer = await bridge.fetch(requestFor(...echo(2)))
  t.match([answer.status, answer.headers.get('mcp-bridge-error')], [503, 'draining'])
  t.match(await answer.json(), {
    error: { code: -32603, message: 'The bridge is closed', data: { reason: 'draining', outcome: 'not_executed' } },
  })
  t.equal(received(server, 'tools/call').length, calls)
})
