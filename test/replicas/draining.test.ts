/** A replica shuts down: what it only forwards ends at once, and what it owns is not there any more. */
import t, { type Test } from 'tap'
import { ADA, NAME, startAsker, talk } from '../support/asking.js'
import { startBridge } from '../support/bridge.js'
import { openStream } from '../support/events.js'
import { until } from '../support/eventually.js'
import { LegacyClient } from '../support/legacy-client.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { changed, listen } from '../support/listening.js'
import { send } from '../support/modern.js'
import { noRedis, RedisServer } from '../support/redis.js'

const test = (name: string, body: (t: Test) => Promise<void>) => t.test(name, { skip: noRedis }, body)

/** Two replicas that wait as long for calls as nobody waits for a test. */
async function start(t: Test, server: object) {
  const redis = await RedisServer.start(t)
  const settings = {
    redis: { url: redis.url, timeout: 30_000 },
    stateKeys: ['a secret that all the replicas know of'],
    timeouts: { drainTimeout: 3_600_000 },
  }
  const one = await startBridge(t, server, settings)
  const two = await startBridge(t, server, settings)
  return { one, two }
}

const request = (id: number, method: string, params: object = {}) =>
  JSON.stringify({ jsonrpc: '2.0', id, method, params })

test('a stream that a draining replica forwards ends at once, and goes on at another', async (t) => {
  const { one, two } = await start(t, legacyStdio(t).server)
  const client = await LegacyClient.open(one.url)
  const own = { ...client.headers, accept: 'text/event-stream', 'content-type': undefined }
  const stream = await openStream('GET', two.url, own)
  const touch = { name: 'touch', arguments: { tools: true } }
  await client.request('tools/call', touch)
  await stream.has(1)
  await two.bridge.close()
  await stream.ended()
  t.match(stream.messages, [changed('tools')], 'nothing but what the server has said')
  const again = await openStream('GET', one.url, { ...own, 'last-event-id': stream.ids.at(-1) })
  t.equal(again.status, 200, 'the owner has the session, and what comes after the last event')
  await client.request('tools/call', touch)
  await again.has(1)
  again.leave()
  await one.bridge.close(true)
})

test('a subscription that a draining replica forwards ends with its result', async (t) => {
  const asker = await startAsker(t, 'over stdio')
  const { one, two } = await start(t, asker.server)
  const capabilities = { extensions: { 'io.modelcontextprotocol/tasks': {} }, elicitation: {} }
  const made = await talk(one.url, { capabilities }).call('tools/call', { name: 'job', arguments: {} })
  const taskIds = [String(made.message.result?.['taskId'])]
  const stream = await listen(two.url, { taskIds }, { capabilities, id: 'mine' })
  await stream.has(1)
  await two.bridge.close()
  await stream.ended()
  t.match(stream.messages.at(-1), { id: 'mine', result: { resultType: 'complete' } })
  await one.bridge.close(true)
})

test('a session of a draining replica is not found, so its client opens another', async (t) => {
  const asker = await startAsker(t, 'over stdio')
  const { one, two } = await start(t, asker.server)
  const client = await LegacyClient.open(one.url, { capabilities: { elicitation: {} } })
  const asking = { name: 'steps', arguments: { steps: [{ ask: [NAME] }] } }
  const inFlight = await client.stream('tools/call', asking, { id: 'in flight' })
  await inFlight.has(1)
  const closing = one.bridge.close()
  const statusAt = async (url: string) =>
    (await send('POST', url, request(7, 'tools/list'), client.headers as never)).status
  await until(async () => (await statusAt(two.url)) === 404, 'the session gone')
  t.equal(await statusAt(one.url), 404)
  const cancelled = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/progress', params: {} })
  const taken = await send('POST', two.url, cancelled, client.headers as never)
  t.equal(taken.status, 202, 'what belongs to calls in flight is taken')
  const another = await LegacyClient.open(two.url)
  t.equal((await another.request('tools/list')).status, 200)
  const answer = JSON.stringify({ jsonrpc: '2.0', id: inFlight.messages[0]?.['id'], result: ADA })
  t.equal((await send('POST', two.url, answer, client.headers as never)).status, 202, 'and so is what it waits for')
  await inFlight.ended()
  t.match(inFlight.answer('in flight'), { result: { content: [{ text: JSON.stringify([ADA]) }] } })
  await closing
  await two.bridge.close(true)
})
