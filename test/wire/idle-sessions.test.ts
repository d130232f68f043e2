/** What idle sessions of legacy clients keep: one subscription for all of a principal, and nothing of their requests. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { IncomingMessage } from 'node:http'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t, { type Test } from 'tap'
import { startBridge } from '../support/bridge.js'
import type { EventStream } from '../support/events.js'
import { until } from '../support/eventually.js'
import { LegacyClient, type OpenOptions } from '../support/legacy-client.js'
import { type HttpPlan, ModernHttp } from '../support/modern-http.js'

const TOOLS = 'notifications/tools/list_changed'
const A = 'test://item/a'

async function start(t: Test, plan: HttpPlan = {}, config: Parameters<typeof startBridge>[2] = {}) {
  const modern = await ModernHttp.start(t, plan)
  const { url } = await startBridge(t, { url: modern.url }, config)
  const connect = async (options: OpenOptions = {}) => {
    const client = await LegacyClient.open(url, options)
    return { client, stream: await client.listen() }
  }
  return { modern, url, connect }
}

const subscriptionsOf = (modern: ModernHttp) => modern.of('subscriptions/listen').length
const heard = ({ messages }: EventStream, method: string) =>
  messages.filter((message) => (message as { method?: string }).method === method).length

t.test('sessions of a principal share one subscription, and each hears of a change once', async (t) => {
  const { modern, connect } = await start(t)
  const first = await connect()
  await until(() => modern.subscriptions === 1, 'the subscription')
  const others = await Promise.all([connect(), connect(), connect()])
  const all = [first, ...others]
  for (const { client } of all) await client.request('ping')
  t.equal(subscriptionsOf(modern), 1)
  modern.touch({ tools: true })
  for (const { stream } of all) await until(() => heard(stream, TOOLS) === 1, 'the change')
  for (const { client } of all) await client.request('ping')
  t.same(
    all.map(({ stream }) => heard(stream, TOOLS)),
    [1, 1, 1, 1],
  )
})

t.test('the subscription stays until the last session has ended, and a later one opens another', async (t) => {
  const { modern, connect } = await start(t)
  const [first, second] = [await connect(), await connect()]
  await until(() => modern.subscriptions === 1, 'the subscription')
  await first.client.end()
  modern.touch({ tools: true })
  await until(() => heard(second.stream, TOOLS) === 1, 'the change')
  t.equal(modern.subscriptions, 1)
  await second.client.end()
  await until(() => modern.subscriptions === 0, 'the end of the subscription')
  const third = await connect()
  await until(() => modern.subscriptions === 1, 'another subscription')
  modern.touch({ tools: true })
  await until(() => heard(third.stream, TOOLS) === 1, 'the change')
  t.equal(subscriptionsOf(modern), 2)
})

t.test('another client, other capabilities or another filter have another subscription', async (t) => {
  const { modern, connect } = await start(t)
  await connect()
  await connect({ clientInfo: { name: 'another', version: '1' } })
  await connect({ capabilities: { roots: {} } })
  await until(() => modern.subscriptions === 3, 'three subscriptions')
  const { client, stream } = await connect()
  await client.request('ping')
  t.equal(subscriptionsOf(modern), 3)
  await client.request('resources/subscribe', { uri: A })
  await until(() => subscriptionsOf(modern) === 4, 'a subscription to the resource')
  modern.touch({ uris: [A] })
  await until(() => stream.messages.length === 1, 'the update')
})

t.test('principals do not share a subscription', async (t) => {
  const { modern, connect } = await start(t, {}, { auth: { tokens: { anna: 'a'.repeat(32), ben: 'b'.repeat(32) } } })
  for (const letter of ['a', 'b', 'a', 'b'])
    await connect({ headers: { authorization: `Bearer ${letter.repeat(32)}` } })
  await until(() => modern.subscriptions === 2, 'two subscriptions')
  t.equal(subscriptionsOf(modern), 2)
})

t.test('when a shared subscription ends, the sessions share another one', async (t) => {
  const { modern, connect } = await start(t)
  const all = [await connect(), await connect(), await connect()]
  await until(() => modern.subscriptions === 1, 'the subscription')
  modern.touch({ end: true })
  await until(() => subscriptionsOf(modern) === 2 && modern.subscriptions === 1, 'another subscription')
  for (const { client } of all) await client.request('ping')
  modern.touch({ tools: true })
  for (const { stream } of all) await until(() => heard(stream, TOOLS) > 0, 'the change')
  t.equal(subscriptionsOf(modern), 2)
})

t.test('a session with an open stream keeps no other request in memory', async (t) => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const { url, connect } = await start(t)
  const requests: WeakRef<IncomingMessage>[] = []
  const note = (message: unknown) => {
    const { request } = message as { request: IncomingMessage }
    if (String(request.socket.localPort) === new URL(url).port) requests.push(new WeakRef(request))
  }
  subscribe('http.server.request.start', note)
  t.teardown(() => unsubscribe('http.server.request.start', note))
  const { client, stream } = await connect()
  const kept = () => requests.flatMap((request) => request.deref()?.method ?? [])
  await until(() => {
    collect()
    return kept().join() === 'GET'
  }, 'the end of all requests but that of the stream')
  t.equal((await client.request('ping')).status, 200)
  stream.leave()
})
