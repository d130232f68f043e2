/** Redis away, slow, emptied or too full, and replicas that are gone: nothing is done twice, and what is said is true. */
import { setTimeout as sleep } from 'node:timers/promises'
import { createClient } from '@redis/client'
import t, { type Test } from 'tap'
import { ABLE, ADA, all, NAME, of, type Round, startAsker, talk } from '../support/asking.js'
import { startBridge } from '../support/bridge.js'
import { startBridgeProcess } from '../support/bridge-process.js'
import { holdTimers } from '../support/clock.js'
import { openStream } from '../support/events.js'
import { until } from '../support/eventually.js'
import { LegacyClient } from '../support/legacy-client.js'
import { type Answer, CAPABILITIES, call, envelope, headersFor, send } from '../support/modern.js'
import { noRedis, RedisServer } from '../support/redis.js'

const STATE_KEYS = ['a secret that all the replicas know of']
const LOST = { code: -32603, data: { reason: 'suspended_call_lost', outcome: 'unknown' } }
const AWAY = { code: -32603, data: { reason: 'store_unavailable', outcome: 'not_executed', retryAfterMs: 1_000 } }

async function start(t: Test, { args = [] as string[], settings = {}, count = 2 } = {}) {
  const asker = await startAsker(t, 'over stdio')
  const redis = await RedisServer.start(t, ...args)
  const replica = (url = redis.url) =>
    startBridge(t, asker.server, { redis: { url, timeout: COMMAND }, stateKeys: STATE_KEYS, ...settings })
  const replicas = await Promise.all(Array.from({ length: count }, () => replica()))
  const urls = replicas.map(({ url }) => url) as [string, string, string]
  return {
    asker,
    redis,
    replica,
    replicas,
    urls,
    executions: () => of(asker, 'tools/call').length,
    answers: () => of(asker).length,
  }
}

/** A call that waits for an answer, and how to give it by way of any replica. */
async function park(url: string): Promise<(url: string) => Promise<Answer & { said: unknown }>> {
  const here = talk(url)
  const first = await here.steps([{ ask: [NAME] }])
  const params = { ...here.paramsOf(first), inputResponses: all(first, ADA), requestState: first.state }
  return (url) => talk(url).call('tools/call', params) as Promise<Round>
}

/** Milliseconds for which a replica is not heard before it is known to be lost. */
const SILENT = 5_000

/** Lets no silence become longer while something is done: whoever has to wait for that waits for ever. */
async function withoutSilence<T>(t: Test, act: () => Promise<T>): Promise<T> {
  const now = performance.now()
  const { restore } = t.intercept(performance, 'now', { value: () => now })
  return act().finally(restore)
}
/** Milliseconds for a command to Redis: many more than it takes. */
const COMMAND = 30_000

const test = (name: string, body: (t: Test) => Promise<void>) => t.test(name, { skip: noRedis }, body)

test('while Redis is down nothing stops that needs nobody else, and nothing is said to be unknown', async (t) => {
  const { redis, urls, executions, answers } = await start(t)
  const [one, two] = urls
  const retry = await park(one)
  const client = await LegacyClient.open(one)
  await redis.stop()
  t.equal((await call(two, 'tools/list')).status, 200, 'a stateless call')

  const refused = await retry(two)
  t.match(refused, { status: 503, headers: { 'retry-after': '1', 'mcp-bridge-error': 'store_unavailable' } })
  t.match(refused.message.error, AWAY)
  const body = JSON.stringify({ jsonrpc: '2.0', id: 5, method: 'tools/list' })
  t.equal((await send('POST', two, body, client.headers as never)).status, 503)
  t.equal((await client.request('tools/list')).status, 200, 'where it lives, a session is served all the same')
  const parked = await park(two)
  t.same((await parked(two)).said, [ADA], 'and a call that nobody else has to carry')

  await redis.start()
  await until(async () => (await retry(two)).said !== undefined)
  t.same((await retry(two)).said, [ADA], 'the call is still there')
  t.equal((await send('POST', two, body, client.headers as never)).status, 200, 'and so is the session')
  t.same([executions(), answers()], [2, 2])
})

test('a bridge starts without Redis, and finds it later', async (t) => {
  const { redis, urls, replicas } = await start(t)
  await redis.stop()
  const asker = await startAsker(t, 'over stdio')
  const settings = { redis: { url: redis.url, timeout: COMMAND }, stateKeys: STATE_KEYS }
  const late = await startBridge(t, asker.server, settings)
  t.equal((await call(late.url, 'tools/list')).status, 200)
  t.ok(late.log.some(({ level, event }) => level === 40 && event === 'redis_unavailable'))
  await redis.start()
  const retry = await park(urls[0])
  await until(async () => (await retry(urls[1])).said !== undefined)
  await until(() => late.log.some(({ event }) => event === 'redis_available'))
  t.ok(replicas.every(({ log }) => log.filter(({ event }) => event === 'redis_unavailable').length === 1))
})

