/**
 * `npm run soak [-- --minutes N] [-- --seed N] [-- --replicas N]`: clients of several principals use the built bridge on all
 * fronts, or several replicas of it through a load balancer, and servers are killed now and then. When they have gone, everything
 * has to be back where it was, and memory must not have grown. Exit code 1 says that something is not so.
 */
import { availableParallelism, loadavg } from 'node:os'
import { join } from 'node:path'
import { execPath } from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { oneOf, type Random, randomOf } from '../hostile/corpus/random.js'
import { Balancer } from '../support/balancer.js'
import { BuiltBridge } from '../support/built-bridge.js'
import { call } from '../support/modern.js'
import { startFixture } from '../support/process.js'
import { RedisServer } from '../support/redis.js'
import { ToolScope } from '../support/scope.js'
import { anyDeed, type Outcome, WrongAnswer } from './clients.js'
import { growthOf, type Sample } from './slope.js'

const { values } = parseArgs({
  options: { minutes: { type: 'string' }, seed: { type: 'string' }, replicas: { type: 'string' } },
})
const minutes = Number(values.minutes ?? 10)
const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31))

const replicas = Number(values.replicas ?? 1)

const PRINCIPALS = ['alice', 'bob', 'carol']
/** Clients of each principal, and milliseconds that they pause after each thing that they do, at most. */
const CLIENTS = 5
const PAUSE = 60
/** Milliseconds: between two samples of memory, two lines of progress, two servers that are killed. */
const SAMPLE = 5_000
const PROGRESS = 15_000
const KILL = 8_000
/** Milliseconds in which what was open has to end: the longest of the times below, what is remembered for a minute, and some. */
const SETTLE = 90_000
/** MiB that the heap may grow in a minute, and MiB that it and the whole process may have more than before, when all was cold. */
const GROWTH = 1.5
const HEAP_MORE = 16
const RSS_MORE = 64
/** Descriptors that may be more in a minute under the same load. */
const DESCRIPTORS = 1
/** Minutes that a run has to take for a slope to mean something: until then it is of what happens to be open. */
const JUDGED = 8
/** Seconds of load before memory is looked at: code is compiled, caches are filled. */
const WARM_UP = 30
/** File descriptors and objects of Node.js that may be more or fewer: connections that are kept for the next call. */
const SLACK = 6

/** Has the bridge collect its garbage on a signal, so that what is measured is what is held. */
const COLLECTING = new URL('../bench/collect.mjs', import.meta.url).href
/** Milliseconds for that. */
const COLLECT = 300

const scope = new ToolScope()
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => void giveUp(signal))
process.on('uncaughtException', (error) => void giveUp(String(error.stack)))

const counts = new Map<string, number>()
const failures: string[] = []
/** By replica. */
const samples: Sample[][] = Array.from({ length: replicas }, () => [])
let kills = 0
let next = 0

