/** A real Redis that answers and refuses: it is down, its words are in the log once, and the bridge finds the Redis that does not. */
import { connect, createServer } from 'node:net'
import t, { type Test } from 'tap'
import type { LogFields } from '../../src/base/log/events.js'
import { Redis, type RedisOptions } from '../../src/services/replicas/redis.js'
import { increment } from '../../src/services/replicas/scripts.js'
import { until } from '../support/eventually.js'
import { freePort } from '../support/free-port.js'
import { ASKING, askRedis, noRedis, RedisServer, startSentinels } from '../support/redis.js'
import type { Scope } from '../support/scope.js'

const CHANNEL = 'mcp-bridge:n'
const test = (name: string, body: (t: Test) => Promise<void>) => t.test(name, { skip: noRedis }, body)

/** The connections of a bridge, with what they log and hear. */
function watched(t: Test, address: Partial<RedisOptions>) {
  const said: LogFields[] = []
  const heard: string[] = []
  let returns = 0
  const note = (fields: LogFields) => void said.push(fields)
  const log = { debug: () => {}, info: note, warn: note }
  const redis = new Redis({ prefix: 'mcp-bridge:', timeout: 5_000, log, ...address })
  redis.listen(CHANNEL, (message) => message.length > 0 && heard.push(message.toString()))
  redis.onReturn = () => returns++
  t.teardown(() => redis.close())
  const save = (key = 'mcp-bridge:a') =>
    redis.run((keys) => keys.set(key, 'x', { expiration: { type: 'PX', value: 60_000 } }), key)
  const reasons = () => said.filter(({ event }) => event === 'redis_unavailable')
  /** Waits for a line of the log with this code. A busy machine may be too slow to connect at first, which is logged, too. */
  const refused = async (code: string) => {
    await until(() => codes().includes(code), code)
    return reasons().find(({ why }) => String(why).startsWith(code))
  }
  const codes = () => reasons().map(({ why }) => String(why).split(' ')[0])
  return { redis, refused, said, heard, save, reasons, codes, returned: () => returns }
}

