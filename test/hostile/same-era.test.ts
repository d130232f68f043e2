/** What passes between peers of one era while the server changes, redirects or fails, and when the bridge is stopped. */
import type { ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { Metrics } from '../../src/services/telemetry/metrics.js'
import { startBridge } from '../support/bridge.js'
import { openStream } from '../support/events.js'
import { until } from '../support/eventually.js'
import { BOTH, initialize, LegacyClient } from '../support/legacy-client.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { call, post } from '../support/modern.js'
import { ModernHttp } from '../support/modern-http.js'
import { type Arrival, PlainHttp, sendText } from '../support/plain-http.js'
import { SseClient } from '../support/sse-client.js'

/** A server that speaks one era at a time, as one does that is replaced by another version of itself. */
async function changing(t: Test, era: 'modern' | 'legacy') {
  const state = { era, sessions: new Set<unknown>(), called: [] as string[] }
  const say = (response: ServerResponse, id: unknown, answer: object, status = 200, headers = {}) =>
    sendText(response, JSON.stringify({ jsonrpc: '2.0', id, ...answer }), headers, status)
  const modern = ({ message, headers }: Arrival, response: ServerResponse) => {
    const id = message?.['id']
    if (headers['mcp-protocol-version'] !== '2026-07-28' || headers['mcp-method'] === undefined)
      return say(response, id, { error: { code: -32022, message: 'x', data: { supported: ['2026-07-28'] } } }, 400)
    const own = { resultType: 'complete', ttlMs: 0, cacheScope: 'private' }
    const discovered = { supportedVersions: ['2026-07-28'], capabilities: { tools: {} }, ...own }
    if (message?.['method'] === 'server/discover') return say(response, id, { result: discovered })
    if (message?.['method'] === 'tools/call') state.called.push('modern')
    say(response, id, { result: { content: [{ type: 'text', text: 'modern' }], ...own } })
  }
  const legacy = ({ message, headers }: Arrival, response: ServerResponse) => {
    const id = message?.['id']
    const session = headers['mcp-session-id']
    if (message?.['method'] === 'initialize') {
      const opened = `session-${state.sessions.size}`
      state.sessions.add(opened)
      const result = {
        protocolVersion: '2025-11-25',
        capabilities: { tools: {} },
        serverInfo: { name: 'n', version: '1' },
      }
      return say(response, id, { result }, 200, { 'mcp-session-id': opened })
    }
    if (!state.sessions.has(session))
      return say(response, null, { error: { code: -32000, message: 'Bad Request: No valid session ID provided' } }, 400)
    if (id === undefined) return response.writeHead(202).end()
    if (message?.['method'] === 'tools/call') state.called.push('legacy')
    say(response, id, { result: { content: [{ type: 'text', text: 'legacy' }] } })
  }
  const server = await PlainHttp.start(t, (arrival, response) => {
    if (arrival.method !== 'POST') response.writeHead(405).end()
    else (state.era === 'modern' ? modern : legacy)(arrival, response)
  })
  const started = await startBridge(t, { url: server.url })
  await started.bridge.server.warmUp()
  return { state, server, ...started }
}

const text = (said: string) => ({ status: 200, message: { result: { content: [{ text: said }] } } })

t.test('the first call notices that a modern server has become legacy', async (t) => {
  const { state, url, log } = await changing(t, 'modern')
  const params = { name: 'x', arguments: {} }
  t.match(await call(url, 'tools/call', params), text('modern'))
  state.era = 'legacy'
  t.match(await call(url, 'tools/call', params), text('legacy'))
  t.match(await call(url, 'tools/call', params), text('legacy'))
  t.same(state.called, ['modern', 'legacy', 'legacy'], 'and nothing was done twice')
  const lines = log.filter(({ event, method }) => event === 'call' && method === 'tools/call')
  t.same(
    lines.map(({ serverEra }) => serverEra),
    ['modern', 'legacy', 'legacy'],
    'each call has one line',
  )
})

t.test('the next message of a client notices that a legacy server has become modern', async (t) => {
  const { state, url } = await changing(t, 'legacy')
  const client = await LegacyClient.open(url)
  t.match(await client.call('x'), text('legacy'))
  state.era = 'modern'
  const gone = await client.call('x')
  t.match(gone, { status: 404, message: { error: { code: -32600 } } }, 'which is how a client learns to connect again')
  const again = await LegacyClient.open(url)
  t.equal(again.opened.status, 200)
  t.match(await again.call('x'), text('modern'))
})

t.test('answers a legacy client at once that comes first after the change', async (t) => {
  const { state, url } = await changing(t, 'legacy')
  await LegacyClient.open(url)
  state.era = 'modern'
  const client = await LegacyClient.open(url)
  t.match(await client.call('x'), text('modern'))
})

t.test('does not pass on a redirect, whatever was requested', async (t) => {
  let redirects = false
  const server = await LegacyHttp.start(t, {
    override: (_received, response) => {
      if (redirects) response.writeHead(307, { location: 'http://node-7.internal/mcp?key=1' }).end('moved')
      return redirects
    },
  })
  const { url, bridge, log } = await startBridge(t, { url: server.url })
  await bridge.server.warmUp()
  const client = await LegacyClient.open(url)
  redirects = true
  const { 'content-type': _type, ...headers } = client.headers as Record<string, string>
  const answers = [
    await client.call('x'),
    await client.notify('notifications/x'),
    await post(url, initialize('2025-11-25'), BOTH),
  ]
  const stream = await openStream('GET', url, headers)
  await stream.ended()
  t.same(
    [...answers, stream].map(({ status }) => status),
    [200, 502, 200, 502],
    'calls of legacy clients have their errors in the body',
  )
  for (const { text, headers } of [...answers, stream]) {
    t.notMatch(text + JSON.stringify(headers), /internal/)
    t.match(JSON.parse(text), { error: { data: { reason: 'upstream_refused' } } })
  }
  await until(() => log.some(({ said }) => said === 'Location: http://node-7.internal/mcp'), 'where to in the log')
  t.notMatch(JSON.stringify(log), /key=1/)
})

t.test('a web page of a server is not an answer, and its address is shown to nobody', async (t) => {
  const page = '<html><body>node-7.internal</body></html>'
  const server = await LegacyHttp.start(t, {
    override: ({ method, message }, response) => {
      if (method === 'POST' && message['method'] !== 'tools/call') return false
      response.writeHead(200, { 'content-type': 'text/html' }).end(page)
      return true
    },
  })
  const { url, bridge } = await startBridge(t, { url: server.url })
  await bridge.server.warmUp()
  const client = await LegacyClient.open(url)
  const called = await client.call('x')
  t.match(called, {
    status: 200,
    message: { error: { data: { reason: 'upstream_protocol_error', outcome: 'unknown' } } },
  })
  const { 'content-type': _type, ...headers } = client.headers as Record<string, string>
  const stream = await openStream('GET', url, headers)
  await stream.ended()
  t.equal(stream.status, 405)
  for (const { text } of [called, stream]) t.notMatch(text, /internal/)
})

t.test('calls of every kind that do not end in time get the documented error when the bridge stops', async (t) => {
  const draining = { error: { code: -32603, data: { reason: 'draining', outcome: 'unknown' } } }
  const waiting = { name: 'wait', arguments: { ms: 60_000 } }
  const arrived = (program: ReturnType<typeof legacyStdio>) =>
    until(() => program.messages().some(({ method }) => method === 'tools/call'), 'the call at the server')

  const modernHttp = await ModernHttp.start(t)
  const silent = await LegacyHttp.start(t)
  const speaking = await LegacyHttp.start(t, { streams: true })
  const lanes: Record<
    string,
    () => Promise<{ bridge: Awaited<ReturnType<typeof startBridge>>; answer: Promise<object> }>
  > = {
    'a modern call that passes unchanged': async () => {
      const bridge = await startBridge(t, { url: modernHttp.url })
      await bridge.bridge.server.warmUp()
      const answer = call(bridge.url, 'tools/call', waiting)
      await until(() => modernHttp.of('tools/call').length === 1)
      return { bridge, answer: answer.then(({ message }) => message) }
    },
    'a legacy call in a direct session': async () => {
      const bridge = await startBridge(t, { url: silent.url })
      const client = await LegacyClient.open(bridge.url)
      const answer = client.request('tools/call', waiting)
      await until(() => silent.of('tools/call').length === 1)
      return { bridge, answer: answer.then(({ message }) => message) }
    },
    'one whose stream has begun': async () => {
      const bridge = await startBridge(t, { url: speaking.url })
      const client = await LegacyClient.open(bridge.url)
      const stream = await client.stream(
        'tools/call',
        { name: 'progress', arguments: { ms: 60_000 } },
        { id: 'p', meta: { progressToken: 1 } },
      )
      await until(() => stream.messages.length === 5, 'the progress')
      return { bridge, answer: stream.ended().then(() => stream.answer('p') ?? {}) }
    },
    'a call in a session of the server’s own': async () => {
      const program = legacyStdio(t)
      const bridge = await startBridge(t, program.server)
      const client = await LegacyClient.open(bridge.url)
      const answer = client.request('tools/call', waiting)
      await arrived(program)
      return { bridge, answer: answer.then(({ message }) => message) }
    },
    'the same over HTTP+SSE': async () => {
      const program = legacyStdio(t)
      const bridge = await startBridge(t, program.server)
      const client = await SseClient.open(bridge.url, '2024-11-05')
      const answer = client.request('tools/call', waiting, 'q')
      await arrived(program)
      return { bridge, answer }
    },
  }
  for (const [name, begin] of Object.entries(lanes)) {
    const { bridge, answer } = await begin()
    const [said] = await Promise.all([answer, bridge.bridge.close()])
    t.match(said, draining, name)
    t.ok(
      bridge.log.some(({ event, fault }) => event === 'call' && fault === 'interrupted'),
      `${name}: as its line says`,
    )
  }
})

t.test('does not forward a session id that a client sends with initialize', async (t) => {
  const server = await LegacyHttp.start(t)
  const { url, bridge } = await startBridge(t, { url: server.url })
  await bridge.server.warmUp()
  for (const id of ['session-of-somebody-else', 'not one at all'.replaceAll(' ', '-')]) {
    const opened = await post(url, initialize('2025-11-25'), { ...BOTH, 'mcp-session-id': id, 'last-event-id': '3' })
    t.equal(opened.status, 200)
    t.not(opened.headers['mcp-session-id'], id)
    const arrived = server.of('initialize').at(-1)
    t.notOk('mcp-session-id' in (arrived?.headers ?? {}))
    t.notOk('last-event-id' in (arrived?.headers ?? {}))
  }
})

const SAID = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'x' } })
const MANY = `data: ${SAID}\n\n`.repeat(2_000)