async function run(): Promise<void> {
  console.log(
    `${minutes} minutes, ${replicas} bridges, seed ${seed}, Node ${process.version}, ${availableParallelism()} cores, load ${loadavg()[0]?.toFixed(1)}`,
  )
  const random = randomOf(seed)
  const plan = { asks: true, by: 'session' }
  const [legacyHttp, modernHttp] = await Promise.all([
    startFixture(scope, 'legacy-http.mjs', JSON.stringify(plan)),
    startFixture(scope, 'modern-http.mjs', '{}', 'quiet'),
  ])
  const program = (name: string, more: object = {}) => ({
    command: execPath,
    args: [join('test/fixtures', name), JSON.stringify(more)],
  })
  const redis = replicas > 1 ? await RedisServer.start(scope) : undefined
  const settings = {
    listen: 'http://127.0.0.1:0/mcp',
    admin: 'http://127.0.0.1:0',
    mcpServers: {
      'legacy-program': program('legacy-stdio.mjs', plan),
      'modern-program': program('modern-stdio.mjs'),
      'legacy-http': { url: legacyHttp.url },
      'modern-http': { url: modernHttp.url },
    },
    auth: { tokens: Object.fromEntries(PRINCIPALS.map((who) => [who, tokenOf(who)])) },
    limits: { startsPerMinute: 10_000, processes: 48 },
    // What nobody uses any more ends while it is waited for.
    timeouts: {
      idle: 5_000,
      answer: 5_000,
      clientIdle: 10_000,
      clientGone: 5_000,
      call: 20_000,
      drainTimeout: 2_000,
    },
    ...(redis && { redis: { url: redis.url }, stateKeys: ['a secret that all the replicas know of'] }),
  }
  const node = ['--max-old-space-size=512', '--expose-gc', `--import=${COLLECTING}`]
  const bridges = await Promise.all(samples.map(() => BuiltBridge.start(scope, settings, { node })))
  const [first] = bridges as [BuiltBridge]
  const balancer = redis && (await Balancer.start(scope))
  if (balancer) balancer.targets = bridges.map((bridge) => Number(new URL(bridge.url('legacy-http')).port))
  const origin = balancer?.origin ?? new URL(first.url('legacy-http')).origin
  const paths = Object.keys(settings.mcpServers).map((name) => new URL(first.url(name)).pathname)
  const urls = paths.map((path) => origin + path)
  // Each server has been used once through each bridge, so that what is made once is there.
  for (const bridge of bridges)
    for (const path of paths)
      await call(new URL(path, bridge.url('legacy-http')).href, 'tools/list', {}, { headers: headersOf('alice') })
  const before = await Promise.all(bridges.map(settled))

  const until = performance.now() + minutes * 60_000
  const watching = new AbortController()
  const watchers = [
    every(SAMPLE, watching.signal, () => Promise.all(bridges.map(sample))),
    every(PROGRESS, watching.signal, () => Promise.all(bridges.map(report))),
    every(KILL, watching.signal, () => kill(oneOf(random, bridges), random)),
  ]
  const isOver = () => performance.now() > until || bridges.some(({ ended }) => ended !== undefined)
  await Promise.all(
    PRINCIPALS.flatMap((who) => Array.from({ length: CLIENTS }, () => client(who, urls, random, isOver))),
  )
  watching.abort()
  await Promise.all(watchers)
  console.log(`The clients have gone; everything has ${SETTLE / 1_000} s to end`)
  const after = await Promise.all(bridges.map(settled))
  for (const [at, bridge] of bridges.entries()) {
    compare(before[at] as Held, after[at] as Held)
    judgeMemory(before[at] as Held, after[at] as Held, samples[at] as Sample[])
    for (const line of bridge.mistakes) failures.push(`the bridge logged a mistake: ${line.slice(0, 400)}`)
  }
  for (const how of await Promise.all(bridges.map((bridge) => bridge.end())))
    if (how !== 'exit code 0') failures.push(`the bridge ended with ${how}`)
  summary()
  await scope.end()
  process.exit(failures.length > 0 ? 1 : 0)
}

const tokenOf = (who: string) => `token-of-${who}-0123456789`
const headersOf = (who: string) => ({ authorization: `Bearer ${tokenOf(who)}` })

/** One client: it does one thing after the other until the time is over. */
async function client(who: string, urls: string[], random: Random, isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    const [, name, deed] = anyDeed(random)
    // Servers of the modern era ask by another tool.
    const usable = name === 'questions' ? urls.filter((url) => url.includes('legacy')) : urls
    const word = `${who}-${++next}`
    let outcome: Outcome | 'wrong' | 'broken'
    try {
      outcome = await deed({ url: oneOf(random, usable), headers: headersOf(who), random, word })
    } catch (error) {
      outcome = error instanceof WrongAnswer ? 'wrong' : 'broken'
      const what = outcome === 'wrong' ? `${word} got another answer: ${(error as Error).message}` : String(error)
      if (!isOver() && failures.length < 20) failures.push(`${name}: ${what}`)
    }
    count(`${name}: ${outcome}`)
    await sleep(random() * PAUSE)
  }
}

const count = (what: string) => counts.set(what, (counts.get(what) ?? 0) + 1)

async function every(milliseconds: number, signal: AbortSignal, work: () => unknown): Promise<void> {
  while (!signal.aborted) {
    await sleep(milliseconds, undefined, { signal }).catch(() => {})
    if (!signal.aborted) await work()
  }
}

async function sample(bridge: BuiltBridge, at: number): Promise<void> {
  if (bridge.ended !== undefined) return
  const metrics = await collected(bridge)
  samples[at]?.push({ at: performance.now() / 1_000, ...memoryOf(metrics), descriptors: bridge.descriptors() })
}

/** Metrics after a garbage collection. */
async function collected(bridge: BuiltBridge): Promise<Record<string, number>> {
  bridge.child.kill('SIGUSR2')
  await sleep(COLLECT)
  return bridge.metrics()
}

function memoryOf(metrics: Record<string, number>): { heap: number; rss: number } {
  const mib = (name: string) => (metrics[name] ?? 0) / 2 ** 20
  return { heap: mib('nodejs_heap_size_used_bytes'), rss: mib('process_resident_memory_bytes') }
}

/** A program is killed, whatever it is doing. */
function kill(bridge: BuiltBridge, random: Random): void {
  const children = bridge.children()
  if (children.length === 0) return
  try {
    process.kill(oneOf(random, children), 'SIGKILL')
    kills++
  } catch {
    // It has ended by itself in the meantime.
  }
}

