/** Where a token is sent, and how requests with one are passed on. */
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { startBridge } from '../support/bridge.js'
import { openStream } from '../support/events.js'
import { until } from '../support/eventually.js'
import { temporaryFolder } from '../support/folder.js'
import { BOTH, initialize } from '../support/legacy-client.js'
import { call, envelope, headersFor, post, send } from '../support/modern.js'
import { type Arrival, PlainHttp, sendText } from '../support/plain-http.js'
import { ScriptedAs } from '../support/scripted-as.js'
import { personParts } from '../support/sign-in-parts.js'
import { storeToken } from '../support/stored-token.js'

const LEGACY = '2025-11-25'
const TOKEN = 'CANARY-of-this-server'
const DISCOVERED =
  '{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}'
const ODD = '{"n":12345678901234567890,"one":1.0,"b":1,"2":2,"e":"\\u00e9","dup":1,"dup":2,"__proto__":{"a":-0}}'

type Answer = (arrival: Arrival, response: ServerResponse) => void

/** A server of an era that says `answer` to everything but the probe. */
function serverOf(t: Test, era: 'legacy' | 'modern', answer: Answer): Promise<PlainHttp> {
  return PlainHttp.start(t, (arrival, response) => {
    const { message } = arrival
    if (message?.['method'] !== 'server/discover') return answer(arrival, response)
    const id = String(message['id'])
    if (era === 'modern') return sendText(response, `{"jsonrpc":"2.0","id":${id},"result":${DISCOVERED}}`)
    sendText(response, `{"jsonrpc":"2.0","id":${id},"error":{"code":-32601,"message":"no"}}`, {}, 404)
  })
}

/** A bridge that has a token for a server. */
async function withToken(
  t: Test,
  server: { url: string },
  entry: object = {},
  token: object = {},
  settings: object = {},
) {
  const folder = join(temporaryFolder(t), 'tokens')
  await storeToken(folder, server.url, { access: TOKEN, ...token })
  const { signIn, opened } = personParts(t, { folder })
  const started = await startBridge(t, { url: server.url, ...entry }, settings, { signIn })
  // A server that breaks a rule is not available.
  await started.bridge.server.warmUp().catch(() => {})
  return { ...started, opened }
}

const tokensAt = ({ received }: PlainHttp) => received.map(({ headers }) => headers.authorization)

for (const era of ['legacy', 'modern'] as const) {
  t.test(`a redirect of a ${era} server takes no token to another origin`, async (t) => {
    const elsewhere = await PlainHttp.start(t, (_arrival, response) => sendText(response, '{}'))
    for (const status of [301, 302, 303, 307, 308]) {
      const server = await serverOf(t, era, (_arrival, response) =>
        response.writeHead(status, { location: `${elsewhere.origin}/mcp` }).end(),
      )
      const { url } = await withToken(t, server)
      await call(url, 'tools/call', { name: 'x' })
      await post(url, initialize(LEGACY), BOTH)
      t.ok(tokensAt(server).includes(`Bearer ${TOKEN}`), `${status}: the server itself gets it`)
      t.same(elsewhere.received, [], `${status}: nobody goes there`)
    }
  })
}

t.test('an endpoint of HTTP+SSE on another origin gets no token', async (t) => {
  const elsewhere = await PlainHttp.start(t, (_arrival, response) => sendText(response, '{}', {}, 202))
  const server = await PlainHttp.start(t, ({ method }, response) => {
    if (method !== 'GET') return response.writeHead(405).end()
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(`event: endpoint\ndata: ${elsewhere.origin}/message\n\n`)
  })
  const { url } = await withToken(t, server, { type: 'sse', timeouts: { probe: 1_000, initialize: 1_000 } })
  const answer = await call(url, 'tools/call', { name: 'x' })
  t.ok(answer.message.error, answer.text)
  t.ok(tokensAt(server).every((sent) => sent === `Bearer ${TOKEN}`))
  t.same(elsewhere.received, [])
})

t.test('other paths of a server get no token', async (t) => {
  const server = await serverOf(t, 'modern', (_arrival, response) => sendText(response, '{}'))
  const { url } = await withToken(t, server, { paths: ['/files/*'] })
  t.equal((await send('GET', new URL('/files/a', url).href, undefined, {})).status, 200)
  const [arrival] = server.received.filter(({ path }) => path === '/files/a')
  t.ok(arrival)
  t.equal(arrival?.headers.authorization, undefined)
})

