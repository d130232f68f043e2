/** Servers that lose a session and do not say so as the specification wants it. */
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { startBridge } from '../support/bridge.js'
import { type Caller, callers } from '../support/callers.js'
import { until } from '../support/eventually.js'
import { temporaryFolder } from '../support/folder.js'
import { LegacyClient } from '../support/legacy-client.js'
import { LegacyHttp, type Override } from '../support/legacy-http.js'
import { LegacySse, PATHS } from '../support/legacy-sse.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { listen } from '../support/listening.js'
import { call, post } from '../support/modern.js'
import { openPipe } from '../support/pipe.js'
import { askOn, shakeHands } from '../support/spelled.js'

type Json = Record<string, unknown>

const ACT = { name: 'act', arguments: { x: 1 } }
const ECHO = { name: 'echo', arguments: { x: 1 } }

/** How a server answers a message in a session that it does not know. */
type Refuse = (message: Json, response: ServerResponse) => void

const text =
  (status: number, body: string, type = 'text/plain'): Refuse =>
  (_message, response) =>
    void response.writeHead(status, { 'content-type': type }).end(body)
const error =
  (status: number, code: number, message: string, id?: unknown): Refuse =>
  (asked, response) => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: id === undefined ? asked['id'] : id, error: { code, message } })
    response.writeHead(status, { 'content-type': 'application/json' }).end(body)
  }
const event =
  (code: number, message: string): Refuse =>
  (asked, response) => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: asked['id'] ?? null, error: { code, message } })
    response.writeHead(200, { 'content-type': 'text/event-stream' }).end(`data: ${body}\n\n`)
  }

const REFUSALS: [name: string, refuse: Refuse][] = [
  ['400, the Python SDK', text(400, 'Bad Request: No valid session ID provided')],
  ['400, an older Python SDK', text(400, 'Invalid session ID')],
  ['400 in JSON', text(400, '{"detail":"Invalid session"}', 'application/json')],
  ['400 in Chinese, with the escapes of Python', text(400, '{"detail":"\\u4f1a\\u8bdd\\u4e0d\\u5b58\\u5728"}')],
  ['400 without a reason', text(400, '')],
  ['400 with a reason of another kind', text(400, 'Ungültige Anfrage')],
  ['400 with an error for nobody', error(400, -32000, 'Bad Request', null)],
  ['401 without a challenge', text(401, 'Unauthorized')],
  ['403 with a page', text(403, '<html><h1>Forbidden</h1></html>', 'text/html')],
  ['405', text(405, 'Method Not Allowed')],
  ['409', text(409, 'Conflict')],
  ['410', text(410, '')],
  ['412', text(412, 'initialize first')],
  ['422', text(422, 'Unprocessable Entity')],
  ['440, as IIS', text(440, 'Login Time-out')],
  ['500, a text', text(500, 'Session not found')],
  ['500, a page in German', text(500, '<html><body>Sitzung abgelaufen</body></html>', 'text/html')],
  ['500 with an error', error(500, -32603, 'Unknown session: 4f1a')],
  ['503 of a replica', text(503, 'No such session on this node')],
  ['200, not initialized', error(200, -32002, 'Server not initialized')],
  ['200, a session that is not found', error(200, -32001, 'Session not found')],
  ['200, in Russian', error(200, -32000, 'Сессия не найдена')],
  ['200, an error without an id', error(200, -32600, 'Bad Request: Server not initialized', null)],
  ['200, the Python SDK before initialize', error(200, -32602, 'Invalid request parameters')],
  ['200, an SDK without its session', error(200, -32600, 'Bad Request: No valid session ID provided')],
  ['200, an event with another code', event(-32602, 'Invalid request parameters')],
  ['400, an event', error(400, -32602, 'Session not found', null)],
  ['200, an event', event(-32001, 'Session expired')],
  ['200, a page', text(200, '<html>Your session has expired</html>', 'text/html')],
  ['200, JSON of its own', text(200, '{"error":"session expired"}', 'application/json')],
]

/** A server over HTTP that forgets all its sessions when it is told to. */
class Forgetful {
  readonly http: LegacyHttp
  readonly #lost: Map<unknown, Refuse>

  private constructor(http: LegacyHttp, lost: Map<unknown, Refuse>) {
    this.http = http
    this.#lost = lost
  }

