/** In a session of its own, a legacy client gets what a server on a pipe says in the order in which it was said. */
import t from 'tap'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { initialize, LegacyClient } from '../support/legacy-client.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { openPipe } from '../support/pipe.js'
import { SseClient } from '../support/sse-client.js'

type Json = Record<string, unknown>

const CALLS = 20
const VALUES = [1, 2, 3]
const requestOf = (id: number) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name: 'order', arguments: { values: VALUES }, _meta: { progressToken: `token ${id}` } },
})

/** A message in a word. */
function wordOf({ id, method, params }: Json): string {
  const { progressToken, progress, data } = (params ?? {}) as Json
  if (method === 'notifications/progress') return `${String(progressToken)}: ${progress}`
  return method === 'notifications/message' ? `log ${data}` : `answer ${id}`
}

/** What the server says to one call, in its order. */
const wordsFor = (id: number) => [
  ...VALUES.flatMap((value) => [`token ${id}: ${value}`, `log ${value}`]),
  `answer ${id}`,
  'log after',
]
const ids = Array.from({ length: CALLS }, (_, n) => n + 1)
const expected = ids.flatMap(wordsFor)

t.test('messages keep their order on a pipe, across all calls', async (t) => {
  const pipe = openPipe(t, legacyStdio(t).server)
  pipe.line(initialize('2025-11-25'))
  await until(() => pipe.messages().length === 1, 'the session')
  pipe.line(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' }))
  // The server gets them in one piece, and answers one after the other without a pause.
  pipe.line(ids.map((id) => JSON.stringify(requestOf(id))).join('\n'))
  const words = () => pipe.messages().slice(1).map(wordOf)
  await until(() => words().length === expected.length, 'all that is said')
  t.same(words(), expected)
})

t.test('messages keep their order over HTTP+SSE, across all calls', async (t) => {
  const { url } = await startBridge(t, legacyStdio(t).server)
  const client = await SseClient.open(url, '2024-11-05')
  await Promise.all(ids.map((id) => client.post(requestOf(id))))
  const words = () => client.messages.slice(1).map(wordOf)
  await until(() => words().length === expected.length, 'all that is said')
  // The requests may come to the server in any order; what it says to each belongs together.
  const order = words().flatMap((word) => (word.startsWith('answer') ? Number(word.slice('answer '.length)) : []))
  t.same(words(), order.flatMap(wordsFor))
})

t.test('messages keep their order on the stream of a call', async (t) => {
  const { url } = await startBridge(t, legacyStdio(t).server)
  const client = await LegacyClient.open(url)
  for (const id of ids) {
    const { messages } = await client.post(requestOf(id))
    t.same(
      messages.map(wordOf).filter((word) => word !== 'log after'),
      wordsFor(id).slice(0, -1),
    )
  }
})

t.test('a cancelled call delays nothing', async (t) => {
  const pipe = openPipe(t, legacyStdio(t).server)
  pipe.line(initialize('2025-11-25'))
  await until(() => pipe.messages().length === 1, 'the session')
  pipe.line(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' }))
  const cancel = (requestId: number) =>
    JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId } })
  pipe.line(ids.map((id) => `${JSON.stringify(requestOf(id))}\n${id % 2 === 0 ? cancel(id) : ''}`).join('\n'))
  const odd = ids.filter((id) => id % 2 === 1)
  const answers = () => pipe.messages().flatMap(({ id, result }) => (result && id !== 'hello' ? [Number(id)] : []))
  await until(() => odd.every((id) => answers().includes(id)), 'the answers')
  t.same(
    answers().filter((id) => id % 2 === 1),
    odd,
  )
})
