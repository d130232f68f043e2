/** A legacy client's own session with a legacy server, both over Streamable HTTP: what passes, and where the session goes on. */
import { fastify } from 'fastify'
import t, { type Test } from 'tap'
import { Fault } from '../../src/base/fault/fault.js'
import { unlimited } from '../../src/base/limits/memory.js'
import { endpoint } from '../../src/clients/http/endpoint.js'
import { EventStore } from '../../src/clients/http/event-store.js'
import { HandedSessions } from '../../src/clients/http/handed-sessions.js'
import { Refusals } from '../../src/clients/http/refusals.js'
import type { HttpSession } from '../../src/clients/http/session.js'
import { Sessions } from '../../src/clients/http/sessions.js'
import { auth } from '../../src/clients/plugins/auth.js'
import type { Replicas } from '../../src/mcp/ports/replicas.js'
import { Server } from '../../src/servers/server.js'
import { HttpTransport } from '../../src/servers/transport/http.js'
import { settingsOf, startBridge } from '../support/bridge.js'
import { openStream } from '../support/events.js'
import { until } from '../support/eventually.js'
import { BOTH, LegacyClient } from '../support/legacy-client.js'
import { LegacyHttp, type Override, type Plan } from '../support/legacy-http.js'
import { send } from '../support/modern.js'

type Json = Record<string, unknown>

const quiet = { isLevelEnabled: () => false, debug() {}, info() {}, warn() {}, error() {} }
/** What is no JSON for JavaScript: numbers and members that a copy would lose. */
const ODD = '{"n":12345678901234567890,"one":1.0,"dup":1,"dup":2,"e":"\\u00e9"}'

const DENIES = (name: string) => ({ tools: { deny: [name] } })
const ended = (server: LegacyHttp) => server.received.filter(({ method }) => method === 'DELETE').length

/** What replicas share, in this process. */
function sharedBy(): (id: string) => Pick<Replicas, 'id' | 'records' | 'sessionId' | 'ownerOf'> {
  const texts = new Map<string, string>()
  const key = (kind: string, id: string) => `${kind} ${id}`
  const records = {
    recall: async (kind: string, id: string) => texts.get(key(kind, id)),
    remember: async (kind: string, id: string, text: string) => {
      texts.set(key(kind, id), text)
      return true
    },
    change: async (kind: string, id: string, _kept: number, to: (text: string | undefined) => Json) => {
      const { text, result } = to(texts.get(key(kind, id)))
      if (text !== undefined) texts.set(key(kind, id), text as string)
      return result
    },
    forget: (kind: string, id: string) => void texts.delete(key(kind, id)),
  } as unknown as Replicas['records']
  return (id) => ({
    id,
    records,
    sessionId: () => `${id}.${crypto.randomUUID()}`,
    ownerOf: (session) => {
      const [owner] = session.split('.')
      return owner === id ? undefined : owner
    },
  })
}

/** Where the other replica is gone. */
const gone = {
  isForwarded: () => false,
  another: async () => undefined,
  forward: async () => {
    throw new Fault('sessionNotFound', 'The replica is gone')
  },
}

interface Bridge {
  url: string
  sessions: Sessions<HttpSession>
  /** Shuts down: other replicas go on with its sessions. */
  leave(): Promise<void>
}

function upstreamAt(server: LegacyHttp): Server {
  return new Server({
    name: 'weather',
    memory: unlimited(),
    transport: new HttpTransport({ url: new URL(server.url) }),
    era: 'auto',
    isolation: 'per-principal',
    tasks: 'auto',
    retry: 'off',
    passthrough: false,
    roots: 'ask',
    clientInfo: '{"name":"mcp-bridge","version":"0"}',
    log: quiet,
    timeouts: { probe: 5_000, initialize: 5_000, idle: 60_000 },
    maxSessions: 10,
    parked: { ttl: 60_000, max: 10, maxPerPrincipal: 10 },
  })
}