t.test('a token of one server goes to no other server of the bridge, and to no other path of its host', async (t) => {
  const server = await serverOf(t, 'modern', (_arrival, response) => sendText(response, '{}'))
  const other = await serverOf(t, 'modern', (_arrival, response) => sendText(response, '{}'))
  const folder = join(temporaryFolder(t), 'tokens')
  await storeToken(folder, server.url, { access: TOKEN })
  for (const url of [other.url, `${server.origin}/mcp/other`, `${server.origin}/other`]) {
    const { signIn } = personParts(t, { folder })
    const { url: at, bridge } = await startBridge(t, { url }, {}, { signIn })
    await bridge.server.warmUp()
    await call(at, 'tools/call', { name: 'x' })
  }
  t.ok(other.received.length > 0 && server.received.length > 0)
  t.same([...tokensAt(server), ...tokensAt(other)].filter(Boolean), [])
})

for (const era of ['legacy', 'modern'] as const) {
  t.test(`no answer has the 401 of a ${era} server, or its challenge`, async (t) => {
    const refuse: Answer = (_arrival, response) =>
      response.writeHead(401, { 'www-authenticate': 'Bearer realm="CANARY"' }).end('{"error":"CANARY"}')
    let isRefused = false
    const server = await serverOf(t, era, (arrival, response) => {
      if (isRefused || arrival.path.startsWith('/.well-known')) return refuse(arrival, response)
      const id = JSON.stringify(arrival.message?.['id'])
      const result =
        '{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"},"content":[]}'
      const session = era === 'legacy' ? { 'mcp-session-id': 'one' } : {}
      return sendText(response, `{"jsonrpc":"2.0","id":${id},"result":${result}}`, session)
    })
    const { url } = await withToken(t, server, { oauth: { wait: 100 } })
    const opened = await post(url, initialize(LEGACY), BOTH)
    const session = {
      ...BOTH,
      'mcp-protocol-version': LEGACY,
      'mcp-session-id': String(opened.headers['mcp-session-id']),
    }
    isRefused = true
    const legacyCall = '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x"}}'
    const answers = {
      'a call': await call(url, 'tools/call', { name: 'x' }),
      'a list': await call(url, 'tools/list'),
      discovery: await call(url, 'server/discover'),
      'a new session': await post(url, initialize(LEGACY), BOTH),
      'a call in a session': await post(url, legacyCall, session),
      'the end of a session': await send('DELETE', url, undefined, session),
    }
    for (const [what, { status, headers, text }] of Object.entries(answers)) {
      t.ok(status !== 401 && status !== 403, `${what}: ${status}`)
      t.equal(headers['www-authenticate'], undefined, what)
      t.notMatch(text, /CANARY/, what)
    }
  })
}

t.test('a modern request with a token arrives byte for byte, and so does its answer', async (t) => {
  const answer = `{"id":1,"result":{"structuredContent":${ODD},"resultType":"complete"} ,\n"jsonrpc":"2.0"}`
  const server = await serverOf(t, 'modern', (_arrival, response) => sendText(response, answer, { 'x-vendor': 'v' }))
  const { url, log } = await withToken(t, server)
  const meta = JSON.stringify(envelope())
  const body = `{"jsonrpc":"2.0","id":1.0e0,\r\n\t"method" : "tools/call", "params":{"name":"x","arguments":${ODD},"_meta":${meta}}}`
  const headers = { ...headersFor('tools/call', { name: 'x' }), authorization: 'Bearer of-the-client' }
  const came = await post(url, body, headers)
  const arrived = server.of('tools/call')
  t.equal(arrived.length, 1)
  t.ok(arrived[0]?.bytes.equals(Buffer.from(body)), 'the request')
  t.equal(arrived[0]?.headers.authorization, `Bearer ${TOKEN}`)
  t.equal(came.text, answer)
  t.match(came.headers, { 'x-vendor': 'v' })
  await until(() => log.some(({ event, method }) => event === 'call' && method === 'tools/call'))
})

