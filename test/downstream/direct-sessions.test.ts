/** A legacy client's own session with a legacy server, both over Streamable HTTP: what passes, and where the session goes on. */
import { fastify } from 'fastify'
import t, { type Test } from 'tap'
import { endpoint } from '../../src/downstream/http/endpoint.js'
import { EventStore } from '../../src/downstream/http/event-store.js'
import { HandedSessions } from '../../src/downstream/http/handed-sessions.js'
import { Refusals } from '../../src/downstream/http/refusals.js'
import type { HttpSession } from '../../src/downstream/http/session.js'
import { Sessions } from '../../src/downstream/http/sessions.js'
import { Fault } from '../../src/fault/fault.js'
import { unlimited } from '../../src/limits/memory.js'
import { auth } from '../../src/plugins/auth.js'
import type { Replicas } from '../../src/ports/replicas.js'
import { Server } from '../../src/upstream/server.js'
import { HttpTransport } from '../../src/upstream/transport/http.js'
import { startBridge } from '../support/bridge.js'
import { openStream } from '../support/events.js'
import { until } from '../support/eventually.js'
import { BOTH, LegacyClient } from '../support/legacy-client.js'
import { LegacyHttp, type Override, type Plan } from '../support/legacy-http.js'
import { send } from '../support/modern.js'

type Json = Record<string, unknown>

const quiet = { isLevelEnabled: () => false, debug() {}, info() {}, warn() {}, error() {} }
/** What is no JSON for JavaScript: numbers and members that a copy would lose. */
const ODD = '{"n":12345678901234567890,"one":1.0,"dup":1,"dup":2,"e":"\\u00e9"}'

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

/** A bridge with one server, which passes no bytes by. */
async function bridgeBefore(
  t: Test,
  server: LegacyHttp,
  replica?: ReturnType<ReturnType<typeof sharedBy>>,
): Promise<Bridge> {
  const upstream = new Server({
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
  const app = fastify({ exposeHeadRoutes: false })
  const handed = replica && new HandedSessions(replica, 'weather')
  const sessions = new Sessions<HttpSession>({ max: 10, idle: 60_000, keepAlive: 15_000, replicas: replica })
  await app.register(auth, { mode: { kind: 'none', loopback: true } })
  await app.register(endpoint, {
    path: '/mcp',
    upstream,
    relay: undefined,
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
