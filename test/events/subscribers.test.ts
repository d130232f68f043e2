/** Subscriptions of addresses to events belong to the principal that made them, in one bridge and in replicas. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fastify } from 'fastify'
import t, { type Test } from 'tap'
import { mcpBridge } from '../../src/app/embed/fastify.js'
import { startBridge } from '../support/bridge.js'
import { startBridgeProcess } from '../support/bridge-process.js'
import { opened } from '../support/event-stream.js'
import { startEventful, webhook } from '../support/eventful.js'
import { until } from '../support/eventually.js'
import { temporaryFolder } from '../support/folder.js'
import { call } from '../support/modern.js'
import { noRedis, RedisServer } from '../support/redis.js'

type Json = Record<string, unknown>

const TOKENS = { alice: 'alice-0123456789abcdef', bob: 'bob-0123456789abcdefgh' }
const HOOK = 'https://93.184.216.34/hook'
const UNKNOWN = { error: { code: -32023, data: { kind: 'subscription' } } }
const REFUSED = { error: { code: -32024, data: { reason: 'callback_refused' } } }

/** The settings that make bridges replicas of each other. */
async function sharedBy(t: Test): Promise<Json> {
  return { redis: { url: (await RedisServer.start(t)).url }, stateKeys: ['a secret that all the replicas know of'] }
}

async function start(t: Test, count: number, settings: Json = {}) {
  const server = await startEventful(t)
  const own = { url: server.url, events: { callbacks: ['https://93.184.216.34'] } }
  const redis = count > 1 ? await sharedBy(t) : {}
  const bridges = await Promise.all(
    Array.from({ length: count }, () => startBridge(t, own, { auth: { tokens: TOKENS }, ...redis, ...settings })),
  )
  const ask = async (at: number, who: keyof typeof TOKENS, method: string, more: Json = {}) => {
    const headers = { authorization: `Bearer ${TOKENS[who]}` }
    const { url } = bridges[at] as (typeof bridges)[0]
    return (await call(url, method, webhook(HOOK, 'mail.received', more), { headers })).message
  }
  const sent = () => server.asked.map(({ method }) => method)
  return { server, bridges, ask, sent }
}

/** The bridges that alice and bob use. */
const WAYS: [string, number, number, number][] = [
  ['of one bridge', 1, 0, 0],
  ['of two replicas', 2, 0, 1],
]
for (const [what, count, alices, bobs] of WAYS)
  t.test(
    `a subscription of somebody else can be neither ended nor replaced, at clients ${what}`,
    { skip: count > 1 && noRedis },
    async (t) => {
      const { ask, sent } = await start(t, count)
      t.match(await ask(bobs, 'bob', 'events/unsubscribe'), UNKNOWN, 'there is none')
      t.match(await ask(alices, 'alice', 'events/subscribe', { arguments: { a: 1, b: 2 } }), {
        result: { id: 'sub_one' },
      })
      for (const given of ['{"b":2,"a":1}', '{"a":1.0,"b":2}'])
        t.match(await ask(bobs, 'bob', 'events/subscribe', { arguments: JSON.parse(given) }), REFUSED, given)
      t.match(await ask(bobs, 'bob', 'events/unsubscribe', { arguments: { b: 2, a: 1 } }), UNKNOWN)
      t.same(sent(), ['events/subscribe'], 'the server saw what alice sent')
      t.match(
        await ask(bobs, 'bob', 'events/subscribe', { arguments: { a: 2 } }),
        { result: {} },
        'another subscription',
      )
      // Alice's calls may reach the other replica.
      t.match(await ask(bobs, 'alice', 'events/subscribe', { arguments: { a: 1, b: 2 } }), { result: {} }, 'refreshed')
      t.match(await ask(bobs, 'alice', 'events/unsubscribe', { arguments: { a: 1, b: 2 } }), { result: {} })
      t.match(await ask(bobs, 'bob', 'events/subscribe', { arguments: { a: 1, b: 2 } }), { result: {} }, 'free again')
    },
  )

t.test('callers without a credential are one principal, so they get no events at an address', async (t) => {
  const server = await startEventful(t)
  const own = { url: server.url, events: { callbacks: ['https://93.184.216.34'] } }
  const app = fastify()
  app.register(mcpBridge, { prefix: '/mcp', mcpServers: { test: own } })
  const origin = await app.listen({ host: '127.0.0.1', port: 0 })
  t.teardown(() => app.close())
  const ask = async (method: string, params: Json = webhook(HOOK)) =>
    (await call(`${origin}/mcp`, method, params)).message
  for (const method of ['events/subscribe', 'events/unsubscribe']) t.match(await ask(method), REFUSED, method)
  t.same(server.asked, [])
  const { events } = (await ask('events/list', {})).result as { events: Json[] }
  t.same(
    events.map(({ delivery }) => delivery),
    [['poll', 'push'], ['poll']],
  )
  t.match(await ask('events/poll', { name: 'mail.received' }), { result: { cursor: 'one-2' } })
})

