/** How the bridge finds out what a server speaks. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { execPath } from 'node:process'
import t, { type Test } from 'tap'
import { createBridge, startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { LegacyClient } from '../support/legacy-client.js'
import { LegacyHttp, type Plan } from '../support/legacy-http.js'
import { type LegacyStdio, legacyStdio } from '../support/legacy-stdio.js'
import { listenUntilEnd } from '../support/listen-until-end.js'
import { CAPABILITIES, CLIENT_INFO, call, VERSION } from '../support/modern.js'

t.test('the first request to a server is server/discover with a full envelope', async (t) => {
  const http = await LegacyHttp.start(t)
  const { url } = await startBridge(t, { url: http.url })
  await call(url, 'tools/call', { name: 'echo', arguments: {} })
  const [first] = http.received
  t.equal(first?.message['method'], 'server/discover')
  const meta = (first?.message['params'] as { _meta: Record<string, unknown> })._meta
  t.equal(meta[VERSION], '2026-07-28')
  t.same(meta[CAPABILITIES], {})
  t.match(meta[CLIENT_INFO], { name: 'mcp-bridge' })
  t.match(first?.headers, {
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': 'server/discover',
    accept: /json.*event-stream/,
  })
  t.equal(http.of('tools/call').length, 1)

  const stdio = legacyStdio(t)
  const over = await startBridge(t, stdio.server)
  await call(over.url, 'tools/call', { name: 'echo', arguments: {} })
  t.equal(stdio.messages()[0]?.['method'], 'server/discover')
})

/** One process was asked what it speaks, and then to begin a session. */
function isOneChild(t: Test, { pids, messages }: LegacyStdio): void {
  t.equal(pids().length, 1)
  const methods = messages().map(({ method }) => method)
  t.same(methods.slice(0, 2), ['server/discover', 'initialize'])
}

t.test('any error of a program on discover leads to initialize on the same process', async (t) => {
  for (const code of [-32601, -32602, -32600, -32000, 1]) {
    const stdio = legacyStdio(t, { discover: { code, message: 'no' } })
    const { url } = await startBridge(t, stdio.server)
    t.equal((await call(url, 'tools/list')).status, 200, String(code))
    isOneChild(t, stdio)
  }
})

t.test('a program that exits on discover is restarted, and gets initialize first', async (t) => {
  const stdio = legacyStdio(t, { discover: 'exit' })
  const { url } = await startBridge(t, stdio.server)
  t.equal((await call(url, 'tools/list')).status, 200)
  const [first, second, ...more] = stdio.pids()
  t.same(more, [])
  t.throws(() => process.kill(Number(first), 0), { code: 'ESRCH' }, 'the first is gone')
  const heard = stdio.seen().filter(({ pid, line }) => pid === second && line.startsWith('{'))
  t.match(heard[0]?.line, /"method":"initialize"/)
})

t.test(
  'a program that exits at initialize because it was probed is started again, for clients of both eras',
  async (t) => {
    const modern = legacyStdio(t, { initialize: 'exit when probed' })
    const { url } = await startBridge(t, modern.server)
    t.equal((await call(url, 'tools/list')).status, 200)
    t.equal(modern.pids().length, 2)

    const legacy = legacyStdio(t, { initialize: 'exit when probed' })
    const client = await LegacyClient.open((await startBridge(t, legacy.server)).url)
    t.match((await client.call('echo', { x: 1 })).message, { result: { content: [{ text: '{"x":1}' }] } })
    t.equal(legacy.pids().length, 2)
  },
)

t.test('a program that is silent on discover gets initialize, and the first request succeeds', async (t) => {
  const stdio = legacyStdio(t, { discover: 'silent' })
  const { url } = await startBridge(t, stdio.server, { timeouts: { probe: 300 } })
  t.equal((await call(url, 'tools/call', { name: 'echo', arguments: {} })).status, 200)
  isOneChild(t, stdio)
})

t.test('skips a banner on stdout', async (t) => {
  const stdio = legacyStdio(t, { banner: 'Welcome to the server!', stderr: 'starting' })
  const { url } = await startBridge(t, stdio.server)
  t.equal((await call(url, 'tools/list')).status, 200)
  t.equal(stdio.pids().length, 1)
})

const discoverResult = (...supportedVersions: string[]) => ({
  jsonrpc: '2.0',
  id: 1,
  result: { supportedVersions, capabilities: {} },
})
const rpcError = (code: number, data?: object) => ({
  jsonrpc: '2.0',
  id: 1,
  error: { code, message: 'm', ...(data && { data }) },
})

