/** `subscriptions/listen` in front of legacy servers. Numbers are those of test/invariants.md. */
import t, { type Test } from 'tap'
import { of, startAsker, talk } from '../support/asking.js'
import { startBridge } from '../support/bridge.js'
import { holdTimers } from '../support/clock.js'
import { openStream } from '../support/events.js'
import { repeatUntil, until } from '../support/eventually.js'
import { LegacyHttp, type Override, type Plan } from '../support/legacy-http.js'
import {
  ACKNOWLEDGED,
  ALL_LISTS,
  changed,
  hears,
  listen,
  listenText,
  SUBSCRIPTION_ID,
  told,
  updated,
} from '../support/listening.js'
import { call as callModern, headersFor, LOG_LEVEL } from '../support/modern.js'
import { openPipe } from '../support/pipe.js'
import { problems } from '../support/schema.js'

type Json = Record<string, unknown>

const WAYS = ['over stdio', 'on the stream of the session over HTTP', 'over HTTP+SSE'] as const
const URI = 'test://static'
/** Milliseconds for which the bridge keeps a subscription that nobody uses. */
const GRACE = 2_000

async function start(t: Test, way: (typeof WAYS)[number], plan: Plan = {}, settings: object = {}) {
  const asker = await startAsker(t, way, plan)
  const started = await startBridge(t, asker.server, settings)
  const client = talk(started.url, { capabilities: {} })
  /** Has something change at the server. */
  const touch = (change: Json) => client.call('tools/call', { name: 'touch', arguments: change })
  const subscribed = () => of(asker, 'resources/subscribe').map(({ params }) => (params as { uri: string }).uri)
  const unsubscribed = () => of(asker, 'resources/unsubscribe').map(({ params }) => (params as { uri: string }).uri)
  return { ...client, ...started, asker, touch, subscribed, unsubscribed }
}