test('a Redis that stands still for a while delays only what it carries', async (t) => {
  const { redis, urls, executions } = await start(t)
  const [one, two] = urls
  const retry = await park(one)
  redis.freeze(true)
  let over = false
  const carried = retry(two).finally(() => {
    over = true
  })
  for (let n = 0; n < 20; n++) t.equal((await call(two, 'tools/list')).status, 200, 'a stateless call')
  t.notOk(over, 'these were answered while the other waits')
  redis.freeze(false)
  t.same((await carried).said, [ADA])
  t.equal(executions(), 1)
})

test('an emptied Redis forgets nothing that matters', async (t) => {
  const { redis, urls, executions } = await start(t)
  const client = createClient({ url: redis.url })
  await client.connect()
  t.teardown(() => client.destroy())
  const retry = await park(urls[0])
  await client.flushAll()
  t.same((await retry(urls[1])).said, [ADA])
  t.equal(executions(), 1)
})

test('of many who use one state at once, while Redis starts anew, one reaches the server', async (t) => {
  const { redis, urls, executions, answers } = await start(t, { count: 3 })
  const retry = await park(urls[0])
  const all = Promise.all(Array.from({ length: 50 }, (_, n) => retry(urls[n % 3] as string)))
  await sleep(5)
  await redis.stop()
  await redis.start()
  const said = await all
  t.same([executions(), answers()], [1, 1])
  const done = said.filter((answer) => answer.said !== undefined && answer.message.result)
  t.ok(done.length >= 1, `${done.length} were told what came of it`)
  const others = said.filter((answer) => !done.includes(answer)).map(({ message }) => message.error?.data?.['reason'])
  t.ok(
    others.every((reason) => reason === 'invalid_request_state' || reason === 'store_unavailable'),
    others.join(),
  )
})

test('replicas that know each other need no Redis', async (t) => {
  const { redis, urls, executions } = await start(t)
  const [one, two] = urls
  const client = await LegacyClient.open(one)
  const body = JSON.stringify({ jsonrpc: '2.0', id: 5, method: 'tools/list' })
  const status = async () => (await send('POST', two, body, client.headers as never)).status
  t.equal(await status(), 200)
  const retry = await park(one)
  await redis.stop()
  t.equal(await status(), 200)
  t.same((await retry(two)).said, [ADA])
  t.equal(executions(), 1)
})

/** A replica in a process of its own, which a test can stop and kill. */
async function apartFrom(t: Test, { asker, redis }: Awaited<ReturnType<typeof start>>) {
  const { urls, pid } = await startBridgeProcess(t, {
    mcpServers: { test: asker.server },
    listen: 'http://127.0.0.1:0/mcp',
    redis: { url: redis.url, timeout: COMMAND },
    stateKeys: STATE_KEYS,
  })
  // A process that stands still would not end with the test.
  t.teardown(() => process.kill(pid, 'SIGCONT'))
  return {
    url: urls['test'] as string,
    freeze: () => process.kill(pid, 'SIGSTOP'),
    thaw: () => process.kill(pid, 'SIGCONT'),
  }
}

test('a replica that stands still is lost, which is known to all who ask; its calls are not made again', async (t) => {
  const started = await start(t, { count: 1 })
  const { urls, asker } = started
  const apart = await apartFrom(t, started)
  const [here, there] = await Promise.all([park(apart.url), park(apart.url)])
  const client = await LegacyClient.open(apart.url)
  apart.freeze()
  const began = performance.now()
  const lost = await here(urls[0])
  t.ok(performance.now() - began > SILENT * 0.9, 'it takes a while to be sure')
  t.equal(lost.status, 200)
  t.match(lost.message.error, LOST)
  t.equal(lost.headers['mcp-bridge-error'], 'suspended_call_lost')
  const held = holdTimers(t, SILENT)
  const again = await there(urls[0])
  t.match(again.message.error, LOST, 'nobody else waits for that')
  const body = JSON.stringify({ jsonrpc: '2.0', id: 5, method: 'tools/list' })
  t.equal((await send('POST', urls[0], body, client.headers as never)).status, 404, 'the client opens another session')
  t.equal(of(asker, 'tools/call').length, 2)
  held.run()

  apart.thaw()
  await until(async () => (await send('POST', urls[0], body, client.headers as never)).status === 200)
  t.same((await there(urls[0])).said, [ADA], 'whoever reaches it is served')
})

test('a request of a session that its replica had when it stood still may have been done', async (t) => {
  const started = await start(t, { count: 1 })
  const { urls, asker } = started
  const apart = await apartFrom(t, started)
  const client = await LegacyClient.open(apart.url)
  const params = { name: 'wait', arguments: { ms: 60_000 } }
  const request = (id: number) => JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params })
  const waiting = send('POST', urls[0], request(5), client.headers as never)
  await until(() => of(asker, 'tools/call').length === 1, 'the call at the server')
  apart.freeze()
  const { status, message } = await waiting
  t.equal(status, 200)
  t.match(message, { id: 5, error: { code: -32603, data: { reason: 'replica_lost', outcome: 'unknown' } } })
  t.equal((await send('POST', urls[0], request(6), client.headers as never)).status, 404)
})

