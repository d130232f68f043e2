/** Bounds answer alike in every lane: by status, reason and `Retry-After`. */
import type { ServerResponse } from 'node:http'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import t, { type Test } from 'tap'
import { ADA, all, NAME, startAsker, talk, WAYS } from '../support/asking.js'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { LegacyClient } from '../support/legacy-client.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { call, send } from '../support/modern.js'
import { PlainHttp, sendText } from '../support/plain-http.js'

const CALL = { name: 'x', arguments: {} }
const LIMITS = { limits: { answerBytes: 200_000 } }
const DISCOVERED =
  '{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}'
const OPENED = '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"n","version":"1"}}'

type Answering = (id: string, response: ServerResponse) => void

/** A server of one era that answers calls as a test says. */
async function serverOf(t: Test, era: 'modern' | 'legacy', answer: Answering): Promise<string> {
  const server = await PlainHttp.start(t, ({ message, method }, response) => {
    const id = JSON.stringify(message?.['id'])
    const result = (text: string) => sendText(response, `{"jsonrpc":"2.0","id":${id},"result":${text}}`)
    if (method !== 'POST') return void response.writeHead(405).end()
    if (id === undefined) return void response.writeHead(202).end()
    if (message?.['method'] === 'tools/call') return answer(id, response)
    if (era === 'modern' && message?.['method'] === 'server/discover') return result(DISCOVERED)
    if (era === 'legacy' && message?.['method'] === 'initialize') return result(OPENED)
    sendText(response, `{"jsonrpc":"2.0","id":${id},"error":{"code":-32601,"message":"no"}}`, {}, 404)
  })
  return server.url
}

/** Every pair of eras: what a call is answered with. */
async function inAllLanes(t: Test, answer: Answering) {
  const lanes: [lane: string, answer: Awaited<ReturnType<typeof call>>][] = []
  for (const era of ['modern', 'legacy'] as const) {
    const { url, bridge } = await startBridge(t, { url: await serverOf(t, era, answer) }, LIMITS)
    await bridge.server.warmUp()
    lanes.push([`modern client, ${era} server`, await call(url, 'tools/call', CALL)])
    const client = await LegacyClient.open(url)
    lanes.push([`legacy client, ${era} server`, await client.request('tools/call', CALL)])
  }
  return lanes
}

t.test(
  'an answer of more than answerBytes is the same error where it passes unchanged as where it is translated',
  async (t) => {
    const lanes = await inAllLanes(t, (id, response) => {
      const text = `{"jsonrpc":"2.0","id":${id},"result":{"content":[],"x":"${'x'.repeat(200_000)}"}}`
      sendText(response, text, { 'content-length': String(text.length) })
    })
    t.equal(lanes.length, 4)
    for (const [lane, { status, headers, message }] of lanes) {
      t.equal(status, 200, lane)
      t.equal(headers['mcp-bridge-error'], 'upstream_protocol_error', lane)
      const data = { reason: 'upstream_protocol_error', outcome: 'unknown' }
      t.match(message.error, { message: /more than 200000 bytes \(limits.answerBytes\)/, data }, lane)
    }
  },
)

t.test('an answer of answerBytes passes in every lane', async (t) => {
  const lanes = await inAllLanes(t, (id, response) => {
    const [start, end] = [`{"jsonrpc":"2.0","id":${id},"result":{"content":[],"x":"`, '"}}']
    sendText(response, start + 'x'.repeat(200_000 - start.length - end.length) + end)
  })
  for (const [lane, { message }] of lanes) t.match(message, { result: { content: [] } }, lane)
})

t.test(
  'an answer of undeclared length that turns out to be too large ends at the server, and is an error',
  async (t) => {
    const endless: ServerResponse[] = []
    const server = await serverOf(t, 'modern', (_id, response) => {
      endless.push(response)
      response.writeHead(200, { 'content-type': 'application/json' })
      const more = () => {
        while (!response.destroyed && response.write(' '.repeat(10_000)));
      }
      response.on('drain', more)
      more()
    })
    const { url, bridge, log } = await startBridge(t, { url: server }, LIMITS)
    await bridge.server.warmUp()
    t.match((await call(url, 'tools/call', CALL)).message, { error: { data: { reason: 'upstream_protocol' } } })
    await until(() => endless[0]?.destroyed === true, 'the end at the server')
    await until(() => log.some(({ event, fault }) => event === 'call' && fault === 'upstreamProtocol'))
  },
)

/** Answers with a stream of one event, whose data has so many bytes beside its result, in pieces. */
function streaming(response: ServerResponse, start: string, bytes: number, end: string): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.write(start)
  for (let left = bytes; left > 0; left -= 10_000) response.write('x'.repeat(Math.min(left, 10_000)))
  response.end(end)
}

const tooLarge = (id: string, response: ServerResponse, fields = '') =>
  streaming(
    response,
    `${fields}event: message\ndata: {"jsonrpc":"2.0","id":${id},"result":{"content":[],"x":"`,
    200_000,
    '"}}\n\n',
  )

t.test(
  'an event of more than answerBytes is the same error where it passes unchanged as where it is translated',
  async (t) => {
    const lanes = await inAllLanes(t, tooLarge)
    for (const [lane, { status, message, text }] of lanes) {
      t.equal(status, 200, lane)
      const data = { reason: 'upstream_protocol_error', outcome: 'unknown' }
      t.match(message.error, { message: /event of more than 200000 bytes \(limits.answerBytes\)/, data }, lane)
      t.ok(text.length < 201_000, lane)
    }
  },
)