for (const way of WAYS) {
  t.test(`acknowledges a subscription ${way} first, and reports its changes under its own id`, async (t) => {
    const { url, touch } = await start(t, way)
    for (const id of [1, 0, '1', '', 'listen:1', -7]) {
      const stream = await listen(url, { ...ALL_LISTS, resourceSubscriptions: [URI] }, { id })
      await stream.has(1)
      t.match(stream.headers, { 'content-type': 'text/event-stream', 'cache-control': 'no-store, no-transform' })
      t.equal(stream.headers['x-accel-buffering'], 'no')
      const [ack] = stream.messages
      t.same(problems('2026-07-28', 'SubscriptionsAcknowledgedNotification', ack), [])
      t.same(ack, {
        jsonrpc: '2.0',
        method: ACKNOWLEDGED,
        params: { notifications: { ...ALL_LISTS, resourceSubscriptions: [URI] }, _meta: { [SUBSCRIPTION_ID]: id } },
      })
      await touch({ tools: true, prompts: true, resources: true, uris: [URI] })
      const changes = await hears(stream, 4)
      const expected = [changed('prompts'), changed('resources'), changed('tools'), updated(URI)]
      t.same(
        changes.sort((a, b) => (String(a.method) < String(b.method) ? -1 : 1)),
        expected.sort((a, b) => (a.method < b.method ? -1 : 1)),
      )
      for (const { params } of stream.messages) t.same((params as { _meta: Json })._meta, { [SUBSCRIPTION_ID]: id })
      t.notMatch(stream.text, /^(?:id|retry):/m)
      stream.leave()
    }
    const big = '9007199254740993'
    const body = listenText(ALL_LISTS, { id: 'id' }).replace('"id":"id"', `"id":${big}`)
    const stream = await openStream('POST', url, headersFor('subscriptions/listen'), body)
    await stream.has(1)
    t.ok(stream.text.includes(`"${SUBSCRIPTION_ID}":${big}`))
    stream.leave()
  })

  t.test(`does not acknowledge or send what the server does not report ${way}`, async (t) => {
    const capabilities = { tools: { listChanged: true }, prompts: {}, resources: { subscribe: true } }
    const { url, touch, subscribed } = await start(t, way, { capabilities })
    const filter = { ...ALL_LISTS, resourceSubscriptions: [URI, 'test://refused', URI], vendorThings: true }
    const stream = await listen(url, filter)
    await stream.has(1)
    t.same((stream.messages[0]?.['params'] as Json)['notifications'], {
      toolsListChanged: true,
      resourceSubscriptions: [URI],
    })
    t.same(subscribed().sort(), ['test://refused', URI].sort(), 'each is asked for once')
    await touch({ prompts: true, resources: true, uris: ['test://refused', 'test://other', URI] })
    await touch({ tools: true })
    t.same(await hears(stream, 2), [updated(URI), changed('tools')])
  })

  t.test(`does not send what was not requested ${way}`, async (t) => {
    const { url, touch, call } = await start(t, way)
    const rows: [filter: Json, acknowledged: Json, change: ReturnType<typeof changed>][] = [
      [{ toolsListChanged: true, promptsListChanged: false }, { toolsListChanged: true }, changed('tools')],
      [{ promptsListChanged: true }, { promptsListChanged: true }, changed('prompts')],
      [{ resourcesListChanged: true, resourceSubscriptions: [] }, { resourcesListChanged: true }, changed('resources')],
    ]
    const streams = await Promise.all(rows.map(([filter]) => listen(url, filter)))
    for (const [n, [, acknowledged]] of rows.entries()) {
      await streams[n]?.has(1)
      t.same((streams[n]?.messages[0]?.['params'] as Json)['notifications'], acknowledged)
    }
    const logging = { name: 'log', arguments: { standalone: true, levels: ['error'] } }
    await call('tools/call', logging, { meta: { [LOG_LEVEL]: 'debug' } })
    await call('tools/call', { name: 'progress', arguments: { values: [1, 2] } }, { meta: { progressToken: 1 } })
    for (const list of ['resources', 'prompts', 'tools']) await touch({ [list]: true, uris: [URI] })
    for (const [n, [, , change]] of rows.entries()) {
      const stream = streams[n]
      if (stream) t.same(await hears(stream, 1), [change])
    }
  })

  t.test(`reports what is below a resource ${way} to its listeners, and changes at once as one`, async (t) => {
    const { url, touch, steps } = await start(t, way)
    const stream = await listen(url, { toolsListChanged: true, resourceSubscriptions: ['test://dir', 'test://end/'] })
    await stream.has(1)
    const tell = { method: changed('tools').method, params: {} }
    await steps(Array.from({ length: 20 }, () => ({ tell, by: 'session' as const })))
    await hears(stream, 1)
    await touch({
      uris: ['test://directory', 'test://dir/a', 'test://di', 'test://dir', 'test://end', 'test://end/b'],
    })
    const changes = await hears(stream, 4)
    t.same(changes.slice(-3), [updated('test://dir/a'), updated('test://dir'), updated('test://end/b')])
    t.ok(changes.length < 3 + 20, 'several changes of a list are one')
  })

  t.test(`does not report a resource that is acknowledged too late ${way}, and unsubscribes from it`, async (t) => {
    const { url, touch, unsubscribed } = await start(t, way)
    const stream = await listen(url, { resourceSubscriptions: ['test://late', URI] })
    await stream.has(1)
    t.same((stream.messages[0]?.['params'] as Json)['notifications'], { resourceSubscriptions: [URI] })
    await until(() => unsubscribed().includes('test://late'), 'the end of what came late')
    await touch({ uris: ['test://late', URI] })
    t.same(await hears(stream, 1), [updated(URI)])
  })

  t.test(`listeners of the same resource ${way} share one subscription at the server`, async (t) => {
    const grace = holdTimers(t, GRACE)
    const { url, touch, subscribed, unsubscribed } = await start(t, way)
    const [one, other] = await Promise.all([1, 1].map((id) => listen(url, { resourceSubscriptions: [URI] }, { id })))
    if (!one || !other) throw new Error('There are two of them')
    await one.has(1)
    await other.has(1)
    t.same(subscribed(), [URI])
    await touch({ uris: [URI] })
    t.same([await hears(one, 1), await hears(other, 1)], [[updated(URI)], [updated(URI)]])
    one.leave()
    await touch({ uris: [URI] })
    t.same(await hears(other, 2), [updated(URI), updated(URI)])
    const third = await listen(url, { resourceSubscriptions: [URI] })
    await third.has(1)
    other.leave()
    third.leave()
    const fourth = await listen(url, { resourceSubscriptions: [URI] })
    await fourth.has(1)
    t.same([subscribed(), unsubscribed()], [[URI], []], 'who listens again in time shares it as well')
    fourth.leave()
    const end = () => grace.run()
    await repeatUntil(end, () => unsubscribed().length > 0, 'the end of the subscription')
    t.same([subscribed(), unsubscribed()], [[URI], [URI]])
    const anew = await listen(url, { resourceSubscriptions: [URI] })
    await anew.has(1)
    t.same(subscribed(), [URI, URI], 'afterwards it is asked for again')
  })

  t.test(`a subscription that can report nothing ${way} says so and ends`, async (t) => {
    const { url } = await start(t, way, { capabilities: { tools: {}, resources: {} } })
    for (const filter of [ALL_LISTS, {}, { resourceSubscriptions: [URI] }, { toolsListChanged: false }]) {
      const stream = await listen(url, filter, { id: 'l' })
      await stream.ended()
      t.same(stream.messages, [
        { jsonrpc: '2.0', method: ACKNOWLEDGED, params: { notifications: {}, _meta: { [SUBSCRIPTION_ID]: 'l' } } },
        { jsonrpc: '2.0', id: 'l', result: { resultType: 'complete', _meta: { [SUBSCRIPTION_ID]: 'l' } } },
      ])
    }
  })

  t.test(`a bridge that is stopped ends every subscription ${way} with a result`, async (t) => {
    const { url, bridge } = await start(t, way)
    const streams = await Promise.all(
      ['a', 'b', 3].map((id) => listen(url, { ...ALL_LISTS, resourceSubscriptions: [URI] }, { id })),
    )
    for (const stream of streams) await stream.has(1)
    await bridge.close()
    for (const [n, stream] of streams.entries()) {
      await stream.ended()
      const id = ['a', 'b', 3][n]
      t.match(stream.messages.at(-1), { id, result: { resultType: 'complete', _meta: { [SUBSCRIPTION_ID]: id } } })
    }
  })

  t.test(`subscribes again at a lost server ${way}, and reports everything as changed`, async (t) => {
    let lost = false
    const override: Override = ({ headers, method }, response) => {
      // Over HTTP a server is lost when it does not know its session any more.
      if (!lost || headers['mcp-session-id'] !== 'session-1') return false
      response.writeHead(method === 'DELETE' ? 200 : 404).end()
      return true
    }
    const { url, touch, call, subscribed, asker } = await start(t, way, way.endsWith('over HTTP') ? { override } : {})
    const stream = await listen(url, { toolsListChanged: true, resourceSubscriptions: [URI] })
    await stream.has(1)
    lost = true
    await call('tools/call', { name: 'crash', arguments: {} })
    t.same((await hears(stream, 2)).sort(byMethod), [updated(URI), changed('tools')].sort(byMethod))
    t.same(subscribed(), [URI, URI])
    t.equal(stream.messages.filter(({ method }) => method === ACKNOWLEDGED).length, 1)
    await touch({ uris: [URI] })
    t.same((await hears(stream, 3)).at(-1), updated(URI))
    t.notOk(stream.over)
    t.equal(of(asker, 'initialize').length, 2)
  })

  t.test(`refuses what cannot be subscribed to ${way}`, async (t) => {
    const { call, asker } = await start(t, way)
    const rows: [notifications: unknown, status: number, code: number][] = [
      [undefined, 200, -32602],
      [null, 200, -32602],
      [[], 200, -32602],
      [true, 200, -32602],
      [{ resourceSubscriptions: URI }, 200, -32602],
      [{ resourceSubscriptions: [URI, 7] }, 200, -32602],
      [{ taskIds: 'x' }, 200, -32602],
      [{ taskIds: ['x'] }, 400, -32021],
      [{ resourceSubscriptions: Array.from({ length: 257 }, (_, n) => `test://${n}`) }, 200, -32603],
    ]
    for (const [notifications, status, code] of rows) {
      const answer = await call('subscriptions/listen', { notifications })
      t.match(
        { status: answer.status, code: answer.message.error?.code },
        { status, code },
        JSON.stringify(notifications),
      )
    }
    t.same(of(asker, 'resources/subscribe'), [])
  })
}

