/** The bridge shuts down while clients are connected over HTTP+SSE: what it has taken is answered, and their streams end then. */
import type { ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { startBridge } from '../../support/bridge.js'
import { until } from '../../support/eventually.js'
import { initialize } from '../../support/legacy-client.js'
import { call, send } from '../../support/modern.js'
import { ModernHttp } from '../../support/modern-http.js'
import { SseClient } from '../../support/sse-client.js'

/** A shutdown that waits for calls for longer than anybody waits for a test. */
const PATIENT = { timeouts: { drainTimeout: 3_600_000 } }
const REVISION = '2024-11-05'

const held = (id: number) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name: 'wait', arguments: { ms: 'held' } },
})

/** A server that describes itself only when it is told to. */
async function startSilent(t: Test) {
  const waiting: ServerResponse[] = []
  let isSilent = true
  const modern: ModernHttp = await ModernHttp.start(t, {
    override: ({ message }, response) => {
      if (!isSilent || message?.['method'] !== 'server/discover') return false
      waiting.push(response)
      return true
    },
  })
  const speak = async () => {
    isSilent = false
    const { text } = await call(modern.url, 'server/discover')
    for (const response of waiting) response.writeHead(200, { 'content-type': 'application/json' }).end(text)
  }
  return { modern, waiting, speak }
}

t.test('an initialize that was taken before is answered', async (t) => {
  const { modern, waiting, speak } = await startSilent(t)
  const { url, bridge } = await startBridge(t, { url: modern.url }, PATIENT)
  const client = await SseClient.connect(url)
  t.equal((await client.post(initialize(REVISION))).status, 202)
  await until(() => waiting.length > 0, 'the question of the bridge')
  const closing = bridge.close()
  await until(async () => (await send('GET', url, undefined, {})).status === 503, 'the shutdown')
  t.notOk(client.stream.over)
  await speak()
  t.match(await client.answer('hello'), { error: { data: { reason: 'draining', outcome: 'not_executed' } } })
  await client.stream.ended()
  await closing
})

t.test('a call that was taken before is answered, a new one is refused, and then the stream ends', async (t) => {
  const modern = await ModernHttp.start(t)
  const { url, bridge } = await startBridge(t, { url: modern.url }, PATIENT)
  const client = await SseClient.open(url, REVISION)
  const idle = await SseClient.open(url, REVISION)
  t.equal((await client.post(held(1))).status, 202)
  await until(() => modern.of('tools/call').length === 1, 'the call at the server')
  const closing = bridge.close()
  await idle.stream.ended()
  t.equal((await idle.post(held(2))).status, 404)
  const refused = await client.post(held(3))
  t.match(refused, { status: 503, message: { id: 3, error: { data: { reason: 'draining' } } } })
  t.equal(refused.headers['retry-after'], '1')
  const cancels = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 99 } }
  t.equal((await client.post(cancels)).status, 202, 'what belongs to calls in flight is taken')
  modern.letGo()
  await client.answer(1)
  await client.stream.ended()
  await closing
  t.equal(modern.of('tools/call').length, 1)
})
