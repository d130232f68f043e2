/** What passes between HTTP clients and HTTP servers of the same era: bytes, but for what may not cross a proxy. */
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { startBridge } from '../support/bridge.js'
import { openStream } from '../support/events.js'
import { until } from '../support/eventually.js'
import { temporaryFolder } from '../support/folder.js'
import { BOTH, initialize } from '../support/legacy-client.js'
import { call, envelope, headersFor, post, send } from '../support/modern.js'
import { ModernHttp } from '../support/modern-http.js'
import { type Arrival, PlainHttp, sendText } from '../support/plain-http.js'

type Json = Record<string, unknown>

const DISCOVERED =
  '{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}'
const ODD = '{"n":12345678901234567890,"one":1.0,"b":1,"2":2,"e":"\\u00e9","dup":1,"dup":2,"__proto__":{"a":-0}}'

/** A bridge in front of a modern server that says `answer` to everything but the probe. */
async function betweenModern(t: Test, answer: (arrival: Arrival, response: ServerResponse) => void, settings = {}) {
  const server = await PlainHttp.start(t, (arrival, response) => {
    const { message } = arrival
    if (message?.['method'] !== 'server/discover') return answer(arrival, response)
    sendText(response, `{"jsonrpc":"2.0","id":${message['id']},"result":${DISCOVERED}}`)
  })
  const { url, bridge, log } = await startBridge(t, { url: server.url }, settings)
  await bridge.server.warmUp()
  return { server, url, bridge, log, last: () => server.received.at(-1) as Arrival }
}

/** A bridge in front of a legacy server that says `answer` to everything but the probe. */
async function betweenLegacy(t: Test, answer: (arrival: Arrival, response: ServerResponse) => void, settings = {}) {
  const server = await PlainHttp.start(t, (arrival, response) => {
    const { message } = arrival
    if (message?.['method'] !== 'server/discover') return answer(arrival, response)
    sendText(response, `{"jsonrpc":"2.0","id":${message['id']},"error":{"code":-32601,"message":"no"}}`, {}, 404)
  })
  const { url, bridge, log } = await startBridge(t, { url: server.url }, settings)
  await bridge.server.warmUp()
  return { server, url, log, last: () => server.received.at(-1) as Arrival }
}

t.test('passes on a modern request byte for byte, whatever its content', async (t) => {
  const { url, last } = await betweenModern(t, (_arrival, response) => sendText(response, '{}'))
  const meta = JSON.stringify(envelope())
  const bodies = [
    `{"jsonrpc":"2.0","id":1.0e0,\r\n\t"method" : "tools/call", "params":{"name":"x","arguments":${ODD},"_meta":${meta}}}`,
    `  {"params":{"_meta":${meta},"name":"x","requestState":"a\\u0000\\/b","inputResponses":{"q":${ODD}}},"method":"tools/call","id":9007199254740993,"jsonrpc":"2.0"}\n`,
    `{"jsonrpc":"2.0","id":"ü","method":"tools/call","params":{"name":"x","arguments":{"long":"${'é"'.replace('"', '\\"').repeat(50_000)}"},"_meta":${meta}}}`,
  ]
  for (const body of bodies) {
    t.equal((await post(url, body, headersFor('tools/call', { name: 'x' }))).status, 200)
    t.ok(last().bytes.equals(Buffer.from(body)), body.slice(0, 60))
  }
})

t.test('passes on headers about a request, and none of the connection', async (t) => {
  const { url, last } = await betweenModern(t, (_arrival, response) => sendText(response, '{}'), {
    allowedOrigins: ['https://app.example'],
  })
  const passing = {
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': 'tools/call',
    'mcp-name': '=?base64?eA==?=',
    'mcp-param-region': ' =?base64?w6k=?=',
    'mcp-param-unheard-of': 'x y',
    'mcp-something': 'z',
    traceparent: '00-1-2-03',
    tracestate: 'a=1',
    baggage: 'b=2',
  }
  const staying = {
    origin: 'https://app.example',
    cookie: 'a=b',
    'mcp-session-id': 'made-up',
    'last-event-id': '5',
    connection: 'close, x-secret',
    'x-secret': 's',
    'keep-alive': 'timeout=5',
    te: 'trailers',
    'proxy-authorization': 'Basic YTpi',
    authorization: 'Bearer canary',
    forwarded: 'for=1.2.3.4',
    'x-forwarded-for': '1.2.3.4',
    'sec-fetch-mode': 'cors',
    'x-vendor': 'v',
  }
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name: 'x', _meta: envelope() },
  })
  t.equal((await post(url, body, { ...BOTH, ...passing, ...staying })).status, 200)
  const { headers, path } = last()
  t.equal(path, '/mcp')
  for (const [name, value] of Object.entries(passing)) t.equal(headers[name], value.trim(), name)
  for (const name of Object.keys(staying)) {
    if (name !== 'connection') t.equal(headers[name], undefined, name)
  }
  t.notMatch(headers.connection, /secret/)
  t.notMatch(headers.host, new RegExp(new URL(url).host))
  t.match(headers['accept-encoding'], /^identity$/)
})