  static async start(t: Test, except: readonly string[] = []): Promise<Forgetful> {
    const lost = new Map<unknown, Refuse>()
    const override: Override = ({ headers, method, message }, response) => {
      const refuse = lost.get(headers['mcp-session-id'])
      if (!refuse || except.includes(String(message['method']))) return false
      if (method === 'GET') response.writeHead(405).end()
      else refuse(message, response)
      return true
    }
    return new Forgetful(await LegacyHttp.start(t, { override }), lost)
  }

  /** Forgets all sessions, and refuses what comes in them. */
  forget(refuse: Refuse): void {
    for (const { headers } of this.http.received) {
      const session = headers['mcp-session-id']
      if (session !== undefined && !this.#lost.has(session)) this.#lost.set(session, refuse)
    }
  }

  /** The sessions in which a tool was called, with what has arrived since the last look. */
  seen(): { opened: number; looks: number; calls: unknown[] } {
    const opened = this.http.of('initialize').length
    const looks = this.http.of('ping').length
    const calls = this.http.of('tools/call').map(({ headers }) => headers['mcp-session-id'])
    this.http.received.length = 0
    return { opened, looks, calls }
  }
}

/** Clients whose session with the server is the bridge's, or is opened anew by it. */
const clients: Record<string, Caller> = {
  'a modern client': callers.modern,
  'a legacy client on stdio': callers['legacy, on stdio'],
  'a legacy client over HTTP+SSE': callers['legacy, over HTTP+SSE'],
}

for (const [name, connect] of Object.entries(clients))
  t.test(`${name} continues after any answer of a server that has lost its session`, async (t) => {
    const server = await Forgetful.start(t)
    const ask = await connect(t, server.http.url)
    await ask(ACT)
    server.seen()
    for (const [what, refuse] of REFUSALS) {
      t.match(await ask(ACT), { result: {} }, what)
      server.forget(refuse)
      t.match(await ask(ACT), { result: {} }, `${what}: the call that finds out`)
      t.match(await ask(ACT), { result: {} }, `${what}: the next call`)
      const { opened, looks, calls } = server.seen()
      t.same(calls, [calls[0], calls[0], calls[2], calls[2]], `${what}: nothing ran twice`)
      t.not(calls[0], calls[2], `${what}: in another session`)
      t.equal(opened, 1, what)
      t.ok(looks <= 1, `${what}: the bridge has looked once`)
    }
  })

t.test('a server that answers ping without a session has still lost it', async (t) => {
  for (const [name, connect] of Object.entries(clients)) {
    const server = await Forgetful.start(t, ['ping'])
    const ask = await connect(t, server.http.url)
    for (const refuse of [error(200, -32002, 'Server not initialized'), text(500, 'Session not found')]) {
      await ask(ACT)
      server.forget(refuse)
      server.seen()
      t.match(await ask(ACT), { result: {} }, name)
      t.match(await ask(ACT), { result: {} }, name)
      const { opened, calls } = server.seen()
      t.equal(opened, 1, name)
      t.same(calls, [calls[0], calls[1], calls[1]], name)
      t.not(calls[0], calls[1], name)
    }
  }
})

t.test('calls that are refused at the same time share the check and the new session', async (t) => {
  for (const [name, connect] of Object.entries(clients)) {
    const server = await Forgetful.start(t)
    const ask = await connect(t, server.http.url)
    await ask(ACT)
    server.forget(text(400, ''))
    for (const answer of await Promise.all(Array.from({ length: 20 }, () => ask(ACT))))
      t.match(answer, { result: {} }, name)
    const { opened, calls } = server.seen()
    t.equal(opened, 2, name)
    t.equal(calls.filter((session) => session === 'session-2').length, 20, name)
  }
})

t.test('passes on a tool error that mentions sessions, and keeps the session', async (t) => {
  const errors: [name: string, refuse: Refuse][] = [
    ['in an answer', error(200, -32000, 'Session "shop" is not initialized')],
    ['with a code of sessions', error(200, -32002, 'Session not found')],
    ['with 400', error(400, -32602, 'Unknown session: shop')],
    ['with 500', error(500, -32603, 'The session of the browser has crashed')],
    ['with 500 and a text', text(500, 'The session of the browser has crashed')],
    ['with 422 and a text', text(422, 'The session is closed')],
    ['a page', text(200, 'Session closed', 'text/html')],
  ]
  for (const [name, connect] of Object.entries(clients)) {
    let refuse: Refuse = text(500, '')
    const http = await LegacyHttp.start(t, {
      override: ({ message }, response) => {
        if ((message['params'] as Json | undefined)?.['name'] !== 'act') return false
        refuse(message, response)
        return true
      },
    })
    const ask = await connect(t, http.url)
    for (const [what, said] of errors) {
      refuse = said
      const before = http.of('tools/call').length
      await ask(ECHO)
      for (let n = 0; n < 2; n++)
        t.match(await ask(ACT), { error: { message: /session|HTTP|body/i } }, `${name}, ${what}`)
      t.match(await ask(ECHO), { result: { structuredContent: { x: 1 } } }, `${name}, ${what}`)
      t.equal(http.of('tools/call').length - before, 4, `${name}, ${what}: each call ran once`)
    }
    t.equal(http.of('initialize').length, 1, `${name}: in one session`)
  }
})

t.test('a call that may have been executed is not repeated, and the next call works', async (t) => {
  const crashes: [name: string, crash: Refuse, after: Refuse][] = [
    ['it says nothing of sessions', text(500, 'Internal Server Error'), text(500, 'Internal Server Error')],
    ['it says something else later', text(500, 'The session has crashed'), text(404, '')],
    ['in an answer', error(200, -32000, 'The session has crashed'), error(200, -32001, 'Session not found')],
    ['a timeout', text(504, 'Gateway Timeout'), text(400, 'No valid session ID provided')],
  ]
  for (const [name, connect] of Object.entries(clients))
    for (const [what, crash, after] of crashes) {
      let isLost = false
      const http = await LegacyHttp.start(t, {
        override: ({ headers, method, message }, response) => {
          if (headers['mcp-session-id'] !== 'session-1' || method === 'GET') return false
          const crashes = (message['params'] as Json | undefined)?.['name'] === 'crash'
          if (!crashes && !isLost) return false
          if (isLost) after(message, response)
          else crash(message, response)
          isLost = true
          return true
        },
      })
      const ask = await connect(t, http.url)
      await ask(ACT)
      const crashed = await ask({ name: 'crash', arguments: {} })
      t.match(crashed, { error: { message: String } }, `${name}, ${what}`)
      t.match(await ask(ACT), { result: {} }, `${name}, ${what}: the next call`)
      const ran = http.of('tools/call').filter(({ body }) => body.includes('"crash"'))
      t.equal(ran.length, 1, `${name}, ${what}: it ran once`)
    }
})

t.test('repeats a call that only reads, even if it may have been executed', async (t) => {
  const server = await Forgetful.start(t)
  const { url } = await startBridge(t, { url: server.http.url })
  await call(url, 'tools/list')
  server.forget(text(500, 'Internal Server Error'))
  t.match((await call(url, 'tools/list')).message, { result: { tools: [] } })
})

t.test('a server that refuses every call does not get a session for each', async (t) => {
  const http = await LegacyHttp.start(t, {
    override: ({ method, message }, response) => {
      if (method !== 'POST' || ['initialize', 'server/discover'].includes(String(message['method']))) return false
      if (message['id'] === undefined) return false
      response.writeHead(400).end('Bad Request')
      return true
    },
  })
  const { url } = await startBridge(t, { url: http.url })
  const now = performance.now()
  t.intercept(performance, 'now', { value: () => now })
  for (let n = 0; n < 5; n++)
    t.match((await call(url, 'tools/call', ACT)).message, { error: { data: { httpStatus: 400 } } })
  t.equal(http.of('initialize').length, 1)
})

/** With the audit log, answers wait for its file. */
const PLACES: [where: string, settings: (t: Test) => object][] = [
  ['', () => ({})],
  [', also with the audit log', (t) => ({ audit: { file: join(temporaryFolder(t), 'audit.log') } })],
]

for (const [where, settings] of PLACES)
  t.test(`a client over HTTP gets 404, which every client understands${where}`, async (t) => {
    const server = await Forgetful.start(t)
    const { url } = await startBridge(t, { url: server.http.url }, settings(t))
    for (const [what, refuse] of REFUSALS) {
      if (what.startsWith('401') || what.startsWith('403')) continue
      server.seen()
      const client = await LegacyClient.open(url)
      t.match((await client.call('act')).message, { result: {} }, what)
      server.forget(refuse)
      t.match(await client.call('act'), { status: 404, message: { error: { code: -32600 } } }, what)
      const other = await LegacyClient.open(url)
      t.match((await other.call('act')).message, { result: {} }, what)
      t.equal(server.seen().calls.length, 3, `${what}: nothing is sent twice`)
    }
  })

t.test(
  'a session that neither a restarted bridge nor a restarted server knows is 404, whatever the server says',
  async (t) => {
    const server = await Forgetful.start(t)
    const before = await startBridge(t, { url: server.http.url })
    const { url } = await startBridge(t, { url: server.http.url })
    await call(url, 'tools/list')
    for (const [what, refuse] of REFUSALS) {
      if (what.startsWith('401') || what.startsWith('403')) continue
      const client = await LegacyClient.open(before.url)
      t.match((await client.call('act')).message, { result: {} }, what)
      server.forget(refuse)
      const answer = await post(url, client.text('tools/call', ACT, {}), client.headers)
      t.match(answer, { status: 404, message: { error: { code: -32600 } } }, what)
    }
  },
)

t.test(
  'a client of a direct session that gets an error late on its stream gets 404 for its next request',
  async (t) => {
    let isLost = false
    const late = error(200, -32602, 'Invalid request parameters')
    const http = await LegacyHttp.start(t, {
      override: ({ headers, message }, response) => {
        if (headers['mcp-session-id'] !== 'session-1' || message['id'] === undefined) return false
        const crashes = (message['params'] as Json | undefined)?.['name'] === 'crash'
        if (crashes) {
          isLost = true
          const progress = { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'x' } }
          const body = {
            jsonrpc: '2.0',
            id: message['id'],
            error: { code: -32602, message: 'Invalid request parameters' },
          }
          response.writeHead(200, { 'content-type': 'text/event-stream' })
          response.end(`data: ${JSON.stringify(progress)}\n\ndata: ${JSON.stringify(body)}\n\n`)
        } else if (isLost) late(message, response)
        return crashes || isLost
      },
    })
    const { url } = await startBridge(t, { url: http.url })
    const client = await LegacyClient.open(url)
    t.match((await client.call('act')).message, { result: {} })
    t.match(await client.call('crash'), { status: 200, message: { error: { code: -32602 } } })
    await until(async () => (await client.call('act')).status === 404, 'the client learns it')
    const other = await LegacyClient.open(url)
    t.match((await other.call('act')).message, { result: {} })
  },
)