const byMethod = (a: { method: unknown }, b: { method: unknown }) => (String(a.method) < String(b.method) ? -1 : 1)

t.test('over HTTP nothing is acknowledged or sent if the server has no stream', async (t) => {
  const legacy = await LegacyHttp.start(t, { get: 405 })
  const { url } = await startBridge(t, { url: legacy.url })
  const { message } = await callModern(url, 'server/discover')
  t.notMatch(JSON.stringify(message.result?.['capabilities']), /listChanged|subscribe/)
  const stream = await listen(url, { ...ALL_LISTS, resourceSubscriptions: [URI] })
  await stream.ended()
  t.match(stream.messages, [{ params: { notifications: {} } }, { result: { resultType: 'complete' } }])
  t.same(legacy.of('resources/subscribe'), [])
})

t.test('over HTTP acknowledges what the server declares, if it has a stream', async (t) => {
  const legacy = await LegacyHttp.start(t, {
    capabilities: { tools: { listChanged: true }, resources: { subscribe: true } },
  })
  const { url } = await startBridge(t, { url: legacy.url })
  const { message } = await callModern(url, 'server/discover')
  t.same(message.result?.['capabilities'], { tools: { listChanged: true }, resources: { subscribe: true } })
  const each = await startBridge(t, { url: legacy.url, session: 'per-request' })
  const discovered = await callModern(each.url, 'server/discover')
  t.notMatch(JSON.stringify(discovered.message.result?.['capabilities']), /listChanged|subscribe/)
})

