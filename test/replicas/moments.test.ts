/**
 * A moment in which a bridge stands still, or has lost its connection to Redis, is not held against Redis: what is asked then is answered.
 * Runs in its own process: it counts all timers of one length, and other files may leave some.
 */
import { connect, createServer, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { Redis } from '../../src/services/replicas/redis.js'
import { holdTimers, leaper } from '../support/clock.js'
import { until } from '../support/eventually.js'
import { noRedis, RedisServer } from '../support/redis.js'

/** Milliseconds that a command may take: longer than any test. */
const TIMEOUT = 30_000
const KEY = 'mcp-bridge:a'
const LOG = { debug: () => {}, info: () => {}, warn: () => {} }

async function connected(t: Test, url: string) {
  const redis = new Redis({ url, prefix: 'mcp-bridge:', timeout: TIMEOUT, log: LOG })
  t.teardown(() => redis.close())
  await redis.connect()
  const read = () =>
    redis
      .run((keys) => keys.get(KEY), KEY)
      .then(
        () => 'answered',
        ({ message }: Error) => message,
      )
  return { redis, read }
}

t.test('a command is sent after the bridge has stood still while another waited', { skip: noRedis }, async (t) => {
  const server = await RedisServer.start(t)
  const { redis, read } = await connected(t, server.url)
  await until(() => redis.working, 'the connection')
  const leap = leaper(t)
  const first = read()
  leap(2 * TIMEOUT)
  t.same(await Promise.all([first, read()]), ['answered', 'answered'])
})

t.test('commands wait for the connection that replaces a lost one', { skip: noRedis }, async (t) => {
  const server = await RedisServer.start(t)
  const open = new Set<Socket>()
  const proxy = createServer((socket) => {
    const through = connect(server.port, '127.0.0.1')
    for (const [one, other] of [
      [socket, through],
      [through, socket],
    ] as const) {
      open.add(one)
      one.pipe(other)
      one.on('error', () => {}).on('close', () => other.destroy())
    }
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  t.teardown(() => proxy.close())
  t.teardown(() => open.forEach((socket) => void socket.destroy()))
  const { port } = proxy.address() as { port: number }
  const { redis, read } = await connected(t, `redis://127.0.0.1:${port}`)
  await until(() => redis.working, 'the connection')
  for (const socket of open) socket.destroy()
  await until(() => !redis.working, 'the loss')
  t.same(await Promise.all([read(), read()]), ['answered', 'answered'])
  t.equal(await read(), 'answered')
})

t.test('where no connection comes, only the first commands wait', { skip: noRedis }, async (t) => {
  const server = await RedisServer.start(t)
  await server.stop()
  const held = holdTimers(t, TIMEOUT)
  const { redis, read } = await connected(t, server.url)
  const first = [read(), read()]
  t.equal(held.waiting, 1, 'together')
  held.run()
  t.same(await Promise.all([...first, read()]), Array(3).fill('Redis does not answer'))
  t.equal(held.set, 1, 'nobody waits any more')
  await server.start()
  await until(() => redis.working, 'the connection')
  t.equal(await read(), 'answered')
})

t.test('after the end, nobody waits for a connection', { skip: noRedis }, async (t) => {
  const server = await RedisServer.start(t)
  await server.stop()
  const held = holdTimers(t, TIMEOUT)
  const { redis, read } = await connected(t, server.url)
  const first = read()
  redis.close()
  t.same(await Promise.all([first, read()]), ['Redis does not answer', 'Redis does not answer'])
  t.equal(held.waiting, 0)
})
