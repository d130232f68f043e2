/** A line over `limits.lineBytes` costs the message that it is, and nothing else: neither its program, nor its client. */
import { Client, InMemoryTransport } from '@modelcontextprotocol/client'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import t, { type Test } from 'tap'
import { createBridge } from '../../src/app/embed/create.js'
import type { SdkTransport } from '../../src/app/embed/options.js'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { initialize, LegacyClient } from '../support/legacy-client.js'
import { LegacySse } from '../support/legacy-sse.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { type Answer, call, envelope } from '../support/modern.js'
import { openPipe } from '../support/pipe.js'
import { bulkyStdio } from '../support/small-heap.js'

const LIMIT = 100_000
/** A call that waits for its time limit would let the test fail. */
const settings = { limits: { lineBytes: LIMIT }, timeouts: { call: 3_600_000 } }
const bulk = (bytes: number, pause = 0) => ({ name: 'bulk', arguments: { bytes, pause } })
const TOO_LONG = {
  message: /wrote a line of more than 100000 bytes \(limits\.lineBytes\)/,
  data: { outcome: 'unknown' },
}

/** Checks that a long answer fails its own call alone, while another call of the same session waits. */
async function failsAlone(t: Test, called: (params: ReturnType<typeof bulk>) => Promise<Answer>, what: string) {
  const slow = called(bulk(10, 500))
  // The second is so long that its end comes in many pieces.
  for (const bytes of [LIMIT + 1, 12 * LIMIT]) t.match((await called(bulk(bytes))).message, { error: TOO_LONG }, what)
  t.match((await slow).message, { result: { content: [] } }, `${what}: the other call`)
  t.match((await called(bulk(10))).message, { result: { content: [] } }, `${what}: the next call`)
}

for (const era of ['legacy', 'modern'] as const)
  t.test(`a long line of a ${era} program fails its own call alone`, async (t) => {
    const { url, log } = await startBridge(t, bulkyStdio(era), settings)
    await failsAlone(t, (params) => call(url, 'tools/call', params), 'a modern client')
    const client = await LegacyClient.open(url)
    const inSession = ({ name, arguments: args }: ReturnType<typeof bulk>) => client.call(name, args)
    await failsAlone(t, inSession, 'a legacy client')
    t.notOk(
      log.some(({ event }) => event === 'server_exited'),
      'no program has ended',
    )
    t.equal((await client.request('tools/list')).status, 200, 'the session goes on')
  })

t.test('a program that never ends its line is ended', async (t) => {
  const { url } = await startBridge(t, bulkyStdio('legacy'), settings)
  const answer = await call(url, 'tools/call', bulk(40 * LIMIT))
  t.match(answer.message.error, { message: /wrote a line without an end/ })
})

const TOO_LONG_EVENT = {
  message: /sent an event of more than 100000 bytes \(limits\.answerBytes\)/,
  data: { outcome: 'unknown' },
}

t.test('a long event of a server over HTTP+SSE fails its own call alone', async (t) => {
  const legacy: LegacySse = await LegacySse.start(t, {
    override: ({ message }, response) => {
      const { id, method, params } = message as {
        id: unknown
        method?: string
        params?: { arguments?: { bytes?: number } }
      }
      const bytes = params?.arguments?.bytes
      if (method !== 'tools/call' || bytes === undefined) return false
      response.writeHead(202).end()
      const content = [{ type: 'text', text: 'x'.repeat(bytes) }]
      if (bytes > 0)
        legacy.push({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: content } })
      legacy.push({ jsonrpc: '2.0', id, result: { content } })
      return true
    },
  })
  const limits = { answerBytes: LIMIT }
  const mcpServers = { it: { url: legacy.url, type: 'sse' }, other: legacyStdio(t).server }
  const { url, bridge, log } = await startBridge(t, {}, { ...settings, limits, mcpServers, groups: { all: {} } })
  const at = new URL('/it/mcp', url).href
  const client = await LegacyClient.open(at)
  const long = { name: 'echo', arguments: { bytes: 3 * LIMIT } }
  const ways: Record<string, (params: typeof long) => Promise<Answer>> = {
    'a modern client': (params) => call(at, 'tools/call', params),
    'a client of a group': ({ name, ...params }) =>
      call([...bridge.groupUrls.values()][0] ?? '', 'tools/call', { ...params, name: `it__${name}` }),
    'a legacy client': (params) => client.call(params.name, params.arguments),
  }
  for (const [what, called] of Object.entries(ways)) {
    t.match((await called(long)).message, { error: TOO_LONG_EVENT }, what)
    t.match((await called({ name: 'echo', arguments: { bytes: 0 } })).message, { result: { content: [{}] } }, what)
  }
  t.notOk(log.some(({ why }) => String(why).includes('closed the stream')))
  t.equal(legacy.received.filter(({ method }) => method === 'GET').length, legacy.streams, 'no stream has ended')
})

t.test('a long message of a server in this process fails its own call alone', async (t) => {
  const server = () => {
    const it = new McpServer({ name: 'it', version: '1' })
    it.registerTool('long', {}, () => ({ content: [{ type: 'text', text: 'x'.repeat(2 * LIMIT) }] }))
    it.registerTool('short', {}, () => ({ content: [{ type: 'text', text: 'here' }] }))
    return it
  }
  const serve = (transport: SdkTransport) => server().connect(transport)
  const bridge = await createBridge({ mcpServers: { it: { serve } }, limits: { lineBytes: LIMIT } })
  t.teardown(() => bridge.close())
  const [near, far] = InMemoryTransport.createLinkedPair()
  const client = new Client({ name: 'c', version: '1' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } })
  await bridge.connect(far)
  await client.connect(near)
  await t.rejects(client.callTool({ name: 'long' }), { message: /sent a message of more than 100000 bytes/ })
  t.match(await client.callTool({ name: 'short' }), { content: [{ text: 'here' }] })
})

t.test('a client on stdio gets an error for a request that is too long, wherever its id is', async (t) => {
  const pipe = openPipe(t, legacyStdio(t).server, settings)
  const params = { name: 'echo', arguments: { x: 'x'.repeat(LIMIT) } }
  const modern = { ...params, _meta: envelope() }
  const request = { jsonrpc: '2.0', method: 'tools/call' }
  pipe.line(initialize('2025-11-25'))
  pipe.line('{"jsonrpc":"2.0","method":"notifications/initialized"}')
  pipe.line(JSON.stringify({ id: 1, ...request, params: modern }))
  pipe.line(JSON.stringify({ ...request, params: modern, id: 'last' }))
  pipe.line(JSON.stringify({ id: 2, ...request, params }))
  pipe.line(JSON.stringify({ jsonrpc: '2.0', id: 3, result: { x: 'x'.repeat(LIMIT) } }))
  pipe.line(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/progress', params }))
  const fine = await pipe.call('tools/list', {}, { id: 4 })
  t.match(fine, { result: { tools: [] } })
  const refused = () => pipe.messages().filter(({ error }) => error !== undefined)
  await until(() => refused().length >= 3, 'three errors')
  t.same(
    refused().map(({ id }) => id),
    [1, 'last', 2],
  )
  for (const { error } of refused())
    t.match(error, { code: -32600, message: /over 100000 bytes \(limits\.lineBytes\)/ })
})
