/** Batches of legacy clients whose answers are lost: each call in them is told what a single one is told, and none is sent twice. */
import type { ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { startBridge } from '../support/bridge.js'
import { LegacyClient } from '../support/legacy-client.js'
import { LegacyHttp } from '../support/legacy-http.js'

type Json = Record<string, unknown>
type Break = (response: ServerResponse, ids: unknown[]) => void

const tool = (id: unknown) => ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'act', arguments: {} } })
const result = (id: unknown) => JSON.stringify({ jsonrpc: '2.0', id, result: { content: [] } })
const EVENTS = { 'content-type': 'text/event-stream' }
const JSON_TYPE = { 'content-type': 'application/json' }

const WAYS: Record<string, Break> = {
  'before the answer': (response) => void response.destroy(),
  'within the answer': (response, [id]) => {
    response.writeHead(200, { ...JSON_TYPE, 'content-length': '9999' }).write(`[${result(id)},`)
    setImmediate(() => response.destroy())
  },
  'in a stream without events': (response) => {
    response.writeHead(200, EVENTS).write(': hello\n\n')
    setImmediate(() => response.destroy())
  },
  'at the end of a stream without events': (response) => void response.writeHead(200, EVENTS).end(),
  'with 502 and a page': (response) =>
    void response.writeHead(502, { 'content-type': 'text/html' }).end('<h1>Bad Gateway</h1>'),
  'with 500': (response) => void response.writeHead(500).end(),
  'with a page': (response) => void response.writeHead(200, { 'content-type': 'text/html' }).end('<p>hello</p>'),
}

/** A server that breaks off the answers to calls. */
function start(t: Test, breakOff: Break): Promise<LegacyHttp> {
  return LegacyHttp.start(t, {
    sessions: true,
    revision: '2025-03-26',
    override: ({ message }, response) => {
      const messages = (Array.isArray(message) ? message : [message]) as Json[]
      if (!messages.some(({ method }) => method === 'tools/call')) return false
      const ids = messages.map(({ id }) => id)
      breakOff(response, ids)
      return true
    },
  })
}

const callsAt = (server: LegacyHttp) => server.received.filter(({ body }) => body.includes('tools/call')).length
const withoutIds = (messages: readonly Json[]) => messages.map(({ id: _id, ...message }) => message)

/** What looks at single calls. */
const LOOKING: Record<string, object> = { nothing: {}, 'a choice of tools': { tools: { deny: ['hidden'] } } }
const rows = Object.entries(LOOKING).flatMap(([what, entry]) =>
  Object.entries(WAYS).map(([how, breakOff]) => ({ what, entry, how, breakOff })),
)

for (const { what, entry, how, breakOff } of rows)
  t.test(
    `each call of a batch that breaks ${how} has the outcome of a single call, with ${what} before it`,
    async (t) => {
      const server = await start(t, breakOff)
      const { url } = await startBridge(t, { url: server.url, ...entry })
      const client = await LegacyClient.open(url, { revision: '2025-03-26' })
      const single = await client.post(tool(1))
      t.match(single.message, { error: { data: { outcome: 'unknown' } } })
      t.equal(callsAt(server), 1)
      const notice = { jsonrpc: '2.0', method: 'notifications/roots/list_changed' }
      const batch = await client.post([tool('a'), notice, tool(9007199254740991)])
      t.equal(batch.status, single.status)
      const answers = batch.messages.flat() as Json[]
      t.strictSame(
        answers.map(({ id }) => id),
        ['a', 9007199254740991],
      )
      t.strictSame(withoutIds(answers), withoutIds([single.message, single.message]))
      t.equal(callsAt(server), 2, 'sent once')
    },
  )

t.test('calls of a batch that have been answered keep their answers', async (t) => {
  const server = await start(t, (response, ids) => {
    response.writeHead(200, EVENTS)
    response.write(`data: ${result(ids[0])}\n\ndata: [${result(ids[2])}]\n\n`)
    setImmediate(() => response.destroy())
  })
  const { url } = await startBridge(t, { url: server.url })
  const client = await LegacyClient.open(url, { revision: '2025-03-26' })
  const { messages } = await client.post([tool(1), tool(2), tool(3), tool(4)])
  const answers = messages.flat() as Json[]
  t.match(answers, [
    { id: 1, result: {} },
    { id: 3, result: {} },
    { id: 2, error: { data: { outcome: 'unknown' } } },
    { id: 4, error: { data: { outcome: 'unknown' } } },
  ])
})

t.test('a batch that never reached the server says that nothing was executed', async (t) => {
  const server = await start(t, () => {})
  const { url } = await startBridge(t, { url: server.url })
  const client = await LegacyClient.open(url, { revision: '2025-03-26' })
  await server.stop()
  const single = await client.post(tool(1))
  const batch = await client.post([tool(1), tool(2)])
  t.equal(batch.status, single.status)
  t.strictSame(withoutIds(batch.messages.flat() as Json[]), withoutIds([single.message, single.message]))
})
