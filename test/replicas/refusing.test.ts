/** What accepts connections in the place of Redis, and does not let anybody stay. */
import { type AddressInfo, createServer } from 'node:net'
import { createClient } from '@redis/client'
import t from 'tap'
import type { LogFields } from '../../src/base/log/events.js'
import { Redis } from '../../src/services/replicas/redis.js'
import { holdTimers } from '../support/clock.js'
import { repeatUntil, until } from '../support/eventually.js'
import { noRedis, RedisServer } from '../support/redis.js'

/** Milliseconds for which Redis has to stay before that is logged. */
const STEADY = 2_000
/** Milliseconds for a command. Nothing else has this time limit, and no test takes so long. */
const COMMAND = 1_234_567

const refusals: [name: string, says: string, why: string, next: RegExp][] = [
  ['closes them', '', 'Socket closed unexpectedly', /rediss:/],
  [
    'says that there are too many',
    '-ERR max number of clients reached\r\n',
    'ERR max number of clients reached',
    /maxclients/,
  ],
  [
    'is in protected mode',
    '-DENIED Redis is running in protected mode\r\n',
    'DENIED Redis is running in protected mode',
    /password/,
  ],
]

for (const [name, says, why, next] of refusals) {
  t.test(
    `retries a Redis that accepts connections and ${name} ever more slowly, and logs once that it is unreachable`,
    async (t) => {
      let connections = 0
      const server = createServer((socket) => {
        connections++
        socket.on('error', () => {})
        socket.end(says)
      })
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      t.teardown(() => server.close())
      const said: LogFields[] = []
      const note = (fields: LogFields) => said.push(fields)
      const { port } = server.address() as AddressInfo
      const redis = new Redis({
        url: `redis://127.0.0.1:${port}`,
        timeout: 250,
        log: { debug: () => {}, info: note, warn: note },
      })
      t.teardown(() => redis.close())
      const started = performance.now()
      await redis.connect()
      await until(() => connections >= 8)
      const lasted = performance.now() - started
      // Two connections, each after 50, 100, 200, 400 and then 500 ms.
      t.ok(connections <= 12 + lasted / 200, `${connections} connections in ${Math.round(lasted)} ms`)
      t.match(said, [{ event: 'redis_unavailable', why, next }])
      t.equal(said.length, 1)
      t.equal(redis.working, false)
    },
  )
}

t.test('logs that Redis is back when it has stayed reachable', { skip: noRedis }, async (t) => {
  const server = await RedisServer.start(t)
  const said: string[] = []
  const note = ({ event }: LogFields) => said.push(event)
  const staying = holdTimers(t, STEADY)
  const redis = new Redis({ url: server.url, timeout: 30_000, log: { debug: () => {}, info: note, warn: note } })
  t.teardown(() => redis.close())
  await redis.connect()
  await until(() => redis.working)
  for (let round = 0; round < 3; round++) {
    await server.stop()
    await until(() => !redis.working)
    await server.start()
    await until(() => redis.working)
  }
  t.same(said, ['redis_unavailable'])
  const stay = () => staying.run()
  await repeatUntil(stay, () => said.includes('redis_available'), 'it having stayed')
  t.same(said, ['redis_unavailable', 'redis_available'])
})

t.test('a command without an answer delays no later command', { skip: noRedis }, async (t) => {
  const server = await RedisServer.start(t)
  // The client for Sentinels does that with a command that a primary had when it was lost.
  let owner: object = createClient()
  while (!Object.hasOwn(owner, '_executeCommand')) owner = Object.getPrototypeOf(owner) as object
  const quiet = { debug: () => {}, info: () => {}, warn: () => {} }
  const limit = holdTimers(t, COMMAND)
  const redis = new Redis({ url: server.url, timeout: COMMAND, log: quiet })
  t.teardown(() => redis.close())
  await redis.connect()
  await until(() => redis.working)
  const { restore } = t.intercept(owner as { _executeCommand: unknown }, '_executeCommand', {
    value: () => new Promise(() => {}),
  })
  const unanswered = redis.publish('channel', Buffer.from('x'))
  limit.run()
  await t.rejects(unanswered, /takes too long/)
  restore()
  t.notOk(redis.working, 'nothing is sent for a moment')
  await until(() => redis.working, 'the end of that')
  t.equal(await redis.publish('channel', Buffer.from('x')), 0)
})