t.test('passes on an answer byte for byte, with its status', async (t) => {
  let status = 200
  let text = ''
  const { url } = await betweenModern(t, (_arrival, response) =>
    sendText(response, text, { 'x-vendor': 'v', 'set-cookie': 'a=b', 'alt-svc': 'h3', 'mcp-session-id': 's' }, status),
  )
  const rows: [status: number, text: string][] = [
    [200, `{"id":1,"result":{"structuredContent":${ODD},"resultType":"complete"} ,\n"jsonrpc":"2.0"}`],
    [200, `{"jsonrpc":"2.0","id":1,"result":{"resultType":"vendor/own","x":1.0}}`],
    [200, `{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","requestState":"\\u0041"}}`],
    [200, `{"jsonrpc":"2.0","id":1,"error":{"code":-32099,"message":"m","data":${ODD}}}`],
    [400, `{"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"Header mismatch"}}`],
    [404, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}`],
    [500, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"m"}}`],
    [200, `{"jsonrpc":"2.0","id":1,"result":{"content":"${'x'.repeat(300_000)}"}}`],
  ]
  for (const row of rows) {
    ;[status, text] = row
    const sent = { name: 'x', arguments: {}, _meta: envelope() }
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: sent })
    const answer = await textOf(url, body, headersFor('tools/call', sent))
    t.equal(answer.status, status, text.slice(0, 80))
    t.ok(answer.text === text, text.slice(0, 80))
    t.equal(answer.headers['x-vendor'], 'v')
    for (const name of ['set-cookie', 'alt-svc', 'mcp-session-id']) t.notOk(name in answer.headers, name)
  }
})

t.test(
  'passes the messages of a stream byte for byte as they come, and no fields that break modern clients',
  async (t) => {
    const streams: ServerResponse[] = []
    const { url, server } = await betweenModern(t, (_arrival, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
      streams.push(response)
    })
    const body = JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'x', _meta: envelope() },
    })
    const stream = await openStream('POST', url, headersFor('tools/call', { name: 'x' }), body)
    t.match(stream.headers, {
      'content-type': 'text/event-stream',
      'cache-control': 'no-store, no-transform',
      'x-accel-buffering': 'no',
    })
    const said =
      `{"method" : "notifications/vendor","x":1.0, "params":{"a":${ODD},\u2028"b":"\u2028"},"jsonrpc":"2.0"}`.replace(
        '\u2028',
        '',
      )
    const pieces: [piece: string, message: string | undefined][] = [
      [': hello\n\n', undefined],
      [`id: 5\nretry: 10\nevent: message\ndata: ${said}\n\n`, said],
      ['da', undefined],
      [`ta: ${said}\r\n\r\n`, said],
      ['i', undefined],
      ['d', undefined],
      [`: 7\ndata: ${said.replace('vendor', 'id: 5')}\n\n`, said.replace('vendor', 'id: 5')],
      [`identity: x\nretry:1\ndata: ${said.slice(0, 1)}\ndata: ${said.slice(1)}\n\n`, said.replace('{', '{ ')],
    ]
    const messages = () => stream.text.split('\n').flatMap((line) => (line.startsWith('data: ') ? [line.slice(6)] : []))
    const expected: string[] = []
    for (const [piece, message] of pieces) {
      if (message !== undefined) expected.push(message)
      streams[0]?.write(piece)
      await until(
        () => messages().length >= expected.length,
        `${JSON.stringify(expected)} (${JSON.stringify(stream.text)})`,
      )
      t.same(messages(), expected)
    }
    t.notMatch(stream.text, /^(?:id|retry):/m)
    stream.leave()
    await until(() => server.abandoned.length === 1, 'the end of the stream at the server')
    t.equal(server.of('notifications/cancelled').length, 0)
  },
)

t.test('a client that disconnects before the answer is disconnected at the server, too', async (t) => {
  const { url, server } = await betweenModern(t, () => {})
  const leaving = new AbortController()
  const gone = t.rejects(call(url, 'tools/call', { name: 'x' }, { signal: leaving.signal }))
  await until(() => server.of('tools/call').length === 1)
  leaving.abort()
  await gone
  await until(() => server.abandoned.length === 1)
})