t.test(
  'messages of a legacy session with a token arrive byte for byte, also with a new token after a 401',
  async (t) => {
    const as = await ScriptedAs.start(t)
    const good = new Set([`Bearer ${TOKEN}`])
    const says = (id: string) => `{"id":${id},"result":{"content":[],"odd":${ODD}} ,\n"jsonrpc":"2.0"}`
    const server = await serverOf(t, 'legacy', ({ headers, message, method, path }, response) => {
      if (path.startsWith('/.well-known/oauth-protected-resource'))
        return sendText(response, JSON.stringify({ resource: server.url, authorization_servers: [as.issuer] }))
      if (!good.has(headers.authorization ?? '')) return response.writeHead(401, { 'www-authenticate': 'Bearer' }).end()
      if (method === 'GET')
        return response
          .writeHead(200, { 'content-type': 'text/event-stream' })
          .write('id: 1\nevent: message\ndata: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n\n')
      if (message?.['method'] === 'initialize') {
        const result =
          '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}'
        return sendText(response, `{"jsonrpc":"2.0","id":${JSON.stringify(message['id'])},"result":${result}}`, {
          'mcp-session-id': 'one',
        })
      }
      if (message?.['id'] === undefined) return response.writeHead(202).end()
      sendText(response, says(JSON.stringify(message['id'])))
    })
    const { url, opened: windows } = await withToken(
      t,
      server,
      {},
      { issuer: as.issuer, resource: server.url, refresh: 'CANARY-refresh-0' },
    )
    const opened = await post(url, initialize(LEGACY), BOTH)
    const headers = {
      ...BOTH,
      'mcp-protocol-version': LEGACY,
      'mcp-session-id': String(opened.headers['mcp-session-id']),
    }
    const ask = async (id: number) => {
      const body = `{"jsonrpc":"2.0", "id":${id},"method":"tools/call","params":{"name":"x","arguments":${ODD}}}\n`
      const came = await post(url, body, headers)
      t.equal(came.text, says(String(id)))
      return { arrived: server.of('tools/call').filter(({ message }) => message?.['id'] === id), body }
    }
    const first = await ask(2)
    t.equal(first.arrived.length, 1)
    t.ok(first.arrived[0]?.bytes.equals(Buffer.from(first.body)))
    good.clear()
    good.add(`Bearer CANARY-access-1-of-${new URL(as.origin).port}`)
    const second = await ask(3)
    t.equal(second.arrived.length, 2, 'once refused, and once more')
    for (const { bytes } of second.arrived) t.ok(bytes.equals(Buffer.from(second.body)))
    t.same(
      second.arrived.map(({ headers }) => headers.authorization),
      [`Bearer ${TOKEN}`, [...good][0]],
    )
    const stream = await openStream('GET', url, headers)
    await until(() => stream.messages.length > 0, 'a message on the stream of the session')
    t.match(stream.messages, [{ method: 'notifications/tools/list_changed' }])
    t.equal((await send('DELETE', url, undefined, headers)).status, 202)
    t.equal(server.received.at(-1)?.headers.authorization, [...good][0], 'the session ends with the new token')
    t.same(windows, [], 'nobody was asked to sign in')
  },
)

/** A call in a direct session, for which the bridge waits for a token that the authorization server holds back. */
async function waitingForToken(t: Test, settings: object = {}) {
  let release = () => {}
  const hold = new Promise<void>((resolve) => {
    release = resolve
  })
  const as = await ScriptedAs.start(t, { hold })
  t.teardown(release)
  const server = await serverOf(t, 'legacy', ({ message, path }, response) => {
    if (path.startsWith('/.well-known/oauth-protected-resource'))
      return sendText(response, JSON.stringify({ resource: server.url, authorization_servers: [as.issuer] }))
    if (message?.['method'] === 'tools/call') return response.writeHead(401, { 'www-authenticate': 'Bearer' }).end()
    const result =
      '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}'
    const id = JSON.stringify(message?.['id'] ?? null)
    sendText(response, `{"jsonrpc":"2.0","id":${id},"result":${result}}`, { 'mcp-session-id': 'one' })
  })
  const token = { issuer: as.issuer, resource: server.url, refresh: 'CANARY-refresh-0' }
  const started = await withToken(t, server, {}, token, settings)
  await post(started.url, initialize(LEGACY), BOTH)
  const headers = { ...BOTH, 'mcp-protocol-version': LEGACY, 'mcp-session-id': 'one' }
  const leaving = new AbortController()
  const request = (id: number, method: string, signal?: AbortSignal) =>
    send(
      'POST',
      started.url,
      `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":{"name":"x"}}`,
      headers,
      signal,
    )
  const answer = request(7, 'tools/call', leaving.signal)
  await until(() => as.of('/token').length === 1, 'the request for a token')
  const ends = () => started.log.filter(({ event, method }) => event === 'call' && method === 'tools/call')
  return { ...started, server, answer, leaving, ends, release, request }
}

t.test(
  'a call in a direct session whose client leaves while the bridge waits for a token ends, and is not sent again',
  async (t) => {
    const { server, answer, leaving, ends, release, request } = await waitingForToken(t)
    const gone = t.rejects(answer)
    leaving.abort()
    await gone
    await until(() => ends().length === 1, 'the end of the call')
    t.match(ends(), [{ outcome: 'cancelled' }])
    release()
    t.equal((await request(8, 'tools/list')).status, 200)
    t.equal(server.of('tools/call').length, 1)
  },
)

t.test('a call in a direct session that waits for a token is answered when the bridge shuts down', async (t) => {
  const { bridge, answer, ends } = await waitingForToken(t, { timeouts: { drainTimeout: 100 } })
  const closed = bridge.close()
  t.match(await answer, { status: 200, message: { id: 7, error: { code: -32603, data: { outcome: 'unknown' } } } })
  await closed
  t.match(ends(), [{ outcome: 'fault', fault: 'interrupted' }])
})