t.test('restores level and subscriptions of a lost session before the next request', async (t) => {
  for (const level of ['warning', undefined]) {
    let lost = false
    const legacy = await LegacyHttp.start(t, {
      asks: true,
      override: ({ headers }, response) => {
        if (!lost || headers['mcp-session-id'] !== 'session-1') return false
        response.writeHead(404).end()
        return true
      },
    })
    const { url } = await startBridge(t, { url: legacy.url })
    const options = { meta: level === undefined ? {} : { [LOG_LEVEL]: level } }
    await callModern(url, 'prompts/list', {}, options)
    const stream = await listen(url, { toolsListChanged: true, resourceSubscriptions: [URI, 'test://x'] })
    await stream.has(1)
    lost = true
    const answer = await callModern(url, 'prompts/list', {}, options)
    t.ok(answer.message.result)
    const heard = legacy.received
      .filter(({ headers, method }) => headers['mcp-session-id'] === 'session-2' && method === 'POST')
      .map(({ message }) => message['method'])
    const before = heard.slice(0, heard.indexOf('prompts/list'))
    const count = (method: string) => before.filter((one) => one === method).length
    t.equal(count('logging/setLevel'), level === undefined ? 0 : 1, 'the level')
    t.equal(count('resources/subscribe'), 2, 'the subscriptions')
    t.equal((await hears(stream, 3)).length, 3)
    t.notOk(stream.over)
  }
})

t.test('does not listen any more to an HTTP server whose stream is lost for good', async (t) => {
  let gone = false
  const legacy = await LegacyHttp.start(t, {
    override: ({ method }, response) => {
      if (!gone || method !== 'GET') return false
      response.writeHead(405).end()
      return true
    },
  })
  const { url } = await startBridge(t, { url: legacy.url })
  const stream = await listen(url, { toolsListChanged: true }, { id: 'l' })
  await stream.has(1)
  gone = true
  legacy.cut()
  await stream.ended()
  t.match(stream.messages.at(-1), { id: 'l', result: { resultType: 'complete' } })
})