t.test('another bridge may answer a question of the server', async (t) => {
  const modern = await ModernHttp.start(t)
  const [first, second] = [await startBridge(t, { url: modern.url }), await startBridge(t, { url: modern.url })]
  await Promise.all([first.bridge.server.warmUp(), second.bridge.server.warmUp()])
  const meta = { 'io.modelcontextprotocol/clientCapabilities': { elicitation: {} } }
  const asked = await call(first.url, 'tools/call', { name: 'ask-name', arguments: {} }, { meta })
  const { resultType, requestState } = asked.message.result as Json
  t.equal(resultType, 'input_required')
  const inputResponses = { name: { action: 'accept', content: { name: 'Ada' } } }
  const params = { name: 'ask-name', arguments: {}, requestState, inputResponses }
  const answered = await call(second.url, 'tools/call', params, { id: 2, meta })
  t.match(answered.message.result, { resultType: 'complete', structuredContent: inputResponses })
  const sent = modern.of('tools/call').map(({ message }) => (message?.['params'] as Json)['requestState'])
  t.same(sent, [undefined, requestState])
  t.same(modern.violations(), [])
})

t.test('a status that HTTP does not have is an error of the server, and its client gets an answer', async (t) => {
  const { url } = await betweenModern(t, (_arrival, response) => sendText(response, '{}', {}, 799))
  const answer = await call(url, 'tools/call', { name: 'x' }, { id: 7 })
  t.match(answer, { status: 200, message: { id: 7, error: { code: -32603, data: { outcome: 'unknown' } } } })
})

t.test('the address of a server of the same era may have a trailing slash', async (t) => {
  const { url, last } = await betweenModern(t, (_arrival, response) =>
    sendText(response, '{"jsonrpc":"2.0","id":1,"result":{"ok":true}}'),
  )
  t.match(await call(`${url}/`, 'tools/call', { name: 'x' }), { status: 200, message: { result: { ok: true } } })
  t.equal(last().path, '/mcp')
})

t.test('reports an error on the way under the id of the request', async (t) => {
  let sever = (response: ServerResponse) => {
    response.destroy()
  }
  const { url } = await betweenModern(t, (_arrival, response) => sever(response))
  for (const id of [0, '', '7', 7, 'ü']) {
    const answer = await call(url, 'tools/call', { name: 'x' }, { id })
    const error = { code: -32603, data: { outcome: 'unknown' } }
    t.match(answer, { status: 200, message: { id, error } }, JSON.stringify(id))
    t.equal(answer.headers['mcp-bridge-error'], 'upstream_closed')
  }
  sever = (response) => {
    response.writeHead(401).end()
  }
  t.match(await call(url, 'tools/call', { name: 'x' }, { id: 'a' }), { status: 502, message: { id: 'a', error: {} } })
  const unreadable = await post(url, '{', headersFor('tools/list'))
  t.equal(unreadable.status, 400)
  t.notOk('id' in unreadable.message)

  const busy = await betweenModern(t, () => {}, { limits: { calls: 1 } })
  const leaving = new AbortController()
  const waiting = t.rejects(call(busy.url, 'tools/call', { name: 'x' }, { signal: leaving.signal }))
  await until(() => busy.server.of('tools/call').length === 1)
  t.match(await call(busy.url, 'tools/list', {}, { id: 'b' }), { status: 503, message: { id: 'b', error: {} } })
  leaving.abort()
  await waiting
})

t.test('a partly read refusal ends neither the bridge nor later requests', async (t) => {
  const page = `<html>${'no '.repeat(100_000)}</html>`
  const { url, log } = await betweenModern(t, (_arrival, response) => {
    response.writeHead(400, { 'content-type': 'text/html' }).end(page)
  })
  const params = { name: 'echo', arguments: {} }
  for (let n = 0; n < 3; n++) {
    const refused = await call(url, 'tools/call', params)
    t.match(refused.message, { id: 1, error: { code: -32603 } })
    t.notMatch(refused.text, 'no no no')
  }
  t.same(
    log.filter(({ level }) => Number(level) >= 50),
    [],
  )
})

