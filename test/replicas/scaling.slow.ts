/**
 * Runs alone: processes of four replicas. An autoscaler adds replicas under load and removes them again, one after the other:
 * new ones take their share, and nothing is lost. What it took is a comment.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { Balancer } from '../support/balancer.js'
import { BuiltBridge } from '../support/built-bridge.js'
import { until } from '../support/eventually.js'
import { LegacyClient } from '../support/legacy-client.js'
import { ModernHttp } from '../support/modern-http.js'
import { noRedis, RedisServer } from '../support/redis.js'

const LASTING = 20
const COMING = 20
/** Milliseconds until a balancer knows that a replica shuts down, less than its delay. */
const NOTICE = 300
const DELAY = 1_000
const CALLS = /^mcp_bridge_calls_total/

t.test('an autoscaler adds and removes replicas under load', { skip: noRedis, timeout: 600_000 }, async (t) => {
  const redis = await RedisServer.start(t)
  const modern = await ModernHttp.start(t)
  const settings = {
    listen: 'http://127.0.0.1:0/mcp',
    admin: 'http://127.0.0.1:0',
    mcpServers: { modern: { url: modern.url } },
    redis: { url: redis.url, timeout: 30_000 },
    stateKeys: ['a secret that all the replicas know of'],
    timeouts: { drainDelay: DELAY, drainTimeout: 60_000 },
    limits: { perPrincipal: 1 },
  }
  const balancer = await Balancer.start(t)
  const replicas: BuiltBridge[] = []
  const balance = () => {
    balancer.targets = replicas.map((bridge) => Number(new URL(bridge.url('modern')).port))
  }
  const add = async () => {
    const began = performance.now()
    const bridge = await BuiltBridge.start(t, settings)
    replicas.push(bridge)
    balance()
    return performance.now() - began
  }
  await Promise.all([add(), add()])
  const url = `${balancer.origin}${new URL((replicas[0] as BuiltBridge).url('modern')).pathname}`

  const counts = new Map<string, number>()
  let isOver = false
  const repeat = async (act: () => Promise<string>) => {
    while (!isOver) {
      const came = await act().catch((error: Error & { code?: string }) => `broken: ${error.code ?? error.message}`)
      counts.set(came, (counts.get(came) ?? 0) + 1)
      await sleep(20)
    }
  }
  const calling = async (client: LegacyClient) => {
    const { status, message } = await client.call('act')
    return message.result ? 'answered' : `${status} ${message.error?.message}`
  }
  const lasting = await Promise.all(Array.from({ length: LASTING }, () => LegacyClient.open(url)))
  const running = [
    // Clients that stay, on connections that they keep.
    ...lasting.map((client) => repeat(() => calling(client))),
    // Clients that come and go, each on connections of its own.
    ...Array.from({ length: COMING }, () =>
      repeat(async () => {
        const client = await LegacyClient.open(url, { headers: { connection: 'close' } })
        const said = await calling(client)
        await client.end()
        return said
      }),
    ),
  ]
  const served = async () => Promise.all(replicas.map(callsOf))
  await until(async () => (await served()).every((calls) => calls > 50), 'calls at both replicas')

  t.comment('milliseconds until an added replica listens', await add(), await add())
  const before = await served()
  await until(async () => (await served()).slice(2).every((calls) => calls > 100), 'calls at the added replicas')
  const since = (await served()).map((calls, at) => calls - (before[at] as number))
  const total = since.reduce((sum, calls) => sum + calls, 0)
  t.comment('share of the calls at the added replicas', ((since[2] as number) + (since[3] as number)) / total)

  while (replicas.length > 2) {
    const [leaving] = replicas.splice(0, 1) as [BuiltBridge]
    const began = performance.now()
    const ending = leaving.end()
    await sleep(NOTICE)
    balance()
    t.equal(await ending, 'exit code 0')
    t.comment('milliseconds until a removed replica has gone', performance.now() - began)
    t.same(leaving.mistakes, [])
  }
  await sleep(NOTICE)
  isOver = true
  await Promise.all(running)
  t.comment(Object.fromEntries(counts))
  t.same([...counts.keys()], ['answered'])
})

async function callsOf(bridge: BuiltBridge): Promise<number> {
  const series = Object.entries(await bridge.metrics())
  return series.reduce((sum, [name, value]) => (CALLS.test(name) ? sum + value : sum), 0)
}
