/** Replicas that share a Redis with Sentinels, or a Redis Cluster: they work, and go on after a primary is killed. */
import t, { type Test } from 'tap'
import { keyOf, Sealer } from '../../src/base/crypto/seal.js'
import { Redis } from '../../src/services/replicas/redis.js'
import { SealedStore } from '../../src/services/replicas/store.js'
import { ADA, all, NAME, of, startAsker, talk } from '../support/asking.js'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { LegacyClient } from '../support/legacy-client.js'
import { call, post, send } from '../support/modern.js'
import { askRedis, noRedis, RedisServer, redisTls, startCluster, startSentinels } from '../support/redis.js'

const PASSWORD = 'a-password'
const OF_SENTINELS = 'another-password'
const QUIET = { debug: () => {}, info: () => {}, warn: () => {} }
const TOKENS = Object.fromEntries(
  ['ada', 'bea', 'cid', 'dot', 'eve', 'fay'].map((name) => [name, `token-of-${name}-0123456789`]),
)

const test = (name: string, body: (t: Test) => Promise<void>) => t.test(name, { skip: noRedis }, body)

/** Two bridges; what one of them owns is asked for at the other. */
async function replicas(t: Test, redis: object, settings: object = {}) {
  const asker = await startAsker(t, 'over stdio')
  const shared = { redis: { timeout: 2_000, ...redis }, stateKeys: ['k'.repeat(32)], ...settings }
  const one = await startBridge(t, asker.server, shared)
  const other = await startBridge(t, asker.server, shared)
  const isForwarded = async () => {
    const client = await LegacyClient.open(one.url)
    const body = JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'tools/list' })
    const answer = await send('POST', other.url, body, client.headers as never)
    return answer.message.result !== undefined
  }
  /** A call that waits for an answer, and how to give it by way of the other replica. */
  const park = async () => {
    const here = talk(one.url)
    const first = await here.steps([{ ask: [NAME] }])
    const params = { ...here.paramsOf(first), inputResponses: all(first, ADA), requestState: first.state }
    return () => talk(other.url).call('tools/call', params)
  }
  const isSecret = () => t.notMatch(JSON.stringify([one.log, other.log]), new RegExp(`${PASSWORD}|${OF_SENTINELS}`))
  return { asker, one, other, isForwarded, park, isSecret }
}

test('replicas find the primary through Sentinels, and the next one after it is killed', async (t) => {
  const auth = ['--requirepass', PASSWORD, '--masterauth', PASSWORD]
  const primary = await RedisServer.start(t, ...auth)
  await RedisServer.start(t, ...auth, '--replicaof', `127.0.0.1 ${primary.port}`)
  const sentinels = await startSentinels(t, primary, { password: PASSWORD })
  const { one, isForwarded, isSecret } = await replicas(t, { url: `redis://:${PASSWORD}@bridge`, sentinels })
  await until(isForwarded, 'a forwarded request')
  await primary.stop()
  t.equal((await call(one.url, 'tools/list')).status, 200, 'without another replica')
  await until(isForwarded, 'a forwarded request after the failover')
  isSecret()
})

test('a replica that publishes all the time publishes at the next primary', async (t) => {
  const primary = await RedisServer.start(t)
  await RedisServer.start(t, '--replicaof', `127.0.0.1 ${primary.port}`)
  const sentinels = await startSentinels(t, primary)
  const redis = new Redis({ url: 'redis://bridge', sentinels, timeout: 250, log: QUIET })
  t.teardown(() => redis.close())
  await redis.connect()
  await until(() => redis.working)
  let published = 0
  const publish = () =>
    redis.publish('channel', Buffer.from('x')).then(
      () => published++,
      () => {},
    )
  // More at once than there are connections, so that the primary has some when it is killed.
  const flow = setInterval(() => {
    for (let n = 0; n < 20; n++) publish().catch(() => {})
  }, 5)
  t.teardown(() => clearInterval(flow))
  await until(() => published > 100)
  await primary.stop()
  await until(() => !redis.working, 'the loss of the primary')
  published = 0
  await until(() => published > 5_000, 'steady publishing at the next primary')
  t.ok(redis.working)
})