t.test('passes on a session of the server in the same way', async (t) => {
  let sever = (response: ServerResponse) => {
    response.destroy()
  }
  const { url } = await betweenLegacy(t, (_arrival, response) => sever(response))
  const ping = '{"jsonrpc":"2.0","id":"p","method":"ping"}'
  const headers = { ...BOTH, 'mcp-session-id': SESSION }
  t.match(await post(url, ping, headers), { status: 200, message: { id: 'p', error: { code: -32603 } } })
  sever = (response) => {
    response.writeHead(403).end()
  }
  t.match(await post(url, ping, headers), { status: 200, message: { id: 'p', error: { code: -32603 } } })
})

const SESSION = 'the server’s own ~ id'.replace('’', "'").replaceAll(' ', '_')

t.test("a session is the server's: its id, its bytes and its errors pass unchanged", async (t) => {
  const opened = `{"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"n","version":"1"},"x":1.0},\n"id":"hello","jsonrpc":"2.0"}`
  const result = `{"jsonrpc":"2.0","id":1,"result":{"content":[],"structuredContent":${ODD}} }`
  const gone = '{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}'
  let expired = false
  const { server, url, last } = await betweenLegacy(t, ({ method, message }, response) => {
    if (message?.['method'] === 'initialize') return sendText(response, opened, { 'mcp-session-id': SESSION })
    if (expired) return sendText(response, gone, { 'x-vendor': 'v' }, 404)
    if (method === 'DELETE') return response.writeHead(204).end()
    if (message?.['id'] === undefined) return response.writeHead(202).end()
    sendText(response, result, { 'x-vendor': 'v' })
  })
  const opening = initialize('2025-11-25').replace('"jsonrpc"', '\n "jsonrpc"')
  const answer = await post(url, opening, BOTH)
  t.equal(answer.text, opened)
  t.equal(answer.headers['mcp-session-id'], SESSION)
  t.ok(last().bytes.equals(Buffer.from(opening)))
  t.notOk('mcp-session-id' in last().headers || 'mcp-protocol-version' in last().headers)

  const headers = { ...BOTH, 'mcp-session-id': SESSION, 'mcp-protocol-version': '2025-06-18' }
  t.equal((await post(url, '{"method":"notifications/initialized","jsonrpc":"2.0"}', headers)).status, 202)
  t.equal(last().headers['mcp-session-id'], SESSION)
  const body = `{"jsonrpc":"2.0",  "id":1,"method":"tools/call","params":{"name":"x","arguments":${ODD},"_meta":{"progressToken":1.0}}}`
  const called = await post(url, body, headers)
  t.equal(called.text, result)
  t.equal(called.headers['x-vendor'], 'v')
  t.ok(last().bytes.equals(Buffer.from(body)))
  t.equal(last().headers['mcp-protocol-version'], '2025-06-18')
  await post(url, body, { ...headers, 'mcp-protocol-version': undefined })
  t.notOk('mcp-protocol-version' in last().headers, 'what was not there is not added')

  expired = true
  const refused = await post(url, body, headers)
  t.same([refused.status, refused.text, refused.headers['x-vendor']], [404, gone, 'v'])
  t.equal(server.of('initialize').length, 1, 'and nobody has initialized behind the client’s back')
})

t.test('passes on streams byte for byte: ids, retry times, events without data, and all line ends', async (t) => {
  const priming = 'id: 1_a/0\nretry: 500\ndata: \n\n'
  const text = `${priming}: ping\r\n\r\nevent: message\rdata: {"jsonrpc":"2.0","method":"x","params":${ODD}}\r\rid:1_a/1\ndata: {"jsonrpc":"2.0",\ndata: "id":1,"result":{}}\n\n`
  const { server, url, last } = await betweenLegacy(t, ({ method, message, headers }, response) => {
    if (message?.['method'] === 'initialize')
      return sendText(response, initializeResult('2025-11-25'), { 'mcp-session-id': SESSION })
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    if (method === 'POST') response.end(text)
    else response.write(headers['last-event-id'] === undefined ? priming : 'data: {"resumed":1}\n\n')
  })
  await post(url, initialize('2025-11-25'), BOTH)
  const headers = { ...BOTH, 'mcp-session-id': SESSION, 'mcp-protocol-version': '2025-11-25' }
  const posted = await openStream('POST', url, headers, '{"jsonrpc":"2.0","id":1,"method":"tools/list"}')
  await posted.ended()
  t.equal(posted.text, text)
  const listening = await openStream('GET', url, { ...headers, 'content-type': undefined })
  await until(() => listening.text === priming)
  t.equal(last().method, 'GET')
  const resumed = await openStream('GET', url, { ...headers, 'content-type': undefined, 'last-event-id': '1_a/0' })
  await until(() => resumed.text === 'data: {"resumed":1}\n\n')
  t.equal(last().headers['last-event-id'], '1_a/0')
  listening.leave()
  resumed.leave()
  await until(() => server.abandoned.length === 2, 'the end of both streams at the server')
  t.equal(server.of('notifications/cancelled').length, 0, 'who leaves has not cancelled')
})