t.test('a subscription that the server refuses stays free', async (t) => {
  const { ask } = await start(t, 1)
  t.match(await ask(0, 'alice', 'events/subscribe', { name: 'nothing' }), { error: { code: -32023 } })
  t.match(await ask(0, 'alice', 'events/unsubscribe', { name: 'nothing' }), UNKNOWN)
})

t.test('the audit log says who tried the subscription of somebody else', async (t) => {
  const file = join(temporaryFolder(t), 'audit.jsonl')
  const { ask } = await start(t, 1, { audit: { file } })
  await ask(0, 'alice', 'events/subscribe')
  await ask(0, 'bob', 'events/subscribe')
  await ask(0, 'bob', 'events/unsubscribe')
  const lines = readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Json)
  t.match(lines, [
    { principal: 'alice', outcome: 'ok' },
    { principal: 'bob', method: 'events/subscribe', outcome: 'refused', reason: 'foreignSubscription' },
    { principal: 'bob', method: 'events/unsubscribe', outcome: 'refused', reason: 'foreignSubscription' },
  ])
})

t.test(
  'a replica that is killed leaves subscriptions to their callers, and streams to the next one',
  { skip: noRedis },
  async (t) => {
    const server = await startEventful(t)
    const settings = {
      listen: 'http://127.0.0.1:0/mcp',
      mcpServers: { test: { url: server.url, events: { callbacks: ['https://93.184.216.34'] } } },
      auth: { tokens: TOKENS },
      ...(await sharedBy(t)),
    }
    const killed = await startBridgeProcess(t, settings)
    const { url: left } = await startBridge(t, {}, settings)
    const here = killed.urls['test'] as string
    const as = (who: keyof typeof TOKENS) => ({ headers: { authorization: `Bearer ${TOKENS[who]}` } })
    t.match((await call(here, 'events/subscribe', webhook(HOOK), as('alice'))).message, { result: { id: 'sub_one' } })
    const stream = await opened(t, here, { name: 'mail.received' }, as('alice'))
    const [, event] = await stream.messages(3)
    const { cursor } = (event as { params: { cursor: string } }).params
    process.kill(killed.pid, 'SIGKILL')
    await stream.ended()
    await until(() => server.streams.size === 0, 'the end of the stream at the server')
    const again = await opened(t, left, { name: 'mail.received', cursor }, as('alice'))
    t.match(await again.messages(1), [{ method: 'notifications/events/active' }])
    t.match(server.asked.at(-1), { method: 'events/stream', cursor })
    t.match((await call(left, 'events/unsubscribe', webhook(HOOK), as('bob'))).message, UNKNOWN)
    t.match((await call(left, 'events/subscribe', webhook(HOOK), as('bob'))).message, REFUSED)
    t.match((await call(left, 'events/unsubscribe', webhook(HOOK), as('alice'))).message, { result: {} })
  },
)

t.test(
  'a stream of a replica that ends is opened again at another one, with its cursor',
  { skip: noRedis },
  async (t) => {
    const { server, bridges } = await start(t, 2)
    const [here, there] = bridges as [(typeof bridges)[0], (typeof bridges)[0]]
    const headers = { authorization: `Bearer ${TOKENS.alice}` }
    const stream = await opened(t, here.url, { name: 'mail.received' }, { headers })
    const [, event] = await stream.messages(3)
    const { cursor } = (event as { params: { cursor: string } }).params
    await here.bridge.close()
    await stream.ended()
    await until(() => server.streams.size === 0, 'the end of the stream at the server')
    const again = await opened(t, there.url, { name: 'mail.received', cursor }, { headers })
    t.match(await again.messages(1), [{ method: 'notifications/events/active' }])
    t.match(server.asked.at(-1), { method: 'events/stream', cursor })
  },
)

t.test('a cursor of a group is good at each replica', { skip: noRedis }, async (t) => {
  const one = await startEventful(t, { label: 'mail' })
  const two = await startEventful(t, { label: 'chat' })
  const redis = await sharedBy(t)
  const mcpServers = { mail: { url: one.url }, chat: { url: two.url } }
  const settings = { mcpServers, groups: { team: { servers: ['mail', 'chat'] } }, auth: { tokens: TOKENS }, ...redis }
  const urls = await Promise.all(
    [0, 1].map(async () => new URL('/team/mcp', (await startBridge(t, {}, settings)).url).href),
  )
  const headers = { authorization: `Bearer ${TOKENS.alice}` }
  const poll = async (url: string | undefined, cursor: unknown) =>
    (await call(String(url), 'events/poll', { name: 'chat__mail.received', cursor }, { headers })).message.result
  const cursor = (await poll(urls[0], null))?.['cursor']
  t.match(await poll(urls[1], cursor), { events: [{ name: 'chat__mail.received' }] })
  t.match(two.asked.at(-1), { cursor: 'chat-2' })
})