test('replicas use Sentinels and a Redis with TLS, client certificates and two passwords', async (t) => {
  const { args, ...pem } = await redisTls(t)
  const auth = ['--requirepass', PASSWORD, '--masterauth', PASSWORD, ...args]
  const primary = await RedisServer.start(t, ...auth)
  await RedisServer.start(t, ...auth, '--replicaof', `127.0.0.1 ${primary.port}`)
  const sentinels = await startSentinels(t, primary, { password: PASSWORD, own: OF_SENTINELS, tls: args })
  const { isForwarded, park, isSecret } = await replicas(t, { url: `rediss://:${PASSWORD}@bridge`, sentinels, ...pem })
  await until(isForwarded, 'a forwarded request')
  const retry = await park()
  await primary.stop()
  await until(isForwarded, 'a forwarded request after the failover')
  await until(async () => (await retry()).said !== undefined, 'the answer of the call that waited')
  isSecret()
})

test('replicas on a Redis Cluster go on when the primary that they use is killed', async (t) => {
  const nodes = await startCluster(t, PASSWORD)
  const [first] = nodes as [RedisServer]
  // All connections begin at this node.
  const cluster = [`redis://:${PASSWORD}@127.0.0.1:${first.port}`]
  const { asker, other, one, isForwarded, park, isSecret } = await replicas(t, { cluster })
  await until(isForwarded, 'a forwarded request')
  const retry = await park()
  const client = await LegacyClient.open(one.url)
  const body = client.text('tools/call', { name: 'wait', arguments: { ms: 3_000 } }, { id: 9 })
  const waiting = post(other.url, body, client.headers)
  await until(() => of(asker, 'tools/call').length === 2, 'the call at the server')
  await first.stop()
  const { message } = await waiting
  t.ok(message.result ?? message.error?.data?.['reason'], 'a call in progress is answered, or its error says why not')
  await until(isForwarded, 'a forwarded request without the killed primary')
  t.same((await retry()).said, [ADA], 'a call that waited goes on')
  t.equal(of(asker, 'tools/call').length, 2, 'nothing was called again')
  isSecret()
})

test('replicas on a Redis Cluster count requests together', async (t) => {
  const nodes = await startCluster(t, PASSWORD)
  const cluster = nodes.map(({ port }) => `redis://:${PASSWORD}@127.0.0.1:${port}`)
  const limits = { requestsPerMinute: 4 }
  const { one, other } = await replicas(t, { cluster }, { auth: { tokens: TOKENS }, limits })
  // The counts of so many principals are in slots of several primaries.
  for (const token of Object.values(TOKENS)) {
    const as = { headers: { authorization: `Bearer ${token}` } }
    for (const { url } of [one, other, one, other]) t.equal((await call(url, 'tools/list', {}, as)).status, 200)
    for (const { url } of [one, other]) t.equal((await call(url, 'tools/list', {}, as)).status, 429)
  }
})

test('keys of a killed primary of a Redis Cluster work again when its replica has replaced it', async (t) => {
  const nodes = await startCluster(t, PASSWORD)
  const [first, second] = nodes as [RedisServer, RedisServer]
  const cluster = [`redis://:${PASSWORD}@127.0.0.1:${second.port}`]
  const redis = new Redis({ cluster, timeout: 5_000, log: QUIET })
  t.teardown(() => redis.close())
  await redis.connect()
  await until(() => redis.working)
  const sealer = new Sealer([keyOf('k'.repeat(32))], 'replica')
  const store = new SealedStore({ prefix: 'p:', common: redis, sealer: () => sealer })
  const names = Array.from({ length: 60 }, (_, n) => `key-${n}`)
  for (const name of names) t.ok(await store.remember('test', name, name, 600_000))
  await until(() => askRedis(first.port, PASSWORD, 'INFO', 'replication').includes('lag=0'), 'a replica in step')
  await first.stop()
  const isThere = async (name: string) => (await store.recall('test', name).catch(() => undefined)) === name
  const areThere = async () => (await Promise.all(names.map(isThere))).every(Boolean)
  await until(areThere, 'all keys, of the next primary too')
  for (const name of names) t.equal((await store.count('test', name, 60_000)).current, 1)
  t.ok(redis.working)
})