t.test("the client's own message cancels a call, under its own id", async (t) => {
  const { server, url, last } = await betweenLegacy(t, ({ message }, response) => {
    if (message?.['method'] === 'initialize')
      return sendText(response, initializeResult('2025-06-18'), { 'mcp-session-id': SESSION })
    if (message?.['id'] === undefined) return response.writeHead(202).end()
  })
  await post(url, initialize('2025-06-18'), BOTH)
  const headers = { ...BOTH, 'mcp-session-id': SESSION }
  const leaving = new AbortController()
  const body = '{"jsonrpc":"2.0","id":"my id","method":"tools/call","params":{"name":"x"}}'
  const gone = t.rejects(send('POST', url, body, headers, leaving.signal))
  await until(() => server.of('tools/call').length === 1)
  const cancelled = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"my id"}}'
  t.equal((await post(url, cancelled, headers)).status, 202)
  t.equal(last().bytes.toString(), cancelled)
  leaving.abort()
  await gone
  await until(() => server.abandoned.length === 1)
})

t.test('a server without sessions has clients with sessions, which it does not see', async (t) => {
  const { server, url, last } = await betweenLegacy(t, ({ message }, response) => {
    if (message?.['method'] === 'initialize') return sendText(response, initializeResult('2025-06-18'))
    sendText(response, '{"jsonrpc":"2.0","id":1,"result":{}}')
  })
  const { headers } = await post(url, initialize('2025-06-18'), BOTH)
  const id = String(headers['mcp-session-id'])
  t.match(id, /^[\x21-\x7e]{16,}$/)
  t.equal((await post(url, '{"jsonrpc":"2.0","id":1,"method":"ping"}', { ...BOTH, 'mcp-session-id': id })).status, 200)
  t.notOk('mcp-session-id' in last().headers)
  const before = server.received.length
  t.equal((await send('DELETE', url, undefined, { 'mcp-session-id': id })).status, 200)
  t.equal(server.received.length, before)
})

t.test('a session unknown to a restarted bridge continues without authentication, and not with it', async (t) => {
  const answer = (_arrival: Arrival, response: ServerResponse) =>
    sendText(response, '{"jsonrpc":"2.0","id":1,"result":{}}')
  const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
  const open = await betweenLegacy(t, answer)
  t.equal((await post(open.url, ping, { ...BOTH, 'mcp-session-id': 'from before' })).status, 200)
  t.equal(open.last().headers['mcp-session-id'], 'from before')
  const token = 'alice-0123456789abcdef'
  const closed = await betweenLegacy(t, answer, { auth: { tokens: { alice: token } } })
  const before = closed.server.received.length
  const headers = { ...BOTH, 'mcp-session-id': 'from before', authorization: `Bearer ${token}` }
  t.match(await post(closed.url, ping, headers), { status: 404, message: { error: { code: -32600 } } })
  t.equal(closed.server.received.length, before)
})

t.test('refuses an array in a session of the server if its revision has none', async (t) => {
  for (const revision of ['2025-03-26', '2025-06-18', '2025-11-25']) {
    const { server, url } = await betweenLegacy(t, ({ message }, response) => {
      if (message?.['method'] === 'initialize')
        return sendText(response, initializeResult(revision), { 'mcp-session-id': SESSION })
      sendText(response, '[]')
    })
    await post(url, initialize(revision), BOTH)
    const before = server.received.length
    const version = revision === '2025-03-26' ? {} : { 'mcp-protocol-version': revision }
    const headers = { ...BOTH, ...version, 'mcp-session-id': SESSION }
    const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
    const refused = ['[]', `[${ping},${initialize(revision)}]`, ...(revision === '2025-03-26' ? [] : [`[${ping}]`])]
    for (const batch of refused) {
      const answer = await post(url, batch, headers)
      t.match({ status: answer.status, code: answer.message.error?.code }, { status: 400, code: -32600 }, revision)
      t.notMatch(answer.text, /"id"/)
    }
    t.equal(server.received.length, before, revision)
  }
})