t.test('passes on an error of a tool that mentions sessions, and keeps the session', async (t) => {
  const errors: Refuse[] = [
    error(200, -32000, 'Session "shop" is not initialized'),
    error(200, -32002, 'Session not found'),
    error(200, -32602, 'Invalid request parameters'),
    error(200, -32600, 'No valid session ID provided'),
    event(-32600, 'Session not found'),
    text(200, 'Session closed', 'text/html'),
  ]
  let refuse = errors[0] as Refuse
  const http = await LegacyHttp.start(t, {
    override: ({ message }, response) => {
      if ((message['params'] as Json | undefined)?.['name'] !== 'act') return false
      refuse(message, response)
      return true
    },
  })
  const { url } = await startBridge(t, { url: http.url })
  const client = await LegacyClient.open(url)
  for (const each of errors) {
    refuse = each
    const before = http.of('tools/call').length
    t.match((await client.call('act')).message, { error: { message: String } })
    t.match((await client.call('echo', { x: 1 })).message, { result: { structuredContent: { x: 1 } } })
    t.equal(http.of('tools/call').length - before, 2, 'each call ran once')
  }
})

for (const streams of [false, true])
  t.test(`passes on a refusal in a session that the server knows unchanged, streams: ${streams}`, async (t) => {
    const http = await LegacyHttp.start(t, {
      streams,
      override: ({ message }, response) => {
        if ((message['params'] as Json | undefined)?.['name'] !== 'act') return false
        error(400, -32602, 'Unknown session: shop')(message, response)
        return true
      },
    })
    const { url } = await startBridge(t, { url: http.url })
    const client = await LegacyClient.open(url)
    t.match(await client.call('act'), { status: 400, message: { error: { message: 'Unknown session: shop' } } })
    const { text } = await client.call('echo', { x: 1 })
    t.match(text, /"structuredContent":\{"x":1\}/)
  })