test('a replica that was stopped leaves word', async (t) => {
  const { urls, replicas } = await start(t)
  const [one] = replicas
  const retry = await park(urls[0])
  await one?.bridge.close()
  const lost = await withoutSilence(t, () => retry(urls[1]))
  t.match(lost.message.error, LOST, 'nobody waits until the silence is long enough')
})

test('what a stream has begun to say ends with an error, where its replica is lost', async (t) => {
  const started = await start(t, { count: 1 })
  const { urls } = started
  const apart = await apartFrom(t, started)
  const here = talk(apart.url)
  const tell = { tell: { method: 'notifications/progress', params: { progress: 1 } } }
  const steps = [{ ask: [NAME] }, tell, { wait: 60_000 }] as Parameters<typeof here.steps>[0]
  const first = await here.steps(steps, {}, { meta: { progressToken: 'p' } })
  const retry = { ...here.paramsOf(first), inputResponses: all(first, ADA), requestState: first.state }
  const meta = envelope({ [CAPABILITIES]: ABLE, progressToken: 'p' })
  const body = JSON.stringify({ jsonrpc: '2.0', id: 77, method: 'tools/call', params: { ...retry, _meta: meta } })
  const stream = await openStream('POST', urls[0], headersFor('tools/call', retry), body)
  await stream.has(1)
  apart.freeze()
  await stream.ended()
  const { messages } = stream
  t.match(messages[0], { method: 'notifications/progress' })
  t.match(messages.at(-1), { id: 77, error: LOST })
})

/** Resolves when a spy has heard all that was published so far: what it hears last is this. */
async function spied(
  client: { publish(channel: string, message: string): Promise<unknown> },
  seen: { channel: string }[],
) {
  await client.publish('end', '')
  await until(() => seen.some(({ channel }) => channel === 'end'), 'the last message')
  seen.splice(
    seen.findIndex(({ channel }) => channel === 'end'),
    1,
  )
}

test('nobody who has Redis learns anything, or can have something done again', async (t) => {
  const { redis, urls, replicas, executions } = await start(t, {
    settings: { auth: { tokens: { alice: 'token-of-alice-0123456789' } } },
  })
  const client = createClient({ url: redis.url })
  const spy = createClient({ url: redis.url, RESP: 2 })
  await Promise.all([client.connect(), spy.connect()])
  t.teardown(() => {
    client.destroy()
    spy.destroy()
  })
  const seen: { channel: string; message: Buffer }[] = []
  await spy.pSubscribe('*', (message, channel) => seen.push({ channel: String(channel), message }), true)
  const headers = { authorization: 'Bearer token-of-alice-0123456789' }
  const open = await LegacyClient.open(urls[0], { headers })
  const acts = { jsonrpc: '2.0', id: 5, method: 'tools/call', params: { name: 'act', arguments: { key: 'canary-1' } } }
  const answer = await send('POST', urls[1], JSON.stringify(acts), open.headers as never)
  t.equal(answer.status, 200)
  await spied(client, seen)
  const everything = Buffer.concat(seen.map(({ message }) => message)).toString('latin1')
  t.notMatch(everything, /canary|alice|Bearer|tools|jsonrpc/)
  t.ok(seen.every(({ channel }) => channel.startsWith('mcp-bridge:')))
  const before = executions()
  for (const { channel, message } of seen.splice(0)) await client.publish(channel, message)
  // Replicas answer in the order in which they hear: this goes the same way, later.
  const later = { ...acts, id: 6, method: 'tools/list', params: {} }
  t.equal((await send('POST', urls[1], JSON.stringify(later), open.headers as never)).status, 200)
  t.equal(executions(), before, 'what was said again was not done again')
  await replicas[1]?.bridge.close()
  const keys = await client.keys('*')
  t.ok(keys.length > 0)
  for (const key of keys) {
    t.match(key, /^mcp-bridge:/)
    t.ok((await client.pTTL(key)) > 0, `${key} does not stay for ever`)
    t.notMatch(String(await client.get(key)), /canary|alice|stdio/)
  }
})

test('a Redis that may forget what it likes is warned of', async (t) => {
  const { replicas } = await start(t, { args: ['--maxmemory', '10mb', '--maxmemory-policy', 'allkeys-lru'], count: 1 })
  await until(() => replicas[0]?.log.some(({ policy }) => policy === 'allkeys-lru') === true)
  t.pass()
})

test('a client that is destroyed while it connects to Redis ends', async (t) => {
  const server = await RedisServer.start(t)
  const { clientsOf } = await import('../../src/services/replicas/client.js')
  const { asking } = clientsOf({ url: server.url })
  asking.on('error', () => {})
  asking.connect().catch(() => {})
  await new Promise(setImmediate)
  asking.destroy()
  const watcher = createClient({ url: server.url })
  watcher.on('error', () => {})
  await watcher.connect()
  t.teardown(() => watcher.destroy())
  const received = async () => Number(/total_connections_received:(\d+)/.exec(await watcher.info('stats'))?.[1])
  await until(async () => (await received()) === 2, 'both connections at Redis')
  await server.stop()
  // Without an end it would send pings for as long as the process lives.
  await until(() => !asking.isReady, 'the end of the client')
})