t.test('passes on an array in a session of the server if its revision has them', async (t) => {
  const { url, last } = await betweenLegacy(t, ({ message }, response) => {
    if (message?.['method'] === 'initialize')
      return sendText(response, initializeResult('2025-03-26'), { 'mcp-session-id': SESSION })
    sendText(response, '[ {"jsonrpc":"2.0","id":1,"result":{}}]')
  })
  await post(url, initialize('2025-03-26'), BOTH)
  const batch = '[ {"jsonrpc":"2.0","id":1,"method":"ping"} ]'
  const answer = await textOf(url, batch, { ...BOTH, 'mcp-session-id': SESSION })
  t.equal(answer.text, '[ {"jsonrpc":"2.0","id":1,"result":{}}]')
  t.equal(last().bytes.toString(), batch)
})

function initializeResult(revision: string): string {
  const result = { protocolVersion: revision, capabilities: { tools: {} }, serverInfo: { name: 'n', version: '1' } }
  return JSON.stringify({ jsonrpc: '2.0', id: 'hello', result })
}

/** Posts, and gives what came to the letter, whatever it is. */
async function textOf(url: string, body: string, headers: Record<string, string>) {
  const stream = await openStream('POST', url, headers, body)
  await stream.ended()
  return stream
}

const LARGE = 100 * 1024

const NOTED: [what: string, status: number, type: string | undefined, body: string][] = [
  ['null', 200, 'application/json', 'null'],
  ['an object', 200, 'application/json', '{"status":"ok"}'],
  ['an empty object', 200, 'application/json', ' {}'],
  ['an empty array', 200, 'application/json', '[]'],
  ['an array without a message', 200, 'application/json', '[null,{},[],{"id":1}]'],
  ['a string', 200, 'application/json', '"Accepted"'],
  ['true', 200, 'application/json', 'true'],
  ['half of a message', 200, 'application/json', '{"jsonrpc":'],
  ['a page', 200, 'text/html', '<p>OK</p>'],
  ['text', 202, 'text/plain', 'Accepted'],
  ['nothing', 200, 'application/json', ''],
  ['nothing without a type', 204, undefined, ''],
  ['white space', 200, 'application/json', ' \r\n\t '],
  ['a byte order mark', 200, 'application/json', '\ufeff'],
  ['a large page', 200, 'text/html', `<p>${'OK'.repeat(LARGE)}</p>`],
  ['a large object', 200, 'application/json', `{"status":"${'ok'.repeat(LARGE)}"}`],
  ['a large echo', 200, 'application/json', `{"got":{"jsonrpc":"2.0","method":"${'m'.repeat(LARGE)}"}}`],
  ['a large array', 200, 'application/json', `[${'{},'.repeat(LARGE)}{}]`],
  ['an object with a large gap', 200, 'application/json', `{"id":${' '.repeat(LARGE)}1}`],
  ['much white space', 200, 'application/json', ' '.repeat(LARGE)],
  ['a stream without an event', 200, 'text/event-stream', ''],
  ['a stream of comments', 200, 'text/event-stream', ': ping\n\n: ping\n\n'],
  ['a stream of empty events', 200, 'text/event-stream', 'id: 1\nretry: 500\ndata: \n\nevent: ping\n\n'],
  ['a stream without a message', 200, 'text/event-stream', 'data: null\n\ndata: [DONE]\n\ndata: {}\n\n'],
  ['a stream that ends in an event', 200, 'text/event-stream', 'data: {"jsonrpc":"2.0"'],
]

/** A bridge in front of a modern and of a legacy server, which say `answer` to notifications; sends them one through each. */
async function betweenBoth(t: Test, answer: (arrival: Arrival, response: ServerResponse) => void) {
  const opened = { protocolVersion: '2025-03-26', capabilities: {}, serverInfo: { name: 's', version: '1' } }
  const orOpen = (arrival: Arrival, response: ServerResponse) => {
    const { message } = arrival
    if (message?.['method'] !== 'initialize') return answer(arrival, response)
    const text = JSON.stringify({ jsonrpc: '2.0', id: message['id'], result: opened })
    sendText(response, text, { 'mcp-session-id': SESSION })
  }
  const modern = await betweenModern(t, orOpen)
  const legacy = await betweenLegacy(t, orOpen)
  await post(legacy.url, initialize('2025-03-26'), BOTH)
  const inSession = { ...BOTH, 'mcp-session-id': SESSION }
  const cancelled = (params: Json) => JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params })
  const toLegacy = (body: string) => post(legacy.url, body, inSession)
  const toModern = (body: string) => post(modern.url, body, headersFor('notifications/cancelled'))
  return {
    modern,
    toLegacy,
    /** What each kind of message is answered with that needs no answer. */
    all: async () => ({
      notification: await toLegacy(cancelled({ requestId: 7 })),
      answer: await toLegacy('{"jsonrpc":"2.0","id":7,"result":{}}'),
      batch: await toLegacy(`[${cancelled({ requestId: 7 })},{"jsonrpc":"2.0","id":7,"result":{}}]`),
      modern: await toModern(cancelled({ requestId: 7, _meta: envelope() })),
    }),
  }
}