const verdicts: [name: string, discover: NonNullable<Plan['discover']>, legacy: boolean][] = [
  [
    'unsupported, with the modern revision listed',
    { status: 400, body: rpcError(-32022, { supported: ['2026-07-28'] }) },
    false,
  ],
  ['27 a header mismatch', { status: 400, body: rpcError(-32020) }, false],
  ['a missing capability', { status: 400, body: rpcError(-32021, { requiredCapabilities: {} }) }, false],
  ['a modern answer', { status: 200, body: discoverResult('2026-07-28') }, false],
  [
    'a draft error without overlap',
    { status: 400, body: rpcError(-32004, { supportedVersions: ['2026-03-01'] }) },
    true,
  ],
  ['28 an answer that lists only legacy', { status: 200, body: discoverResult('2025-11-25') }, true],
  ['an answer of the catch-all kind', { status: 200, body: { jsonrpc: '2.0', id: 1, result: {} } }, true],
  [
    'unsupported, with nothing modern listed',
    { status: 400, body: rpcError(-32022, { supported: ['2025-11-25'] }) },
    true,
  ],
  ['session not found', { status: 404, body: rpcError(-32001) }, true],
  ['404 without body', { status: 404 }, true],
  ['405', { status: 405 }, true],
  ['400 in HTML', { status: 400, body: '<h1>Bad Request</h1>' }, true],
  ['500', { status: 500 }, true],
  ['200 in HTML', { status: 200, body: '<h1>It works!</h1>' }, true],
  ['202', { status: 202 }, true],
]

t.test('only a modern answer makes a server modern', async (t) => {
  for (const [name, discover, legacy] of verdicts) {
    const http = await LegacyHttp.start(t, { discover })
    const { url } = await startBridge(t, { url: http.url })
    const { status } = await call(url, 'tools/list')
    t.equal(http.of('initialize').length, legacy ? 1 : 0, name)
    if (legacy) t.equal(status, 200, name)
  }
})

t.test('other failures decide nothing: the next request probes again', async (t) => {
  const cases: [served: number, seen: number][] = [
    [401, 502],
    [403, 502],
    [429, 429],
    [502, 502],
    [503, 503],
    [504, 504],
  ]
  for (const [served, seen] of cases) {
    let broken = true
    const http = await LegacyHttp.start(t, {
      override: (_received, response) => {
        if (broken) response.writeHead(served, { 'retry-after': '1' }).end()
        return broken
      },
    })
    const { url } = await startBridge(t, { url: http.url })
    const answer = await call(url, 'tools/list')
    t.equal(answer.status, seen, `${served}`)
    t.equal(answer.message.error?.code, -32603)
    t.equal(http.of('initialize').length, 0)
    broken = false
    await until(async () => (await call(url, 'tools/list')).status === 200, 'an answer')
    t.equal(http.of('server/discover').length >= 2, true)
  }
})

t.test('detects HTTP+SSE behind an address that accepts neither discover nor initialize', async (t) => {
  const http = await sseServer(t, (origin) => `${origin}/message?sessionId=1`)
  const { url, bridge } = await startBridge(t, { url: http.url })
  t.equal((await call(url, 'tools/list')).status, 200)
  t.match(bridge.server.verdict, { era: 'legacy', transport: { kind: 'sse' } })
})

t.test('detects HTTP+SSE where a POST is refused in JSON-RPC', async (t) => {
  const stdio = legacyStdio(t)
  const far = await startBridge(t, stdio.server)
  const { url, bridge } = await startBridge(t, { url: new URL('/sse', far.url).href })
  t.equal((await call(url, 'tools/list')).status, 200)
  t.match(bridge.server.verdict, { era: 'legacy', transport: { kind: 'sse' } })
  const called = await call(url, 'tools/call', { name: 'echo', arguments: { x: 1 } })
  t.match(called.message.result, { structuredContent: { x: 1 } })
})

t.test('refuses an endpoint on another origin, and sends nothing there', async (t) => {
  let trapped = 0
  const trap = createServer(() => trapped++)
  await new Promise<void>((resolve) => trap.listen(0, '127.0.0.1', resolve))
  t.teardown(() => trap.close())
  const http = await sseServer(t, () => `http://127.0.0.1:${(trap.address() as AddressInfo).port}/message`)
  const { url } = await startBridge(t, { url: http.url })
  t.equal((await call(url, 'tools/list')).status, 502)
  t.equal(trapped, 0)
})