t.test('counts and logs a 200 answer by its content', async (t) => {
  const modern = await ModernHttp.start(t)
  const streaming = await ModernHttp.start(t, { answers: 'sse' })
  const legacy = await LegacyHttp.start(t)
  const events = await LegacyHttp.start(t, { streams: true })
  const asModern = async (url: string) => (args: object) => call(url, 'tools/call', { name: 'fail', arguments: args })
  const asLegacy = async (url: string) => {
    const client = await LegacyClient.open(url)
    return (args: object) => client.call('fail', args as Record<string, unknown>)
  }
  const lanes: [string, object, typeof asModern][] = [
    ['modern', { url: modern.url }, asModern],
    ['modern, as events', { url: streaming.url }, asModern],
    ['modern to legacy', { url: legacy.url }, asModern],
    ['legacy', { url: legacy.url }, asLegacy],
    ['legacy, as events', { url: events.url }, asLegacy],
    ['legacy to modern', { url: modern.url }, asLegacy],
    ['legacy, in a session of the server’s own', legacyStdio(t).server, asLegacy],
  ]
  for (const [name, server, as] of lanes) {
    const metrics = new Metrics({ version: '0' })
    const { url, bridge, log } = await startBridge(t, server, {}, { metrics })
    await bridge.server.warmUp()
    const fail = await as(url)
    t.match((await fail({})).message, { result: { isError: true } }, name)
    t.match((await fail({ error: { code: -32077, message: 'no' } })).message, { error: {} }, name)
    const lines = () => log.filter(({ event, method }) => event === 'call' && method === 'tools/call')
    await until(() => lines().length === 2, 'the lines of both calls')
    t.same(
      lines().map(({ outcome }) => outcome),
      ['tool_error', 'error'],
      name,
    )
    t.ok(Number.isInteger(lines()[1]?.['code']), `${name}: with the code of the error`)
    const counted = await metrics.text([])
    t.match(counted, /mcp_bridge_calls_total\{[^}]*method="tools\/call",outcome="tool_error"[^}]*\} 1/, name)
    t.match(counted, /mcp_bridge_calls_total\{[^}]*method="tools\/call",outcome="error"[^}]*\} 1/, name)
  }
})