t.test('whatever a server answers to a notification in place of a message, its client gets 202', async (t) => {
  let row = NOTED[0] as (typeof NOTED)[number]
  const { all } = await betweenBoth(t, (_arrival, response) => {
    const [, status, type, body] = row
    response.writeHead(status, type === undefined ? {} : { 'content-type': type }).end(body)
  })
  for (row of NOTED)
    for (const [kind, { status, text, headers }] of Object.entries(await all()))
      t.same([status, text, headers['content-type']], [202, '', undefined], `${row[0]}: ${kind}`)
})

t.test('passes on messages in the answer to a notification, also large ones and those of a stream', async (t) => {
  const told = (text: string) =>
    JSON.stringify({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: text } })
  const large = 'x'.repeat(LARGE)
  let body = ''
  let type = ''
  const { all } = await betweenBoth(t, (_arrival, response) =>
    response.writeHead(200, { 'content-type': type }).end(body),
  )
  const bodies: [string, string][] = [
    ['application/json', told('small')],
    ['application/json', `[${told('one')}]`],
    ['application/json', told(large)],
    ['application/json', ` [ ${told(large)}, ${told(large)}]`],
    ['application/json', `{"id" : null, "jsonrpc":"2.0","error":{"code":-32600,"message":"${large}"}}`],
    ['text/event-stream', `: hello\n\ndata: null\n\ndata: ${told('one')}\n\ndata: ${told(large)}\n\n`],
    ['text/event-stream', `data: ${told(large)}\n\ndata: ${told('two')}\n\n`],
  ]
  for ([type, body] of bodies)
    for (const [kind, { status, text }] of Object.entries(await all())) {
      // The framing of events is the bridge's.
      t.ok(status === 200 && messagesIn(text) === messagesIn(body), `${kind}: ${body.slice(0, 60)}`)
    }
})

/** The messages in the events of a stream; any other text as it is. */
function messagesIn(text: string): string {
  if (!text.includes('data: ')) return text
  const lines = text.split('\n').filter((line) => line.startsWith('data: {'))
  return lines.join('\n')
}