t.test('reopens a broken HTTP stream, and reports what may have changed meanwhile', async (t) => {
  const legacy = await LegacyHttp.start(t, { asks: true })
  const { url } = await startBridge(t, { url: legacy.url })
  const stream = await listen(url, { toolsListChanged: true, resourceSubscriptions: [URI] })
  await stream.has(1)
  legacy.cut()
  t.same((await hears(stream, 2)).sort(byMethod), [updated(URI), changed('tools')].sort(byMethod))
  t.equal(legacy.of('initialize').length, 1, 'in the same session')
  await until(() => legacy.streams === 1, 'the stream')
  legacy.push({ jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri: URI } })
  t.same((await hears(stream, 3)).at(-1), updated(URI))
})

t.test('on a pipe subscriptions are separated by their ids, and ended by them', async (t) => {
  const asker = await startAsker(t, 'over stdio')
  const pipe = openPipe(t, asker.server)
  const about = (id: unknown) =>
    pipe.messages().filter((message) => {
      const { _meta } = (message['params'] ?? {}) as { _meta?: Json }
      return message['id'] === id || _meta?.[SUBSCRIPTION_ID] === id
    })
  const touch = (args: Json) => pipe.call('tools/call', { name: 'touch', arguments: args }, { id: 'touch' })
  pipe.line(listenText({ toolsListChanged: true, resourceSubscriptions: [URI] }, { id: 7 }))
  pipe.line(listenText({ promptsListChanged: true, resourceSubscriptions: [URI] }, { id: '7' }))
  await until(() => about(7).length === 1 && about('7').length === 1, 'both to be acknowledged')
  t.match([about(7)[0], about('7')[0]], [{ method: ACKNOWLEDGED }, { method: ACKNOWLEDGED }])
  t.equal(of(asker, 'resources/subscribe').length, 1)
  pipe.line(listenText(ALL_LISTS, { id: 7 }))
  await until(() => about(7).length === 2, 'the refusal of an id that is in use')
  t.match(about(7)[1], { id: 7, error: { code: -32600 } })

  await touch({ tools: true, prompts: true, uris: [URI] })
  await until(() => about(7).length === 4 && about('7').length === 3, 'what has changed')
  t.same(told({ messages: about(7) }).sort(byMethod), [updated(URI), changed('tools')].sort(byMethod))
  t.same(told({ messages: about('7') }).sort(byMethod), [updated(URI), changed('prompts')].sort(byMethod))

  pipe.line(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 7 } }))
  await touch({ tools: true, uris: [URI] })
  await until(() => told({ messages: about('7') }).length === 3, 'the other to be told still')
  t.equal(about(7).length, 4, 'a subscription that was ended is answered nothing')
  await pipe.bridge.close()
  await until(() => about('7').some(({ result }) => result !== undefined), 'the end of the other')
  t.match(about('7').at(-1), { id: '7', result: { resultType: 'complete', _meta: { [SUBSCRIPTION_ID]: '7' } } })
})

t.test('bounds subscriptions separately from calls', async (t) => {
  const asker = await startAsker(t, 'over stdio')
  const { url } = await startBridge(t, asker.server, { limits: { subscriptions: 2, calls: 1 } })
  const streams = await Promise.all([1, 2].map((id) => listen(url, ALL_LISTS, { id })))
  for (const stream of streams) await stream.has(1)
  const refused = await callModern(url, 'subscriptions/listen', { notifications: ALL_LISTS })
  t.match({ status: refused.status, code: refused.message.error?.code }, { status: 503, code: -32603 })
  t.equal((await callModern(url, 'tools/list')).status, 200)
  streams[0]?.leave()
  let again = await listen(url, ALL_LISTS)
  for (let n = 0; again.status === 503 && n < 100; n++) again = await listen(url, ALL_LISTS)
  t.equal(again.status, 200, 'there is room again')
})