t.test('refuses an endpoint that is not on the web', async (t) => {
  for (const endpoint of ['file:///etc/passwd', 'javascript:1', 'data:,x', 'urn:x:y', 'blob:own/message'])
    await t.test(endpoint, async (t) => {
      const http = await sseServer(t, (origin) => endpoint.replace('own', origin))
      const { url } = await startBridge(t, { url: http.url })
      const { status, message } = await call(url, 'tools/list')
      t.equal(status, 502)
      t.match(message.error, { data: { reason: 'upstream_unavailable', outcome: 'not_executed' } })
      t.same([...new Set(http.asked)], ['/sse'])
    })
})

t.test('fifty concurrent requests cause one probe and one handshake', async (t) => {
  const http = await LegacyHttp.start(t)
  const { url } = await startBridge(t, { url: http.url })
  const answers = await Promise.all(Array.from({ length: 50 }, () => call(url, 'tools/list')))
  t.ok(answers.every(({ status }) => status === 200))
  t.equal(http.of('server/discover').length, 1)
  t.equal(http.of('initialize').length, 1)

  const stdio = legacyStdio(t)
  const over = await startBridge(t, stdio.server)
  await Promise.all(Array.from({ length: 50 }, () => call(over.url, 'tools/list')))
  t.equal(stdio.pids().length, 1)
  t.equal(stdio.messages().filter(({ method }) => method === 'initialize').length, 1)
})

t.test('names an unreachable server, and the blame', async (t) => {
  const gone = await startBridge(t, { url: 'http://127.0.0.1:9/mcp' })
  const refused = await call(gone.url, 'tools/list')
  t.equal(refused.status, 502)
  t.equal(refused.headers['mcp-bridge-error'], 'upstream_unavailable')
  t.match(refused.message.error, { code: -32603, message: /refused/, data: { outcome: 'not_executed' } })

  const missing = await startBridge(t, { command: 'no-such-command-here' })
  t.match((await call(missing.url, 'tools/list')).message.error, { code: -32603, message: /not found/ })

  const dying = createBridge(t, { command: execPath, args: ['-e', 'console.error("bad API key"); process.exit(3)'] })
  await t.rejects(dying.bridge.server.warmUp(), { message: /exited with code 3/, cause: { stderr: ['bad API key'] } })
})

t.test('remembers a verdict when a program is restarted, and probes once', async (t) => {
  const stdio = legacyStdio(t)
  const { url } = await startBridge(t, stdio.server)
  await call(url, 'tools/list')
  await call(url, 'tools/call', { name: 'crash' })
  t.equal((await call(url, 'tools/list')).status, 200)
  t.equal(stdio.pids().length, 2)
  t.equal(stdio.messages().filter(({ method }) => method === 'server/discover').length, 1)
})

/** An HTTP+SSE server that says where to post as `endpoint` has it. */
async function sseServer(
  t: { teardown(run: () => void): void },
  endpoint: (origin: string) => string,
): Promise<{ url: string; asked: string[] }> {
  const asked: string[] = []
  // @ts-expect-error: plain JavaScript, because servers on stdio run it without any loader
  const { answer, result } = await import('../fixtures/legacy.mjs')
  const server = createServer((request, response) => {
    const { port } = server.address() as AddressInfo
    asked.push(request.url ?? '')
    if (request.method === 'GET' && request.url === '/sse') {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(`event: endpoint\ndata: ${endpoint(`http://127.0.0.1:${port}`)}\n\n`)
      server.once('message', () => {})
      server.on('emit', (text: string) => response.write(`event: message\ndata: ${text}\n\n`))
      return
    }
    if (request.url !== '/message?sessionId=1') {
      response.writeHead(404).end('not here')
      return
    }
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      response.writeHead(202).end('Accepted')
      const text = Buffer.concat(chunks).toString()
      const message = JSON.parse(text) as { id?: unknown }
      if (message.id === undefined) return
      const way = {
        emit: (sent: unknown) => server.emit('emit', typeof sent === 'string' ? sent : JSON.stringify(sent)),
        crash() {},
        expect() {},
      }
      const answered = answer(message, text, way, {})
      if (answered !== undefined) way.emit(result(message.id, answered))
    })
  })
  await listenUntilEnd(t, server)
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/sse`, asked }
}
