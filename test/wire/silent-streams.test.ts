/** Event streams that are silent for long, behind proxies that close silent connections. */
import type { ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { startBridge } from '../support/bridge.js'
import { type EventStream, openStream } from '../support/events.js'
import { until } from '../support/eventually.js'
import { initialize } from '../support/legacy-client.js'
import { envelope, headersFor } from '../support/modern.js'
import { PlainHttp, sendText } from '../support/plain-http.js'

const COMMENT = ': keep-alive\n\n'
const TIMEOUTS = { timeouts: { keepAlive: 50 } }
const OPENED = '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"n","version":"1"}}'
const DISCOVERED =
  '{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}'

/** A server of an era that gives a test the streams of calls, or those of GET. */
async function start(t: Test, era: 'modern' | 'legacy', kind: 'POST' | 'GET') {
  const streams: ServerResponse[] = []
  const server = await PlainHttp.start(t, ({ method, message }, response) => {
    const id = JSON.stringify(message?.['id'])
    const name = message?.['method']
    if (name === 'server/discover' && era === 'modern')
      return sendText(response, `{"jsonrpc":"2.0","id":${id},"result":${DISCOVERED}}`)
    if (name === 'initialize' && era === 'legacy')
      return sendText(response, `{"jsonrpc":"2.0","id":${id},"result":${OPENED}}`, { 'mcp-session-id': 's' })
    if (method === 'DELETE' || (message && id === undefined)) return void response.writeHead(202).end()
    if (method === 'POST' && name !== 'tools/call' && name !== 'subscriptions/listen')
      return sendText(response, `{"jsonrpc":"2.0","id":${id},"error":{"code":-32601,"message":"no"}}`, {}, 404)
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
    if (method === kind) streams.push(response)
  })
  const { url, bridge } = await startBridge(t, { url: server.url }, TIMEOUTS)
  await bridge.server.warmUp()
  return { url, streams }
}

const commentsOf = ({ text }: EventStream) => text.split(COMMENT).length - 1

const PARAMS = { name: 'x', arguments: {} }
const LEGACY = {
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
  'mcp-protocol-version': '2025-11-25',
}

/** Streams that a client opens at the bridge, by what they are. */
const OPENING: Record<string, { era: 'modern' | 'legacy'; open(url: string): Promise<EventStream> }> = {
  'a modern call': {
    era: 'modern',
    open: (url) => {
      const params = { ...PARAMS, _meta: envelope() }
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })
      return openStream('POST', url, headersFor('tools/call', PARAMS), body)
    },
  },
  'a subscription': {
    era: 'modern',
    open: (url) => {
      const params = { notifications: { toolsListChanged: true }, _meta: envelope() }
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'subscriptions/listen', params })
      return openStream('POST', url, headersFor('subscriptions/listen'), body)
    },
  },
  'a legacy call': {
    era: 'legacy',
    open: async (url) => {
      const headers = await opened(url)
      return openStream(
        'POST',
        url,
        headers,
        JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: PARAMS }),
      )
    },
  },
  'the stream of a session': {
    era: 'legacy',
    open: async (url) => openStream('GET', url, await opened(url)),
  },
}

async function opened(url: string): Promise<Record<string, string>> {
  const answer = await fetch(url, { method: 'POST', headers: LEGACY, body: JSON.stringify(initialize('2025-11-25')) })
  await answer.text()
  return { ...LEGACY, 'mcp-session-id': String(answer.headers.get('mcp-session-id')) }
}

for (const [what, { era, open }] of Object.entries(OPENING))
  t.test(`${what} that is silent gets comments, and only between whole events`, async (t) => {
    const { url, streams } = await start(t, era, what === 'the stream of a session' ? 'GET' : 'POST')
    const stream = await open(url)
    await until(() => streams.length === 1, 'the stream at the server')
    const [server] = streams
    const other = await open(url)
    const comments = () => commentsOf(stream)
    await until(() => comments() >= 2, 'comments before the first event')
    // A byte order mark is not the first any more.
    server?.write('\uFEFF: hello\n')
    t.notMatch(stream.text, /\uFEFF/)
    const before = comments()
    await until(() => comments() >= before + 2, 'comments after a comment')
    for (const piece of ['event: message\n', 'data: {"jsonrpc":"2.0",', '"method":"notifications/x"}\n']) {
      server?.write(piece)
      const others = commentsOf(other)
      await until(() => commentsOf(other) >= others + 3, 'comments on another stream meanwhile')
    }
    server?.write('\n')
    await until(() => stream.messages.length > 0, 'the event')
    t.match(stream.messages, [{ jsonrpc: '2.0', method: 'notifications/x' }])
    t.equal(stream.messages.length, 1)
    const after = comments()
    await until(() => comments() >= after + 2, 'comments after an event')
    server?.end('data: {"jsonrpc":"2.0","id":1,"result":{"content":[],"resultType":"complete"}}\n\n')
    await stream.ended()
    t.match(stream.messages.at(-1), { id: 1, result: { content: [] } })
  })