t.test('restarts a program that forgets that it was initialized', async (t) => {
  const forgets = { code: -32002, message: 'Server not initialized' }
  const modern = legacyStdio(t, { forgets })
  const { url } = await startBridge(t, modern.server)
  for (let n = 0; n < 3; n++) t.match((await call(url, 'tools/call', ACT)).message, { result: {} })
  t.equal(modern.pids().length, 3)

  const program = legacyStdio(t, { forgets })
  const pipe = openPipe(t, program.server)
  await shakeHands(pipe)
  for (let n = 0; n < 3; n++) t.match(await askOn(pipe, 'tools/call', ACT), { result: {} })
  t.equal(program.pids().length, 3)
})

t.test('opens another stream to an HTTP+SSE server that refuses messages of a stream', async (t) => {
  for (const refuse of [text(400, 'No transport found for sessionId'), text(500, 'Session not found'), text(410, '')]) {
    let isLost = false
    const sse = await LegacySse.start(t, {
      override: ({ path, message }, response) => {
        if (!isLost || !path.startsWith(PATHS.messages) || !path.endsWith('stream-1')) return false
        refuse(message, response)
        return true
      },
    })
    const server = { url: sse.url, transport: 'sse' }
    const { url } = await startBridge(t, server)
    await call(url, 'tools/call', ACT)
    isLost = true
    t.match((await call(url, 'tools/call', ACT)).message, { result: {} })

    isLost = false
    const direct = await startBridge(t, server)
    const client = await LegacyClient.open(direct.url)
    t.match((await client.call('act')).message, { result: {} })
  }
})