t.test(
  'a modern notification passes unchanged, and its refusal and the end of its client too, whatever looks at it',
  async (t) => {
    const refusal = '{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"no"}}'
    const open: ServerResponse[] = []
    let answer: 'refuses' | 'fails' | 'stays open' = 'refuses'
    const answers = (_arrival: Arrival, response: ServerResponse) => {
      if (answer === 'refuses') return sendText(response, refusal, {}, 400)
      if (answer === 'fails') return void response.writeHead(500, { 'content-type': 'text/html' }).end('<p>no</p>')
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write(': hello\n\n')
      open.push(response)
    }
    const looking = [
      {},
      { audit: { file: join(temporaryFolder(t), 'audit.log') } },
      { limits: { tools: [{ tools: '*', per: 'principal', max: 1_000_000, every: '1h' }] } },
    ]
    for (const settings of looking) {
      const { url, last } = await betweenModern(t, answers, settings)
      const body = `  {"method":"notifications/vendor" ,"params":{"x":${ODD},"_meta":${JSON.stringify(envelope())}},"jsonrpc":"2.0"}\n`
      const headers = {
        ...headersFor('notifications/vendor'),
        traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`,
      }
      answer = 'refuses'
      const refused = await post(url, body, headers)
      t.same([refused.status, refused.text], [400, refusal])
      t.equal(last().bytes.toString(), body)
      t.equal(last().headers['traceparent'], headers.traceparent)
      answer = 'fails'
      t.equal((await post(url, body, headers)).status, 400)
      answer = 'stays open'
      const leaving = new AbortController()
      const leave = fetch(url, { method: 'POST', body, headers, signal: leaving.signal }).catch(() => {})
      await until(() => open.length === 1, 'the server has the notification')
      leaving.abort()
      await leave
      await until(() => open[0]?.destroyed === true, 'the server loses the connection, too')
      open.length = 0
    }
  },
)

t.test('passes on a stream that answers a notification and stays open without a message', async (t) => {
  const late = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
  const open: ServerResponse[] = []
  const answer = ({ message }: Arrival, response: ServerResponse) => {
    if (message?.['method'] === 'initialize')
      return sendText(response, initializeResult('2025-11-25'), { 'mcp-session-id': SESSION })
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write(': hello\n\n')
    open.push(response)
  }
  const { url } = await betweenLegacy(t, answer, { timeouts: { commitAfter: 50 } })
  await post(url, initialize('2025-11-25'), BOTH)
  const body = '{"jsonrpc":"2.0","method":"notifications/initialized"}'
  const stream = await openStream('POST', url, { ...BOTH, 'mcp-session-id': SESSION }, body)
  open[0]?.end(`data: ${late}\n\n`)
  await stream.ended()
  t.equal(stream.status, 200)
  t.match(stream.text, `data: ${late}\n\n`)
})

t.test('each request of a batch gets an error if the answer is no message', async (t) => {
  let [type, body] = ['application/json', 'null']
  const { toLegacy } = await betweenBoth(t, (_arrival, response) =>
    response.writeHead(200, { 'content-type': type }).end(body),
  )
  const batch = '[{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","id":1,"method":"ping"}]'
  const failed = { message: [{ id: 1, error: { data: { reason: 'upstream_protocol' } } }] }
  t.match(await toLegacy(batch), failed)
  ;[type, body] = ['text/html', '<p>OK</p>']
  t.match(await toLegacy(batch), failed)
})

t.test('refuses a modern request whose id it cannot read, and leaves a legacy one to the server', async (t) => {
  let [type, body] = ['application/json', '']
  const { toLegacy, modern } = await betweenBoth(t, (_arrival, response) =>
    response.writeHead(200, { 'content-type': type }).end(body),
  )
  const request = (id: string) =>
    `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"x","_meta":${JSON.stringify(envelope())}}}`
  const toModern = (text: string) => post(modern.url, text, headersFor('tools/call', { name: 'x' }))
  for (const id of [`"${'x'.repeat(300)}"`, '1.5', 'true', '{}', '1e400', '9'.repeat(70)]) {
    const about = id.slice(0, 10)
    const before = modern.server.received.length
    t.match(await toModern(request(id)), { status: 400, message: { error: { code: -32600 } } }, about)
    t.equal(modern.server.received.length, before, about)
    const ask = () => toLegacy(request(id).replace(/,"_meta":.*/, '}}'))
    ;[type, body] = ['application/json', `{"jsonrpc":"2.0","id":${id},"result":{}}`]
    t.match(await ask(), { status: 200, text: body }, about)
    ;[type, body] = ['text/event-stream', `data: ${body}\n\n`]
    t.match(await ask(), { status: 200, text: body }, `${about}, as an event`)
    ;[type, body] = ['text/html', '<p>OK</p>']
    t.match(await ask(), { message: { error: { data: { reason: 'upstream_protocol' } } } }, `${about}, a page`)
  }
})

const callOf = () =>
  JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'x', _meta: envelope() } })

/** Answers of 17 KiB with a string that is no JSON. */
for (const body of ['"result":{"\\q":1', '"error":{"code":"\\q"'])
  t.test(`an answer with an invalid string is an error of the server: ${body}`, async (t) => {
    const text = `{"jsonrpc":"2.0","id":1,${body},"x":"${'a'.repeat(17_000)}"}}`
    const { url } = await betweenModern(t, (_arrival, response) => sendText(response, text))
    for (let n = 0; n < 2; n++) {
      const answer = await call(url, 'tools/call', { name: 'x' })
      t.match(answer, { status: 200, message: { id: 1, error: { data: { reason: 'upstream_protocol' } } } })
    }
  })

t.test(
  'an event stream whose length the server gives keeps the connection in step, though events are added',
  async (t) => {
    const event = 'data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}\n\n'
    const { url } = await betweenModern(t, (_arrival, response) =>
      sendText(response, event, { 'content-type': 'text/event-stream', 'content-length': String(event.length) }),
    )
    const { headers, text } = await post(url, callOf(), headersFor('tools/call', { name: 'x' }))
    t.equal(headers['content-length'] ?? String(text.length), String(text.length))
    t.match(text, /"error"/, 'an error is added, because there was no answer')
  },
)

t.test('removes what `Connection` of an answer names, as its own', async (t) => {
  const { url } = await betweenModern(t, (_arrival, response) =>
    sendText(response, '{"jsonrpc":"2.0","id":1,"result":{}}', {
      connection: 'keep-alive, x-hop, content-type',
      'x-hop': '1',
      'x-kept': '1',
    }),
  )
  const { headers } = await post(url, callOf(), headersFor('tools/call', { name: 'x' }))
  t.notOk(headers['x-hop'])
  t.equal(headers['x-kept'], '1')
  t.match(headers['content-type'], /json/)
})
