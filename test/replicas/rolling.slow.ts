/**
 * Runs alone: processes of three replicas, and hundreds of clients. Rolling updates under load: each replica is replaced, round
 * after round, and nothing is lost that another replica can carry.
 *
 * `ROLLING_STREAMS`, `ROLLING_CALLERS`, `ROLLING_ASKED` and `ROLLING_ROUNDS` are how many of each, `ROLLING_THINKS` the milliseconds
 * that people take to answer at most; what came of them is a comment.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { ADA, all, NAME, startAsker, talk } from '../support/asking.js'
import { Balancer } from '../support/balancer.js'
import { BuiltBridge } from '../support/built-bridge.js'
import { until } from '../support/eventually.js'
import { LegacyClient } from '../support/legacy-client.js'
import { ModernHttp } from '../support/modern-http.js'
import { noRedis, RedisServer } from '../support/redis.js'

const countOf = (name: string, usual: number) => Number(process.env[`ROLLING_${name}`] ?? usual)
const STREAMS = countOf('STREAMS', 200)
const CALLERS = countOf('CALLERS', 40)
const ASKED = countOf('ASKED', 20)
const ROUNDS = countOf('ROUNDS', 5)
const THINKS = countOf('THINKS', 1_200)
/** Milliseconds until a balancer knows that a replica shuts down, less than its delay. */
const NOTICE = 300
const DELAY = 1_500

/** Who is asked has an own session with the server: answers of one principal may go to any of its calls. */
const tokenOf = (at: number) => `token-of-somebody-${at}`

/** What happened, by name. */
type Counts = Map<string, number>
const count = (counts: Counts, what: string) => counts.set(what, (counts.get(what) ?? 0) + 1)

/** What a client does again and again, until it is told to stop. */
async function repeat(isOver: () => boolean, counts: Counts, act: () => Promise<string>): Promise<void> {
  while (!isOver())
    count(counts, await act().catch((error: Error & { code?: string }) => `broken: ${error.code ?? error.message}`))
}

t.test(`${ROUNDS} rolling updates of three replicas lose nothing`, { skip: noRedis, timeout: 900_000 }, async (t) => {
  const redis = await RedisServer.start(t)
  const modern = await ModernHttp.start(t)
  const asker = await startAsker(t, 'on the stream of the call over HTTP')
  const settings = {
    listen: 'http://127.0.0.1:0/mcp',
    admin: 'http://127.0.0.1:0',
    mcpServers: { modern: { url: modern.url }, asker: asker.server },
    redis: { url: redis.url, timeout: 30_000 },
    auth: { tokens: Object.fromEntries(Array.from({ length: ASKED + 1 }, (_, at) => [`person-${at}`, tokenOf(at)])) },
    stateKeys: ['a secret that all the replicas know of'],
    timeouts: { drainDelay: DELAY, drainTimeout: 60_000 },
    limits: {
      clientSessions: 50_000,
      connections: 50_000,
      perPrincipal: 1,
      subscriptions: 50_000,
      sessions: ASKED + 100,
    },
  }
  const balancer = await Balancer.start(t)
  const replicas = await Promise.all([1, 2, 3].map(() => BuiltBridge.start(t, settings)))
  const portOf = (bridge: BuiltBridge) => Number(new URL(bridge.url('modern')).port)
  const addressOf = (server: string) => balancer.origin + new URL((replicas[0] as BuiltBridge).url(server)).pathname
  const balance = (serving: readonly BuiltBridge[]) => {
    balancer.targets = serving.map(portOf)
  }
  balance(replicas)

  const counts = { calls: new Map(), streams: new Map(), questions: new Map() } as Record<string, Counts>
  let isOver = false
  const over = () => isOver
  const clients = await inTurns(CALLERS + STREAMS, () =>
    LegacyClient.open(addressOf('modern'), { headers: { authorization: `Bearer ${tokenOf(ASKED)}` } }),
  )
  const running = [
    ...clients.slice(0, CALLERS).map((client) =>
      repeat(over, counts['calls'] as Counts, async () => {
        await sleep(20)
        const { status, message } = await client.call('act')
        return message.result ? 'answered' : `${status} ${message.error?.message}`
      }),
    ),
    ...clients.slice(CALLERS).map((client) => followed(client, over, counts['streams'] as Counts)),
    ...Array.from({ length: ASKED }, (_, at) => {
      const { steps, again } = talk(addressOf('asker'), asker)
      const options = { headers: { authorization: `Bearer ${tokenOf(at)}` } }
      return repeat(over, counts['questions'] as Counts, async () => {
        const asked = await steps([{ ask: [NAME] }], {}, options)
        if (asked.keys.length === 0) return `not asked: ${asked.status} ${asked.message.error?.message}`
        await sleep(200 + Math.random() * (THINKS - 200))
        const answered = await again(asked, all(asked, ADA), {}, options)
        return answered.message.result ? 'answered' : `lost: ${answered.message.error?.message}`
      })
    }),
  ]

  const ends: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    for (let at = 0; at < replicas.length; at++) {
      const old = replicas[at] as BuiltBridge
      replicas[at] = await BuiltBridge.start(t, settings)
      const began = performance.now()
      const ending = old.end()
      await sleep(NOTICE)
      balance(replicas)
      t.equal(await ending, 'exit code 0')
      ends.push(performance.now() - began - DELAY)
      t.same(old.mistakes, [])
    }
  }
  isOver = true
  await Promise.all(running)
  for (const [what, found] of Object.entries(counts)) {
    t.comment(what, Object.fromEntries(found))
    const wrong = [...found].filter(([name]) => name !== 'answered' && name !== 'continued')
    t.same(wrong, [], `${what} are all answered`)
    t.ok((found.get('answered') ?? found.get('continued') ?? 0) > 0, `${what} were made`)
  }
  t.comment('milliseconds from the end of the delay to the exit of a replica', Math.max(...ends))
})

/** Some at a time. */
async function inTurns<T>(total: number, make: () => Promise<T>): Promise<T[]> {
  const made: T[] = []
  while (made.length < total)
    made.push(...(await Promise.all(Array.from({ length: Math.min(50, total - made.length) }, make))))
  return made
}

/** Keeps a stream open: continues it whenever it ends. */
async function followed(client: LegacyClient, isOver: () => boolean, counts: Counts): Promise<void> {
  let last: string | undefined
  await repeat(isOver, counts, async () => {
    const stream = await client.listen(last)
    if (stream.status !== 200) return `${stream.status}`
    await until(() => stream.over || isOver(), 'the end of a stream')
    last = stream.ids.at(-1) ?? last
    stream.leave()
    return 'continued'
  })
}
