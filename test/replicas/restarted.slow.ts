/**
 * Runs alone: processes of two replicas. One of them is restarted again and again under callers of each lane, and nothing is lost that
 * a caller has begun.
 *
 * `RESTARTS` is how often.
 */
import { env, execPath } from 'node:process'
import t from 'tap'
import { startEverything } from '../interop/legacy-servers.js'
import { Balancer } from '../support/balancer.js'
import { BuiltBridge } from '../support/built-bridge.js'
import { main } from '../support/cli.js'
import { noRedis, RedisServer } from '../support/redis.js'
import { RestartedCallers } from '../support/restarted-callers.js'

const RESTARTS = Number(env['RESTARTS'] ?? 5)

t.test(`${RESTARTS} restarts of one of two replicas lose nothing`, { skip: noRedis, timeout: 900_000 }, async (t) => {
  const redis = await RedisServer.start(t)
  const everything = await startEverything(t)
  const settings = {
    listen: 'http://127.0.0.1:0/mcp',
    admin: 'http://127.0.0.1:0',
    mcpServers: {
      demo: { url: everything['Streamable HTTP'].upstream },
      modern: { command: execPath, args: [main, 'demo', 'modern-server'] },
    },
    groups: { all: { path: '/mcp', title: 'Demo' } },
    redis: { url: redis.url },
    stateKeys: ['a secret that all the replicas know of'],
  }
  const portOf = (bridge: BuiltBridge) => Number(new URL(bridge.url('modern')).port)
  // As a published port of Docker: it takes connections also while nobody listens behind it, and resets them.
  const [first, second] = await Promise.all([Balancer.start(t), Balancer.start(t)])
  let restarted = await BuiltBridge.start(t, settings)
  const other = await BuiltBridge.start(t, settings)
  first.targets = [portOf(restarted)]
  second.targets = [portOf(other)]
  const callers = new RestartedCallers([first.origin, second.origin])
  for (let round = 0; round < RESTARTS; round++) {
    await callers.called()
    t.equal(await restarted.end(), 'exit code 0')
    t.same(restarted.mistakes, [])
    restarted = await BuiltBridge.start(t, settings)
    first.targets = [portOf(restarted)]
    callers.comeBack()
  }
  await callers.end()
  for (const [lane, counts] of callers.counts) {
    const said = `${lane}: ${JSON.stringify(counts)}`
    t.comment(said)
    t.same(
      Object.keys(counts).filter((outcome) => outcome.startsWith('broken')),
      [],
      said,
    )
    t.ok((counts['answered'] ?? 0) > 0, said)
  }
  t.same(other.mistakes, [])
})