t.test('a client that did not send initialized gets the refusal of the server', async (t) => {
  const http = await LegacyHttp.start(t, {
    override: ({ message }, response) => {
      if (message['method'] !== 'tools/call') return false
      error(200, -32002, 'Server not initialized')(message, response)
      return true
    },
  })
  const pipe = openPipe(t, { url: http.url })
  const clientInfo = { name: 'old', version: '1' }
  await askOn(pipe, 'initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo })
  t.match(await askOn(pipe, 'tools/call', ACT), { error: { code: -32002, message: 'Server not initialized' } })
  t.equal(http.of('initialize').length, 1)
})

t.test('initializes a server without session ids again', async (t) => {
  for (const [name, connect] of Object.entries(clients))
    for (const refuse of [error(200, -32002, 'Server not initialized'), text(400, 'Bad Request')]) {
      let isLost = false
      const http = await LegacyHttp.start(t, {
        sessions: false,
        override: ({ message, method }, response) => {
          if (message['method'] === 'initialize') isLost = false
          if (!isLost || method !== 'POST') return false
          refuse(message, response)
          return true
        },
      })
      const ask = await connect(t, http.url)
      await ask(ACT)
      isLost = true
      t.match(await ask(ACT), { result: {} }, name)
      t.equal(http.of('initialize').length, 2, name)
      t.equal(http.of('tools/call').length, 3, name)
    }
})

t.test('a subscription of a lost session is made in another one', async (t) => {
  const server = await Forgetful.start(t)
  const { url } = await startBridge(t, { url: server.http.url })
  await call(url, 'tools/list')
  server.forget(text(400, 'Bad Request'))
  const uri = 'test://x'
  const stream = await listen(url, { resourceSubscriptions: [uri] })
  await stream.has(1)
  t.match(stream.messages[0], { params: { notifications: { resourceSubscriptions: [uri] } } })
  t.equal(server.seen().opened, 2)
})

t.test('does not repeat a task of a lost session', async (t) => {
  const http = await LegacyHttp.start(t, {
    asks: true,
    override: ({ headers, message }, response) => {
      if (message['method'] !== 'tasks/result' || headers['mcp-session-id'] !== 'session-1') return false
      response.writeHead(404).end()
      return true
    },
  })
  const { url } = await startBridge(t, { url: http.url })
  t.match((await call(url, 'tools/call', { name: 'job', arguments: { steps: [] } })).message, {
    error: { code: -32603 },
  })
  t.equal(http.of('tools/call').length, 1)
})