async function report(bridge: BuiltBridge, at: number): Promise<void> {
  if (bridge.ended !== undefined) return
  const metrics = await bridge.metrics()
  const { heap, rss } = memoryOf(metrics)
  const used = (bound: string) =>
    Object.entries(metrics).reduce(
      (sum, [name, value]) => (name.includes(`bound_used{bound="${bound}"`) ? sum + value : sum),
      0,
    )
  const bounds = ['calls', 'subscriptions', 'client_sessions', 'parked', 'processes', 'connections']
  const shown = bounds.map((bound) => `${bound} ${used(bound)}`).join(', ')
  const held = samples[at]?.at(-1)?.heap ?? heap
  console.log(`${next} done, ${kills} killed, ${shown}, heap ${held.toFixed(1)} MiB, RSS ${rss.toFixed(0)} MiB`)
}

/** What is in use when nothing is to be done: bounds, descriptors, processes, memory. */
type Held = Record<string, number>

/** Waits until nothing is in use any more that clients have opened, and gives what there is then. */
async function settled(bridge: BuiltBridge): Promise<Held> {
  const deadline = performance.now() + SETTLE
  let held = await look(bridge)
  const busy = () =>
    Object.keys(held).filter((name) => name.startsWith('mcp_bridge') && !IDLE.test(name) && held[name] !== 0)
  while (performance.now() < deadline && busy().length > 0) {
    await sleep(1_000)
    held = await look(bridge)
  }
  for (const name of busy()) console.log(`  still in use: ${name}: ${held[name]}`)
  const lowest = { ...held }
  for (let looks = 0; looks < 10; looks++) {
    await sleep(1_000)
    held = await look(bridge)
    for (const [name, value] of Object.entries(held)) lowest[name] = Math.min(lowest[name] ?? value, value)
  }
  return lowest
}

/** Bounds that are not empty on a bridge that does nothing: who asks for metrics, processes that are kept, what is remembered. */
const IDLE = /bound="(connections|processes|cached_\w+|tasks)"/

async function look(bridge: BuiltBridge): Promise<Held> {
  const metrics = await collected(bridge)
  const bounds = Object.entries(metrics).filter(([name]) => name.startsWith('mcp_bridge_bound_used'))
  return {
    ...Object.fromEntries(bounds),
    descriptors: bridge.descriptors(),
    processes: bridge.children().length,
    ...memoryOf(metrics),
  }
}

function compare(before: Held, after: Held): void {
  for (const [name, value] of Object.entries(after)) {
    if (name === 'heap' || name === 'rss' || /tasks|cached/.test(name)) continue
    const was = before[name] ?? 0
    const slack = name === 'descriptors' ? SLACK : 0
    const line = `${name}: ${was} before, ${value} after`
    if (value > was + slack) failures.push(line)
    console.log(`  ${line}`)
  }
}

function judgeMemory(before: Held, after: Held, samples: readonly Sample[]): void {
  const start = samples[0]?.at ?? 0
  const warm = samples.filter(({ at }) => at - start > WARM_UP)
  const growth = growthOf('heap', warm)
  const opened = growthOf('descriptors', warm)
  const more = (name: 'heap' | 'rss') => (after[name] ?? 0) - (before[name] ?? 0)
  console.log(
    `  heap: ${before['heap']?.toFixed(1)} MiB before, ${after['heap']?.toFixed(1)} MiB after, ${growth.toFixed(2)} MiB a minute`,
  )
  console.log(`  descriptors under load: ${opened.toFixed(2)} more a minute`)
  console.log(`  RSS: ${before['rss']?.toFixed(1)} MiB before, ${after['rss']?.toFixed(1)} MiB after`)
  if (minutes >= JUDGED && growth > GROWTH)
    failures.push(`the heap grows by ${growth.toFixed(2)} MiB a minute, and ${GROWTH} is the limit`)
  if (minutes >= JUDGED && opened > DESCRIPTORS)
    failures.push(`there are ${opened.toFixed(2)} descriptors more a minute, and ${DESCRIPTORS} is the limit`)
  if (more('heap') > HEAP_MORE)
    failures.push(`the heap has ${more('heap').toFixed(1)} MiB more, and ${HEAP_MORE} is the limit`)
  if (more('rss') > RSS_MORE)
    failures.push(`the process has ${more('rss').toFixed(1)} MiB more, and ${RSS_MORE} is the limit`)
}

function summary(): void {
  console.log(`\n${next} things done, ${kills} servers killed`)
  for (const [what, number] of [...counts].sort()) console.log(`  ${what.padEnd(32)} ${number}`)
  for (const failure of failures) console.log(`FAILED: ${failure}`)
  console.log(
    failures.length === 0 ? 'Everything is back where it was.' : `The same again: npm run soak -- --seed ${seed}`,
  )
}

async function giveUp(why: string): Promise<never> {
  process.stderr.write(`soak: ${why}\n`)
  await scope.end()
  process.exit(1)
}

try {
  await run()
} catch (error) {
  await giveUp(String(error instanceof Error ? error.stack : error))
}