/** A bridge with one server, which passes no bytes by. */
async function bridgeBefore(
  t: Test,
  server: LegacyHttp,
  replica?: ReturnType<ReturnType<typeof sharedBy>>,
): Promise<Bridge> {
  const upstream = upstreamAt(server)
  const app = fastify({ exposeHeadRoutes: false })
  const handed = replica && new HandedSessions(replica, 'weather')
  const ended = (session: HttpSession) => handed?.ended(session)
  const sessions = new Sessions<HttpSession>({ max: 10, idle: 60_000, keepAlive: 15_000, replicas: replica, ended })
  await app.register(auth, { mode: { kind: 'none', loopback: true } })
  await app.register(endpoint, {
    path: '/mcp',
    upstream,
    speaks: () => upstream.verdict?.era,
    replicas: replica && ({ ...replica, ...gone } as unknown as Replicas),
    handed,
    refusals: new Refusals(quiet, undefined),
    log: quiet,
    sessions,
    refusing: { draftErrorCodes: false },
    compat: { bareDiscover: true, ignoreVersionSkew: true, draftErrorCodes: false },
    settings: {
      strict: false,
      emulateTasks: false,
      answerWithin: 600_000,
      serverInfo: '{"name":"mcp-bridge","version":"0"}',
      begin: () => () => {},
    },
    keepAlive: 15_000,
    commitAfter: 10_000,
    memory: unlimited(),
    events: new EventStore(unlimited()),
  })
  await app.listen({ port: 0, host: '127.0.0.1' })
  await upstream.warmUp()
  const close = async () => {
    sessions.close()
    app.server.closeAllConnections()
    await app.close()
    await upstream.close()
  }
  t.teardown(close)
  const { port } = app.server.address() as { port: number }
  const leave = async () => {
    sessions.drain()
    handed?.leave(sessions)
    await handed?.left
    await close()
  }
  return { url: `http://127.0.0.1:${port}/mcp`, sessions, leave }
}

/** A server with sessions, and a bridge before it. */
async function pair(t: Test, plan: Plan = {}): Promise<{ server: LegacyHttp; bridge: Bridge }> {
  const server = await LegacyHttp.start(t, { sessions: true, ...plan })
  return { server, bridge: await bridgeBefore(t, server) }
}

const post = (url: string, body: string, headers: Json) => send('POST', url, body, { ...BOTH, ...headers } as never)

t.test('the ids, progress tokens and bytes of a client pass unchanged, and so do those of the server', async (t) => {
  const override: Override = ({ message: { id, method, params } }, response) => {
    if (method !== 'tools/call') return false
    const { progressToken } = (params as Json)['_meta'] as Json
    const progress = `{"method":"notifications/progress","jsonrpc":"2.0","params":{"progressToken":${JSON.stringify(progressToken)},"progress":1}}`
    const answer = `{"result":{"content":[],"structuredContent":${ODD}},"x":1,"id":${JSON.stringify(id)},"jsonrpc":"2.0"}`
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.end(`data: ${progress}\n\ndata: ${answer}\n\n`)
    return true
  }
  const { server, bridge } = await pair(t, { override })
  const { headers } = await LegacyClient.open(bridge.url)
  for (const id of ['0', '7', '"7"', '"a\\"b"', '-1']) {
    const params = `{"name":"x","arguments":${ODD},"_meta":{"progressToken":"p"}}`
    const { text } = await post(
      bridge.url,
      `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":${params}}`,
      headers,
    )
    const { body } = server.of('tools/call').at(-1) ?? { body: '' }
    t.match(body, `"id":${id},`, id)
    t.match(body, ODD, id)
    t.match(body, '"progressToken":"p"', id)
    t.match(text, '{"method":"notifications/progress","jsonrpc":"2.0","params":{"progressToken":"p","progress":1}}', id)
    t.match(text, `{"result":{"content":[],"structuredContent":${ODD}},"x":1,"id":${id},"jsonrpc":"2.0"}`, id)
  }
})

t.test('a request reaches the server byte for byte, unless servers would read it in another way', async (t) => {
  const { server, bridge } = await pair(t)
  const { headers } = await LegacyClient.open(bridge.url)
  const params = `{ "name" : "echo",\t"arguments":${ODD} }`
  const kept = [
    `{"x-vendor": 1.0, "params":${params} , "method":"tools\\/call",\r\n"id": 1e0,"jsonrpc":"2.0"}`,
    `{"jsonrpc":"2.0","id":"é","method":"tools/call","params":{"name":"echo","arguments":{"text":"${'é'.repeat(50_000)}"}}}`,
    '{"jsonrpc":"2.0","id":7,"method":"ping"}',
    '{"jsonrpc":"2.0","id":7,"method":"vendor/odd","params":[1, 2]}',
  ]
  for (const body of kept) {
    await post(bridge.url, body, headers)
    t.equal(server.received.at(-1)?.body, body, body.slice(0, 60))
  }
  await post(bridge.url, `{"jsonrpc":"2.0","id":8,"method":"ping","Method":"tools/call","params":${params}}`, headers)
  t.notMatch(server.received.at(-1)?.body, 'tools/call', 'names in another case, which some servers read')
  await post(bridge.url, '{"jsonrpc":"2.0","id":9,"method":"ping","params":null}', headers)
  t.equal(server.received.at(-1)?.body, '{"jsonrpc":"2.0","id":9,"method":"ping"}', 'what is written for absent params')
})