t.test('counts and logs a large answer that passes unchanged by its content, as JSON and as events', async (t) => {
  const long = 'x\\"}{'.repeat(30_000)
  const content = [{ type: 'text', text: long }]
  const structuredContent = { isError: true, result: { isError: true }, deep: [[{ error: { code: 7 } }]] }
  const endings: [outcome: string, body: Record<string, unknown>, code?: number][] = [
    ['ok', { result: { content, structuredContent, resultType: 'complete' } }],
    ['ok', { result: { isError: false, content, resultType: 'complete' } }],
    ['tool_error', { result: { content, structuredContent, isError: true, resultType: 'complete' } }],
    ['tool_error', { result: { isError: true, content, structuredContent: { long }, resultType: 'complete' } }],
    ['asks', { result: { inputRequests: { a: { method: 'x', params: { long } } }, resultType: 'input_required' } }],
    ['error', { error: { code: -32077, message: 'no', data: { long } } }, -32077],
  ]
  const bodies: [kind: string, (text: string) => readonly [type: string, body: string]][] = [
    ['JSON', (text) => ['application/json', text]],
    ['an event', (text) => ['text/event-stream', `: hello\n\nevent: message\ndata: ${text}\n\n`]],
    ['the last event', (text) => ['text/event-stream', `${MANY}data: ${text}\n\n`]],
  ]
  for (const [kind, written] of bodies) {
    for (const [outcome, body, code] of endings) {
      const modern = await ModernHttp.start(t, {
        override: ({ message }, response) => {
          if (message?.['method'] !== 'tools/call') return false
          const [type, text] = written(JSON.stringify({ jsonrpc: '2.0', id: message['id'], ...body }))
          response.writeHead(200, { 'content-type': type }).end(text)
          return true
        },
      })
      const { url, bridge, log } = await startBridge(t, { url: modern.url })
      await bridge.server.warmUp()
      const answer = await call(url, 'tools/call', { name: 'x' })
      t.match(answer.message, { id: 1, ...JSON.parse(JSON.stringify(body)) }, `${kind}, ${outcome}`)
      const line = () => log.find(({ event, method }) => event === 'call' && method === 'tools/call')
      await until(() => line() !== undefined, 'the line of the call')
      t.match(line(), { outcome, ...(code !== undefined && { code }) }, `${kind}, ${outcome}`)
    }
  }
})