/** A name that leads to one Redis, and later to another one. Connections stay where they are. What is asked may be `changed`. */
async function name(t: Scope, port: number, changed?: (bytes: Buffer) => Buffer) {
  const leads = { to: port, connections: 0 }
  const server = createServer((socket) => {
    leads.connections++
    const through = connect(leads.to, '127.0.0.1')
    through.pipe(socket)
    if (changed) socket.on('data', (bytes: Buffer) => through.write(changed(bytes)))
    else socket.pipe(through)
    socket.on('error', () => {}).on('close', () => through.destroy())
    through.on('error', () => {}).on('close', () => socket.destroy())
    t.teardown(() => socket.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const { port: own } = server.address() as { port: number }
  return { leads, url: `redis://127.0.0.1:${own}` }
}

test('after a failover at the same name, all connections go to the new primary', async (t) => {
  const old = await RedisServer.start(t)
  const next = await RedisServer.start(t)
  const { leads, url } = await name(t, old.port)
  const { redis, codes, reasons, heard, save, said, returned } = watched(t, { url })
  await redis.connect()
  await until(() => redis.working)
  // The old primary is a replica that has lost its primary: what is published at the new one does not reach it.
  askRedis(old.port, '', 'REPLICAOF', '127.0.0.1', '1')
  await t.rejects(save())
  t.equal(redis.working, false, 'what is refused is known at once')
  await t.rejects(save().then(() => save()))
  t.same(codes(), ['READONLY'])
  t.match(reasons()[0]?.['next'], /replica/)
  leads.to = next.port
  await until(() => redis.working, 'the new primary')
  await save()
  t.equal(askRedis(next.port, '', 'EXISTS', 'mcp-bridge:a'), '1')
  await until(
    () => {
      askRedis(next.port, '', 'PUBLISH', CHANNEL, 'hello')
      return heard.includes('hello')
    },
    'a message of the new primary',
    ASKING,
  )
  t.equal(returned(), 1, 'sessions are told once that all may have changed')
  await until(() => said.at(-1)?.event === 'redis_available', 'the line that it is back')
  t.same(codes(), ['READONLY'])
})

test('an address of a replica of Redis is tried again, a few times a second at most', async (t) => {
  const primary = await RedisServer.start(t)
  const replica = await RedisServer.start(t, '--replicaof', `127.0.0.1 ${primary.port}`)
  const isInStep = () => askRedis(replica.port, '', 'INFO', 'replication').includes('master_link_status:up')
  await until(isInStep, 'a replica in step', ASKING)
  const { leads, url } = await name(t, replica.port)
  const { redis, codes, save, returned } = watched(t, { url })
  const began = performance.now()
  await redis.connect()
  await until(() => {
    save().catch(() => {})
    return leads.connections >= 6
  }, 'some attempts')
  const seconds = (performance.now() - began) / 1_000
  t.ok(leads.connections <= 4 + 2 * seconds, `${leads.connections} connections in ${seconds} s`)
  t.equal(redis.working, false)
  t.same(codes(), ['READONLY'], 'logged once')
  t.equal(returned(), 0)
  askRedis(replica.port, '', 'REPLICAOF', 'NO', 'ONE')
  await until(() => redis.working, 'it is promoted')
})

test('a primary that Sentinels name, but that is read-only, is not asked without a pause', async (t) => {
  const primary = await RedisServer.start(t)
  const second = await RedisServer.start(t, '--replicaof', `127.0.0.1 ${primary.port}`)
  const sentinels = await startSentinels(t, primary)
  const { redis, codes, save } = watched(t, { url: 'redis://bridge', sentinels })
  await redis.connect()
  await until(() => redis.working)
  const [at = ''] = sentinels
  const received = () =>
    Number(/total_connections_received:(\d+)/.exec(askRedis(Number(new URL(at).port), '', 'INFO', 'stats'))?.[1])
  askRedis(primary.port, '', 'REPLICAOF', '127.0.0.1', String(second.port))
  const before = received()
  const began = performance.now()
  for (let n = 0; n < 20; n++) await t.rejects(save())
  t.equal(redis.working, false)
  t.same(codes(), ['READONLY'])
  const seconds = (performance.now() - began) / 1_000
  t.ok(received() - before <= 60 + 30 * seconds, `${received() - before} connections to a Sentinel in ${seconds} s`)
  askRedis(primary.port, '', 'REPLICAOF', 'NO', 'ONE')
  await until(() => redis.working, 'the primary is one again')
})

/** A Redis Cluster of two primaries. */
async function twoNodes(t: Scope): Promise<[RedisServer, RedisServer]> {
  const buses = [String(await freePort()), String(await freePort())]
  const start = (bus: string) => RedisServer.start(t, '--cluster-enabled', 'yes', '--cluster-port', bus)
  const nodes = (await Promise.all(buses.map(start))) as [RedisServer, RedisServer]
  const [one, other] = nodes
  askRedis(one.port, '', 'CLUSTER', 'ADDSLOTSRANGE', '0', '8191')
  askRedis(other.port, '', 'CLUSTER', 'ADDSLOTSRANGE', '8192', '16383')
  askRedis(one.port, '', 'CLUSTER', 'MEET', '127.0.0.1', String(other.port), buses[1] as string)
  const isWhole = ({ port }: RedisServer) => askRedis(port, '', 'CLUSTER', 'INFO').includes('cluster_state:ok')
  await until(() => nodes.every(isWhole), 'a cluster that has all slots', ASKING)
  return nodes
}

test('a node of a Redis Cluster at "url" is named as one, also while it has some of the keys', async (t) => {
  const [one] = await twoNodes(t)
  const slotOf = (key: string) => Number(askRedis(one.port, '', 'CLUSTER', 'KEYSLOT', key))
  const keys = Array.from({ length: 40 }, (_, n) => `mcp-bridge:${n}`)
  const own = keys.find((key) => slotOf(key) < 8_192)
  const others = keys.find((key) => slotOf(key) >= 8_192)
  const { leads, url } = await name(t, one.port)
  const { redis, refused, save, codes } = watched(t, { url })
  await redis.connect()
  await until(() => redis.working || codes().length > 0)
  await t.rejects(save(others))
  t.match((await refused('MOVED'))?.['next'], /"redis\.cluster"/)
  const { connections } = leads
  await until(async () => {
    await save(own).catch(() => {})
    if (redis.working) t.fail('nothing has changed')
    return leads.connections > connections + 4
  }, 'more attempts')
  t.equal(codes().filter((code) => code === 'MOVED').length, 1)
  const cluster = watched(t, { cluster: [one.url] })
  await cluster.redis.connect()
  await until(() => cluster.redis.working)
  for (const key of [own, others]) await cluster.save(key)
  t.same(cluster.codes(), [])
})

/** The rights that docs/redis.md names. */
const RIGHTS =
  '~mcp-bridge:* &mcp-bridge:* +ping +get +set +del +eval +multi +exec +incr +pttl +publish +subscribe'.split(' ')
const setUser = (port: number, name: string, ...rules: string[]) => askRedis(port, '', 'ACL', 'SETUSER', name, ...rules)
const as = (port: number, name: string) => ({ url: `redis://${name}:secret@127.0.0.1:${port}` })

test('an account with the documented rights is refused nothing', async (t) => {
  const { port } = await RedisServer.start(t)
  setUser(port, 'bridge', 'on', '>secret', ...RIGHTS)
  const { redis, reasons, save } = watched(t, as(port, 'bridge'))
  await redis.connect()
  await until(() => redis.working)
  await save()
  t.equal(redis.working, true)
  t.same(reasons(), [])
})

test('an account that lacks a right makes Redis unavailable from the start, and is enough as soon as it has it', async (t) => {
  const { port } = await RedisServer.start(t)
  const lacks = async (missing: string) => {
    setUser(port, missing, 'on', '>secret', ...RIGHTS.filter((right) => right !== missing))
    const { redis, refused, reasons } = watched(t, as(port, encodeURIComponent(missing)))
    await redis.connect()
    const line = await refused('NOPERM')
    t.equal(redis.working, false, missing)
    t.match(line?.['next'], /ACL SETUSER/)
    t.notMatch(JSON.stringify(reasons()), /secret/)
    setUser(port, missing, missing)
    await until(() => redis.working, `the right ${missing}`)
  }
  const counting = ['+multi', '+exec', '+incr', '+pttl']
  await Promise.all(RIGHTS.filter((right) => !counting.includes(right)).map(lacks))
})

test('an account that may not count is refused when requests are counted', async (t) => {
  const { port } = await RedisServer.start(t)
  setUser(port, 'bridge', 'on', '>secret', ...RIGHTS.filter((right) => right !== '+incr'))
  const { redis, codes } = watched(t, as(port, 'bridge'))
  await redis.connect()
  await until(() => redis.working, 'nothing was counted yet')
  await t.rejects(redis.run((keys) => increment(keys, 'mcp-bridge:c', 1_000), 'mcp-bridge:c', 'counts'))
  t.equal(redis.working, false)
  t.same(codes(), ['NOPERM'])
  setUser(port, 'bridge', '+incr')
  await until(() => redis.working)
})

test('a Redis without memory refuses to write, and is read all the same', async (t) => {
  const server = await RedisServer.start(t)
  const { redis, codes, save } = watched(t, { url: server.url })
  await redis.connect()
  await until(() => redis.working)
  await save()
  askRedis(server.port, '', 'CONFIG', 'SET', 'maxmemory', '1')
  await t.rejects(save())
  t.equal(redis.working, false)
  t.same(codes(), ['OOM'])
  t.equal(await redis.run((keys) => keys.get('mcp-bridge:a')), 'x')
  askRedis(server.port, '', 'CONFIG', 'SET', 'maxmemory', '0')
  await until(() => redis.working)
})

test('a Redis that has too many clients says so, and lets the bridge in when it has room', async (t) => {
  const server = await RedisServer.start(t, '--maxclients', '1')
  const other = connect(server.port, '127.0.0.1')
  t.teardown(() => other.destroy())
  await new Promise((resolve) => other.once('connect', resolve))
  other.write('PING\r\n')
  await new Promise((resolve) => other.once('data', resolve))
  const { redis, refused } = watched(t, { url: server.url })
  await redis.connect()
  const line = await refused('ERR')
  t.equal(line?.['why'], 'ERR max number of clients reached')
  t.match(line?.['next'], /maxclients/)
  other.write('CONFIG SET maxclients 100\r\n')
  await until(() => redis.working)
})

test('a Redis that wants a password, or another one, says so', async (t) => {
  const server = await RedisServer.start(t, '--requirepass', 'right')
  for (const [user, code] of [
    ['', 'NOAUTH'],
    [':wrong@', 'WRONGPASS'],
  ] as const) {
    const { redis, refused } = watched(t, { url: `redis://${user}127.0.0.1:${server.port}` })
    await redis.connect()
    t.match((await refused(code))?.['next'], /password/)
  }
})

test('a Redis that reads its data is used as soon as it has', async (t) => {
  const server = await RedisServer.start(t)
  askRedis(server.port, '', 'EVAL', 'for n = 1, 20000 do redis.call("SET", n, n) end', '0')
  askRedis(server.port, '', 'SAVE')
  await server.stop()
  const slow = ['--key-load-delay', '200', '--loading-process-events-interval-bytes', '1024']
  const loaded = server.start(...slow)
  const { redis, refused } = watched(t, { url: server.url })
  await redis.connect()
  await refused('LOADING')
  t.equal(redis.working, false)
  await loaded
  await until(() => redis.working)
})

test('a Redis that may evict records is warned of, where CONFIG answers with nothing', async (t) => {
  const { port } = await RedisServer.start(t, '--maxmemory-policy', 'volatile-lru')
  // As Redis-like services do that know no such option.
  const { url } = await name(t, port, (bytes) =>
    Buffer.from(bytes.toString('latin1').replace('maxmemory-policy', 'no-such-policies'), 'latin1'),
  )
  const { redis, said } = watched(t, { url })
  await redis.connect()
  await until(() => said.some(({ policy }) => policy === 'volatile-lru'), 'the warning')
})

test('a Redis that may evict records is warned of, whatever its policy and however it tells that', async (t) => {
  const { port } = await RedisServer.start(t)
  setUser(port, 'bridge', 'on', '>secret', ...RIGHTS, '+info')
  for (const policy of [
    'allkeys-lru',
    'volatile-lru',
    'volatile-ttl',
    'volatile-random',
    'volatile-lfu',
    'noeviction',
  ]) {
    askRedis(port, '', 'CONFIG', 'SET', 'maxmemory-policy', policy)
    for (const address of [{ url: `redis://127.0.0.1:${port}` }, as(port, 'bridge')]) {
      const { redis, said } = watched(t, address)
      await redis.connect()
      await until(() => redis.working)
      const warned = () => said.filter(({ event }) => event === 'redis_may_evict').map(({ policy }) => policy)
      if (policy !== 'noeviction') await until(() => warned().length > 0)
      t.same(warned(), policy === 'noeviction' ? [] : [policy])
    }
  }
})