t.test('a large result passes byte for byte, whole or on a stream, whether something looks at it or not', async (t) => {
  const large = `{"content":[{"type":"text","text":"${'é'.repeat(150_000)}"}],"structuredContent":${ODD}}`
  let isStream = false
  const override: Override = ({ message: { method, id } }, response) => {
    if (method !== 'tools/call') return false
    const text = `{"x":1.0, "jsonrpc":"2.0","result":${large} ,"id":${JSON.stringify(id)}}`
    response.writeHead(200, { 'content-type': isStream ? 'text/event-stream' : 'application/json', 'x-vendor': 'v' })
    response.end(isStream ? `data: ${text}\n\n` : text)
    return true
  }
  const server = await LegacyHttp.start(t, { sessions: true, override })
  const limits = { tools: [{ tools: '*', per: 'principal', max: 1_000, every: '1h' }] }
  const urls = [(await bridgeBefore(t, server)).url]
  const looking = await startBridge(t, { url: server.url, ...DENIES('a') }, { limits })
  await looking.bridge.server.warmUp()
  urls.push(looking.url)
  for (const url of urls) {
    const client = await LegacyClient.open(url)
    for (isStream of [false, true]) {
      const { text, headers } = await client.request('tools/call', { name: 'echo' }, { id: 'big' })
      t.ok(text.includes(`{"x":1.0, "jsonrpc":"2.0","result":${large} ,"id":"big"}`), 'the answer')
      if (!isStream) t.equal(headers['x-vendor'], 'v')
    }
  }
})

t.test('two requests with one id at the same time get their own answers', async (t) => {
  const { bridge } = await pair(t)
  const { headers } = await LegacyClient.open(bridge.url)
  const ask = (n: number) =>
    post(
      bridge.url,
      `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"n":${n}}}}`,
      headers,
    )
  const answers = await Promise.all([1, 2, 3, 4].map(ask))
  for (const [at, { message }] of answers.entries())
    t.match(message, { id: 1, result: { structuredContent: { n: at + 1 } } })
})

t.test('the server asks on the stream of the call, with its own id, and gets the answer', async (t) => {
  const { server, bridge } = await pair(t, { asks: true })
  const client = await LegacyClient.open(bridge.url, { capabilities: { elicitation: {} } })
  const question = {
    id: 'q-1',
    method: 'elicitation/create',
    params: { message: 'Who?', requestedSchema: { type: 'object', properties: {} } },
  }
  const stream = await client.stream(
    'tools/call',
    { name: 'steps', arguments: { steps: [{ ask: [question] }] } },
    { id: 'c' },
  )
  await until(() => stream.messages.some(({ method }) => method === 'elicitation/create'), 'the question')
  const asked = stream.messages.find(({ method }) => method === 'elicitation/create') as Json
  await client.post({ jsonrpc: '2.0', id: asked['id'], result: { action: 'accept', content: {} } })
  await stream.ended()
  t.match(stream.messages.at(-1), { id: 'c', result: {} })
  const answer = server.received.find(({ message }) => message['method'] === undefined && 'result' in message)
  t.equal(answer?.message['id'], asked['id'])
})