t.test('an event of answerBytes passes in every lane', async (t) => {
  const lanes = await inAllLanes(t, (id, response) => {
    const [start, end] = [`data: {"jsonrpc":"2.0","id":${id},"result":{"content":[],"x":"`, '"}}\n']
    streaming(response, start, 200_000 - start.length - end.length, `${end}\n`)
  })
  for (const [lane, { message }] of lanes) t.match(message, { result: { content: [] } }, lane)
})

t.test('a client of an SDK drops an incomplete event that is too large, and accepts the error', async (t) => {
  const answers = [tooLarge, (id: string, response: ServerResponse) => tooLarge(id, response, 'id: 7\n')]
  for (const answer of answers) {
    const { url, log } = await startBridge(t, { url: await serverOf(t, 'legacy', answer) }, LIMITS)
    const client = new Client({ name: 'n', version: '1' })
    const wrong: Error[] = []
    client.onerror = (error) => wrong.push(error)
    await client.connect(new StreamableHTTPClientTransport(new URL(url)) as Transport)
    t.teardown(() => client.close())
    await t.rejects(client.callTool(CALL), { message: /event of more than 200000 bytes/ })
    t.same(wrong, [])
    await until(() => log.some(({ event, fault }) => event === 'call' && fault === 'upstreamProtocol'))
  }
})

t.test('an endless stream ends at an event that is too large', async (t) => {
  const listening = 'subscriptions/listen'
  const server = await PlainHttp.start(t, ({ message, method }, response) => {
    const id = JSON.stringify(message?.['id'])
    if (method === 'GET' || message?.['method'] === listening) {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(`event: message\ndata: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n\n`)
      return void response.write(`data: ${'x'.repeat(200_000)}`)
    }
    if (id === undefined) return void response.writeHead(202).end()
    const opened = message?.['method'] === 'initialize' && { 'mcp-session-id': 's' }
    const result = opened ? OPENED : DISCOVERED
    sendText(response, `{"jsonrpc":"2.0","id":${id},"result":${result}}`, opened || {})
  })
  for (const [era, entry] of [
    ['legacy', {}],
    ['legacy', { tools: { deny: ['none'] } }],
    ['modern', {}],
  ] as const) {
    const { url, bridge } = await startBridge(t, { url: server.url, era, ...entry }, LIMITS)
    await bridge.server.warmUp()
    const answer =
      era === 'modern'
        ? await call(url, listening, { notifications: { toolsListChanged: true } })
        : await send('GET', url, undefined, { ...(await LegacyClient.open(url)).headers, accept: 'text/event-stream' })
    t.match(answer.messages[0], { method: 'notifications/tools/list_changed' }, era)
    if (era === 'legacy') t.equal(answer.messages.length, 1, 'it answers no call')
    else t.match(answer.message.error, { message: /event of more than 200000 bytes/ })
  }
})

for (const way of WAYS) {
  t.test(`a call that fails ${way}, because too many wait for answers, is refused as by other bounds`, async (t) => {
    const asker = await startAsker(t, way)
    const { url } = await startBridge(t, asker.server, { limits: { parked: 1 } })
    const { steps, again } = talk(url, asker)
    const ask = [{ ask: [NAME] }]
    const first = await steps(ask)
    t.equal(first.keys.length, 1)
    const refused = await steps(ask, { strict: true })
    t.match(refused, { status: 503, headers: { 'mcp-bridge-error': 'overloaded', 'retry-after': '1' } })
    t.match(refused.message.error, { code: -32603, data: { reason: 'overloaded', retryAfterMs: 1000 } })
    t.equal((await steps(ask)).status, 200, 'a server that does without an answer is not refused')
    t.same((await again(first, all(first, ADA))).said, [ADA])
    t.equal((await steps(ask)).keys.length, 1, 'there is room again')
  })
}

t.test('all legacy clients of a large team keep a session at one server over HTTP', async (t) => {
  const server = await LegacyHttp.start(t, { sessions: true })
  const { url } = await startBridge(t, { url: server.url })
  const opened = []
  for (let n = 0; n < 220; n++) {
    const client = await LegacyClient.open(url)
    opened.push([client.opened.status, (await client.listen()).status])
  }
  t.same(
    opened.filter(([answer, stream]) => answer !== 200 || stream !== 200),
    [],
  )
  t.equal(server.streams, 220)
})

t.test(
  'a session at a server over HTTP that no client listens in makes room, and an error names the option',
  async (t) => {
    const server = await LegacyHttp.start(t, { sessions: true })
    const { url } = await startBridge(t, { url: server.url }, { limits: { sessions: 2 } })
    const [first, second] = [await LegacyClient.open(url), await LegacyClient.open(url)]
    const streams = [await first.listen(), await second.listen()]
    const open = async () => (await LegacyClient.open(url)).opened.message
    t.match(await open(), {
      error: {
        message: 'All 2 sessions with the server (limits.sessions) are in use',
        data: { reason: 'overloaded', outcome: 'not_executed', retryAfterMs: 1000 },
      },
    })
    streams[0]?.leave()
    await until(async () => (await open()).result !== undefined, 'room')
    const ended = server.received.flatMap(({ method, headers }) =>
      method === 'DELETE' ? headers['mcp-session-id'] : [],
    )
    t.same(ended, [first.session], 'its client opens another one')
    t.equal((await second.request('tools/list')).status, 200)
  },
)