t.test('the cancellation of a client names its own id', async (t) => {
  const { server, bridge } = await pair(t)
  const client = await LegacyClient.open(bridge.url)
  const call = client.request('tools/call', { name: 'wait', arguments: { ms: 60_000 } }, { id: 'w' })
  await until(() => server.of('tools/call').length === 1, 'the call')
  await client.notify('notifications/cancelled', { requestId: 'w', reason: 'enough' })
  await call
  await until(() => server.of('notifications/cancelled').length > 0, 'the cancellation')
  t.match(server.of('notifications/cancelled')[0]?.message, { params: { requestId: 'w', reason: 'enough' } })

  const again = client.request('tools/call', { name: 'wait', arguments: { ms: 60_000 } }, { id: 'x' })
  await until(() => server.of('tools/call').length === 2, 'the call')
  const own = '{"params":{"requestId":"x"} ,"method":"notifications/cancelled","jsonrpc":"2.0"}'
  t.equal((await client.post(own)).status, 202)
  await again
  t.equal(server.of('notifications/cancelled').length, 2, 'the bridge adds none')
  t.equal(server.of('notifications/cancelled')[1]?.body, own)
})

t.test('a refusal of the server keeps its status, its headers and its error', async (t) => {
  const override: Override = ({ message: { method, id } }, response) => {
    if (method !== 'tools/call') return false
    response.writeHead(422, { 'content-type': 'application/json', 'x-vendor': 'v' })
    response.end(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32602, message: 'Not this' } }))
    return true
  }
  const { bridge } = await pair(t, { override })
  const client = await LegacyClient.open(bridge.url)
  const { status, headers, message } = await client.call('x')
  t.equal(status, 422)
  t.equal(headers['x-vendor'], 'v')
  t.match(message, { error: { code: -32602, message: 'Not this' } })
})

t.test("the session has the server's own id, and goes on when the bridge is started again", async (t) => {
  const { server, bridge } = await pair(t)
  const { headers } = await LegacyClient.open(bridge.url)
  const again = await bridgeBefore(t, server)
  const echo = '{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"echo","arguments":{"n":5}}}'
  t.match((await post(again.url, echo, headers)).message, { id: 5, result: { structuredContent: { n: 5 } } })
  await until(() => server.of('notifications/initialized').length > 0, 'the beginning of the session')
  const [first, last] = [server.of('notifications/initialized')[0], server.of('tools/call').at(-1)]
  t.equal(last?.headers['mcp-session-id'], headers['mcp-session-id'])
  t.equal(last?.headers['mcp-session-id'], first?.headers['mcp-session-id'])
  t.equal(last?.headers['mcp-protocol-version'], headers['mcp-protocol-version'])
  t.equal(server.of('initialize').length, 1)
  const stream = await openStream('GET', again.url, {
    ...headers,
    accept: 'text/event-stream',
    'last-event-id': 'p1-0',
  })
  await until(() => server.streams > 0, 'the stream at the server')
  server.push({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' })
  await until(() => stream.messages.length > 0, 'the message of the server')
  t.match(stream.messages, [{ method: 'notifications/tools/list_changed' }])
  t.equal((await send('DELETE', again.url, undefined, headers as never)).status, 200)
  await until(() => server.received.some(({ method }) => method === 'DELETE'), 'the end at the server')
})

t.test('behind a choice of tools, too, the session goes on at a bridge that has not opened it', async (t) => {
  const server = await LegacyHttp.start(t, { sessions: true })
  const settings = { tools: { deny: ['nothing_of_this_name'] } }
  const first = await startBridge(t, { url: server.url, ...settings })
  await first.bridge.server.warmUp()
  const { headers } = await LegacyClient.open(first.url)
  const again = await startBridge(t, { url: server.url, ...settings })
  await again.bridge.server.warmUp()
  const echo = '{"jsonrpc":"2.0","id":5, "method":"tools/call","params":{"name":"echo","arguments":{"n":5}}}'
  t.match((await post(again.url, echo, headers)).message, { id: 5, result: { structuredContent: { n: 5 } } })
  t.equal(server.of('tools/call').at(-1)?.body, echo)
  t.equal(server.of('initialize').length, 1)
})

t.test('a bridge that shuts down leaves a session that it can go on with, and ends others', async (t) => {
  const server = await LegacyHttp.start(t, { sessions: true })
  const entry = { url: server.url, ...DENIES('a') }
  const first = await startBridge(t, entry)
  await first.bridge.server.warmUp()
  const client = await LegacyClient.open(first.url)
  await until(() => server.streams === 1, 'the stream at the server')
  await first.bridge.close()
  await until(() => server.streams === 0, 'the end of the stream')
  t.equal(ended(server), 0)
  const again = await startBridge(t, entry)
  await again.bridge.server.warmUp()
  const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
  t.match(await post(again.url, ping, client.headers), { status: 200, message: { id: 1, result: {} } })
  t.equal(server.of('initialize').length, 1)

  const token = 'alice-0123456789abcdef'
  const named = await startBridge(t, entry, { auth: { tokens: { alice: token } } })
  await named.bridge.server.warmUp()
  const { status } = (await LegacyClient.open(named.url, { headers: { authorization: `Bearer ${token}` } })).opened
  t.equal(status, 200)
  await named.bridge.close()
  await until(() => ended(server) === 1, 'the end at the server: nobody would know whose it is')
})

t.test('while the bridge waits for calls at its end, others in the session may come again', async (t) => {
  const server = await LegacyHttp.start(t, { sessions: true })
  const settings = { timeouts: { drainTimeout: 10_000 } }
  const { url, bridge } = await startBridge(t, { url: server.url, ...DENIES('a') }, settings)
  await bridge.server.warmUp()
  const client = await LegacyClient.open(url)
  const waiting = client.request('tools/call', { name: 'wait', arguments: { ms: 60_000 } }, { id: 'w' })
  await until(() => server.of('tools/call').length === 1, 'the call')
  const closing = bridge.close()
  const late = await client.request('ping')
  t.equal(late.status, 503)
  t.ok(late.headers['retry-after'])
  t.equal((await client.notify('notifications/cancelled', { requestId: 'w' })).status, 202)
  await waiting
  await closing
  t.equal(ended(server), 0)
})

t.test('a session goes on when a reload changes what looks at its calls', async (t) => {
  const server = await LegacyHttp.start(t, { sessions: true })
  const entry = (name: string) => ({ url: server.url, ...DENIES(name) })
  const { url, bridge } = await startBridge(t, entry('a'))
  await bridge.server.warmUp()
  const client = await LegacyClient.open(url)
  await until(() => server.streams === 1, 'the stream at the server')
  t.match(await bridge.reload(settingsOf({ mcpServers: { test: entry('echo') } })), { changed: ['test'] })
  t.match((await client.call('echo')).message, { error: {} }, 'the new choice')
  t.match((await client.call('act')).message, { result: {} })
  await until(() => server.streams === 1, 'one stream at the server')
  t.match((await client.request('ping')).message, { result: {} })
  t.equal(ended(server), 0)
  t.equal(server.of('initialize').length, 1)
  t.equal((await client.end()).status, 200)
  await until(() => ended(server) === 1, 'the end at the server')
})

t.test('a broken answer on the stream of the server itself fails its call at once', async (t) => {
  const broken = {
    'is no JSON': '{"jsonrpc":"2.0","id":"b","result":{"x":NaN}}',
    'is too long': `{"jsonrpc":"2.0","id":"b","result":{"x":"${'x'.repeat(100_000)}"}}`,
    'is too long, and names its request last': `{"jsonrpc":"2.0","result":{"x":"${'x'.repeat(100_000)}"},"id":"b"}`,
  }
  let said = ''
  const server = await LegacyHttp.start(t, {
    sessions: true,
    override: ({ message }, response) => {
      if (message['method'] !== 'tools/call') return false
      response.writeHead(202).end()
      setImmediate(() => server.push({ said: true }))
      return true
    },
    spell: (text) => (text === '{"said":true}' ? said : text),
  })
  const { url, bridge } = await startBridge(t, { url: server.url, ...DENIES('a') }, { limits: { answerBytes: 65_536 } })
  await bridge.server.warmUp()
  const client = await LegacyClient.open(url)
  await until(() => server.streams === 1, 'the stream at the server')
  for (const [how, text] of Object.entries(broken)) {
    said = text
    const { message } = await client.request('tools/call', { name: 'echo' }, { id: 'b' })
    t.match(message, { id: 'b', error: { data: { outcome: 'unknown' } } }, how)
  }
})

t.test('a client gets what the server says to a notification, and to an answer', async (t) => {
  const told = '{"method":"notifications/message","jsonrpc":"2.0","params":{"level":"info","data":1.0}}'
  const refusal = '{"jsonrpc":"2.0", "id":null,"error":{"code":-32602,"message":"Not this"}}'
  let says: [status: number, type: string | undefined, body: string] = [202, undefined, '']
  const override: Override = ({ method, message }, response) => {
    if (method !== 'POST' || message['method'] === 'initialize' || message['method'] === 'server/discover') return false
    const [status, type, body] = says
    response.writeHead(status, { ...(type && { 'content-type': type }), 'x-vendor': 'v' }).end(body)
    return true
  }
  const { server, bridge } = await pair(t, { override })
  const { headers } = await LegacyClient.open(bridge.url)
  const sent = {
    notification: `{"params":{"x":${ODD}} ,"method":"notifications/progress","jsonrpc":"2.0"}`,
    answer: `{"result":${ODD} ,"id":"q","jsonrpc":"2.0"}`,
    'an error without an id': '{"jsonrpc":"2.0","error":{"code":1,"message":""}}',
  }
  const json = 'application/json'
  const rows: [says: typeof says, status: number, text: string][] = [
    [[202, undefined, ''], 202, ''],
    [[200, json, 'null'], 202, ''],
    [[200, 'text/html', '<p>OK</p>'], 202, ''],
    [[200, json, told], 200, told],
    [[400, json, refusal], 400, refusal],
    [[422, json, refusal], 422, refusal],
  ]
  for (const [what, body] of Object.entries(sent))
    for (const [said, status, text] of rows) {
      says = said
      const came = await post(bridge.url, body, headers)
      t.same([came.status, came.text], [status, text], `${what}: ${said}`)
      t.equal(server.received.at(-1)?.body, body, what)
      if (text !== '') t.equal(came.headers['x-vendor'], 'v')
    }
  says = [200, 'text/event-stream', `: hello\n\ndata: null\n\ndata: ${told}\n\n`]
  const stream = await openStream('POST', bridge.url, headers as never, sent.notification)
  await stream.ended()
  t.match(stream.messages, [{ method: 'notifications/message' }])
  for (const status of [403, 500, 503]) {
    says = [status, 'text/html', '<p>no</p>']
    for (const body of Object.values(sent)) {
      const came = await post(bridge.url, body, headers)
      t.equal(came.status, status === 403 ? 502 : status)
      t.match(came.message, { error: { data: {} } })
    }
  }
  says = [404, undefined, '']
  t.equal((await post(bridge.url, sent.notification, headers)).status, 404, 'the session is lost')
})

t.test('the headers of a client go on with each message, and nothing is added', async (t) => {
  const { server, bridge } = await pair(t)
  const own = { 'x-vendor': 'v', 'mcp-new': '1', accept: 'application/json, text/event-stream;q=0.5' }
  const { headers } = await LegacyClient.open(bridge.url, { headers: own, ready: false })
  const context = { traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`, tracestate: 'a=1', baggage: 'b=2' }
  const hidden = { cookie: 'a=b', forwarded: 'for=x', origin: new URL(bridge.url).origin, 'x-forwarded-for': '1.1.1.1' }
  const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
  const bodies = [
    ping,
    '{"jsonrpc":"2.0","method":"notifications/initialized"}',
    '{"jsonrpc":"2.0","id":"q","result":{}}',
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","_meta":{}}}',
  ]
  t.match(server.of('initialize')[0]?.headers, own)
  for (const body of bodies) {
    const before = server.received.length
    await post(bridge.url, body, { ...headers, ...context, ...hidden, 'mcp-protocol-version': '2025-06-18' })
    const came = server.received.slice(before).find(({ method }) => method === 'POST')
    t.equal(came?.body, body)
    t.match(came?.headers, { ...own, ...context, 'mcp-protocol-version': '2025-06-18' })
    for (const name of Object.keys(hidden)) t.notOk(came?.headers[name], name)
    t.equal(came?.headers['mcp-session-id'], headers['mcp-session-id'])
  }
  await post(bridge.url, ping, { ...headers, 'mcp-protocol-version': undefined })
  t.notOk('mcp-protocol-version' in (server.received.at(-1)?.headers ?? {}))
  const inMeta = { traceparent: `00-${'c'.repeat(32)}-${'d'.repeat(16)}-01` }
  const asked = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping', params: { _meta: inMeta } })
  await post(bridge.url, asked, headers)
  t.match(server.received.at(-1)?.headers, inMeta, 'what only the message says')
})

t.test(
  'headers of clients are not in the place of configured ones, and their credentials go on where they may',
  async (t) => {
    const server = await LegacyHttp.start(t, { sessions: true })
    const entry = { url: server.url, headers: { 'x-key': 'configured' }, ...DENIES('a') }
    const { url, bridge } = await startBridge(t, entry, { auth: { passthrough: true } })
    await bridge.server.warmUp()
    const client = await LegacyClient.open(url, { headers: { 'x-key': 'own', authorization: 'Bearer one' } })
    await client.request('ping')
    await client.notify('notifications/progress')
    await client.end()
    await until(() => ended(server) === 1, 'the end at the server')
    const asked = server.received.filter(({ message }) => message['method'] !== 'server/discover')
    t.same([...new Set(asked.map(({ method }) => method))].sort(), ['DELETE', 'GET', 'POST'])
    for (const { headers } of asked) t.match(headers, { authorization: 'Bearer one', 'x-key': 'configured' })
  },
)

t.test('a client hears in the words of the server that its session is lost', async (t) => {
  const text = '{"jsonrpc":"2.0", "error":{"code":-32001,"message":"Session not found"},"id":null}'
  let isLost = false
  const override: Override = ({ message }, response) => {
    if (!isLost || message['method'] === 'initialize') return false
    response.writeHead(404, { 'content-type': 'application/json', 'x-vendor': 'v' }).end(text)
    return true
  }
  const { server, bridge } = await pair(t, { override })
  for (const body of [
    '{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
    '{"jsonrpc":"2.0","method":"notifications/x"}',
  ]) {
    isLost = false
    const { headers } = await LegacyClient.open(bridge.url)
    const opened = server.of('initialize').length
    isLost = true
    const said = await post(bridge.url, body, headers)
    t.same([said.status, said.text, said.headers['x-vendor']], [404, text, 'v'])
    await until(() => bridge.sessions.size === 0, 'the end of the session')
    t.equal(server.of('initialize').length, opened)
  }
})

t.test('a session that the server does not know is none', async (t) => {
  const override: Override = ({ method, headers }, response) => {
    if (method !== 'POST' || headers['mcp-session-id'] !== 'nobody') return false
    response.writeHead(404).end()
    return true
  }
  const { bridge } = await pair(t, { override })
  await LegacyClient.open(bridge.url)
  const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
  for (let n = 0; n < 2; n++)
    t.match(await post(bridge.url, ping, { 'mcp-session-id': 'nobody' }), {
      status: 404,
      message: { error: { code: -32600 } },
    })
})

t.test('sessions whose clients left leave nothing behind', async (t) => {
  const server = await LegacyHttp.start(t, { sessions: true })
  const timeouts = { clientIdle: 200, keepAlive: 100 }
  const { url, bridge } = await startBridge(t, { url: server.url, ...DENIES('a') }, { timeouts })
  await bridge.server.warmUp()
  const left = async () => {
    const http = await bridge.mounts.get('test')?.clients.http()
    return http?.gauges.find(({ bound }) => bound === 'client_sessions')?.used
  }
  const open = () => LegacyClient.open(url, { ready: false })
  // On a busy machine, a session may be forgotten before its stream opens.
  let stream = await (await open()).listen()
  while (stream.status !== 200) stream = await (await open()).listen()
  await Promise.all(Array.from({ length: 20 }, open))
  await until(async () => (await left()) === 1, 'only the one with a stream')
  t.equal(server.streams, 1)
  stream.leave()
  await until(async () => (await left()) === 0)
  await until(() => server.streams === 0, 'nothing at the server')
})

t.test('another replica goes on with the session of one that is killed, but not with one that has ended', async (t) => {
  const replicaOf = sharedBy()
  const server = await LegacyHttp.start(t, {
    sessions: true,
    override: ({ message }, response) => {
      if (message['method'] === 'tools/call') response.setHeader('set-cookie', 'replica=7; Path=/')
      return false
    },
  })
  const one = await bridgeBefore(t, server, replicaOf('one'))
  // Neither reaches the other.
  const two = await bridgeBefore(t, server, replicaOf('two'))
  const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
  const atOnce = await LegacyClient.open(one.url, { ready: false })
  t.match(await post(two.url, ping, atOnce.headers), { status: 200 }, 'from its opening')
  const client = await LegacyClient.open(one.url)
  await client.call('echo')
  await client.call('echo')
  const opened = server.of('initialize').length
  t.match(await post(two.url, ping, client.headers), { status: 200, message: { id: 1, result: {} } })
  t.match(server.received.at(-1)?.headers, {
    cookie: 'replica=7',
    'mcp-session-id': server.of('tools/call').at(-1)?.headers['mcp-session-id'],
  })
  const third = await bridgeBefore(t, server, replicaOf('three'))
  t.equal((await send('DELETE', two.url, undefined, client.headers as never)).status, 200)
  t.equal((await post(third.url, ping, client.headers)).status, 404)
  const other = await LegacyClient.open(one.url)
  t.equal((await other.end()).status, 200)
  t.equal((await post(two.url, ping, other.headers)).status, 404)
  t.equal(server.of('initialize').length, opened + 1)
})

t.test('a client gets its session once other replicas can go on with it, and also if the store fails', async (t) => {
  const server = await LegacyHttp.start(t, { sessions: true })
  const written: ((worked: boolean) => void)[] = []
  const replica = sharedBy()('one')
  const remember = () => new Promise<boolean>((resolve) => written.push(resolve))
  const bridge = await bridgeBefore(t, server, { ...replica, records: { ...replica.records, remember } as never })
  let isOpen = false
  const opening = LegacyClient.open(bridge.url, { ready: false }).finally(() => {
    isOpen = true
  })
  await until(() => written.length === 1, 'the record of the session is being written')
  // The answer would come before those to later requests.
  for (let n = 0; n < 3; n++) await post(bridge.url, '{"jsonrpc":"2.0","id":1,"method":"ping"}', {})
  t.equal(isOpen, false)
  written[0]?.(false)
  const client = await opening
  t.match((await client.call('echo')).message, { result: {} })
  await until(() => written.length === 2, 'the next use writes what was not written')
  written[1]?.(true)
  t.match((await client.call('echo')).message, { result: {} })
  t.equal((await client.end()).status, 200)
  t.equal(written.length, 2)
})

t.test('another replica goes on with the session of one that shuts down, which the server keeps', async (t) => {
  const replicaOf = sharedBy()
  const server = await LegacyHttp.start(t, {
    sessions: true,
    override: ({ message }, response) => {
      if (message['method'] === 'initialize') response.setHeader('set-cookie', 'replica=7; Path=/')
      return false
    },
  })
  const one = await bridgeBefore(t, server, replicaOf('one'))
  const two = await bridgeBefore(t, server, replicaOf('two'))
  const client = await LegacyClient.open(one.url)
  const { headers } = client
  // The cookies of a session are stored after its first answer.
  await client.call('echo')
  await until(() => server.of('notifications/initialized').length > 0, 'the beginning of the session')
  const id = server.of('notifications/initialized')[0]?.headers['mcp-session-id']
  server.received.length = 0
  await one.leave()
  t.notOk(server.received.some(({ method }) => method === 'DELETE'))
  const echo = (n: number) =>
    post(
      two.url,
      `{"jsonrpc":"2.0","id":${n},"method":"tools/call","params":{"name":"echo","arguments":{"n":${n}}}}`,
      headers,
    )
  const answers = await Promise.all([1, 2, 3].map(echo))
  for (const [at, { message }] of answers.entries())
    t.match(message, { id: at + 1, result: { structuredContent: { n: at + 1 } } })
  const calls = server.of('tools/call')
  t.same([...new Set(calls.map((one) => one.headers['mcp-session-id']))], [id])
  t.same([...new Set(calls.map((one) => one.headers.cookie))], ['replica=7'])
  t.equal(server.of('initialize').length, 0)
  t.equal(two.sessions.size, 1)
  t.equal((await send('DELETE', two.url, undefined, headers as never)).status, 200)
  await until(() => server.received.some(({ method }) => method === 'DELETE'), 'the end at the server')
})

t.test('a session of another replica with which nothing can go on takes no room', async (t) => {
  const upstream = upstreamAt(await LegacyHttp.start(t))
  t.teardown(() => upstream.close(true))
  const sender = { principal: 'local', caller: { revision: '2025-11-25', capabilities: '{}' } } as const
  const route = await upstream.legacyRoute(sender)
  const resume = route === 'translate' ? undefined : route.resume
  if (!resume) throw new Error('no sessions')
  const left = { session: 's', revision: '2025-11-25', offered: '{}', ready: true } as const
  await t.rejects(resume({ ...left, cookies: 'no cookies' }, sender, '{}'))
  t.equal(upstream.sessions, 0)
  const direct = await resume(left, sender, '{}')
  t.equal(upstream.sessions, 1)
  direct.close()
  t.equal(upstream.sessions, 0)
})
