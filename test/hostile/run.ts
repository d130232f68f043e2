/**
 * `npm run test:hostile [-- --quick] [-- --seed N] [-- --only texts,requests,states,servers]`: hostile clients and servers
 * against the built bridge, on all fronts, with a healthy client beside them. Ends with a summary, and with exit code 1 where
 * something came of it that must not.
 */
import { existsSync, readFileSync } from 'node:fs'
import { availableParallelism, loadavg, setPriority } from 'node:os'
import { join } from 'node:path'
import { execPath } from 'node:process'
import { parseArgs } from 'node:util'
import { parseUpstream } from '../../src/config/addresses.js'
import { startEverything } from '../interop/legacy-servers.js'
import { startModern } from '../interop/modern-servers.js'
import { BuiltBridge } from '../support/built-bridge.js'
import { temporaryFolder } from '../support/folder.js'
import { startFixture } from '../support/process.js'
import { ToolScope } from '../support/scope.js'
import { asBody, asEvents, asLines, HTTP, PROGRAM, TEXTS } from './corpus/answers.js'
import { fields } from './corpus/fields.js'
import { framing, halves } from './corpus/framing.js'
import { headers } from './corpus/headers.js'
import type { Era, Text } from './corpus/input.js'
import { type Random, randomOf } from './corpus/random.js'
import { sessions, sseSessions } from './corpus/sessions.js'
import { batches, mutations, shapes, texts } from './corpus/texts.js'
import { legacyFront, modernFront, sseFront, TOKENS, UNCHANGED } from './tool/fronts.js'
import { startHealthy } from './tool/healthy.js'
import { type Keys, runAll, runHalves, textRuns } from './tool/lanes.js'
import { HostilePipe } from './tool/pipe.js'
import { print } from './tool/report.js'
import { CALLERS, type Passing, pipeCaller, runAnswers } from './tool/servers.js'
import { runStates } from './tool/states.js'
import { Verdict } from './tool/verdict.js'

const { values } = parseArgs({
  options: { quick: { type: 'boolean' }, seed: { type: 'string' }, only: { type: 'string' } },
})
const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31))
/**
 * Random mutations for each front, forged states, and of how many inputs each front takes one. There are two fronts or more for
 * each era, which take other ones.
 */
const pace = values.quick ? { mutations: 20, states: 200, oneIn: 10 } : { mutations: 200, states: 2_000, oneIn: 2 }
/** Milliseconds after which the whole run is given up. */
const DEADLINE = 15 * 60_000
/** The priority of what is hostile, below that of the bridge and its healthy client. */
const POLITE = 10
/** Milliseconds between two lines that say how far it is. */
const PROGRESS = 15_000
/** MiB of heap that the bridge has. */
const HEAP = 512
/** Milliseconds that calls to bad servers, and answers to questions, have. */
const CALL = 3_000
const ANSWER = 20_000

const FIXTURES = 'test/fixtures'
const program = (name: string, plan: object = {}) => ({
  command: execPath,
  args: [join(FIXTURES, name), JSON.stringify(plan)],
})
const scope = new ToolScope()
const verdict = new Verdict()
const keys: Keys = new Map()

setTimeout(() => void giveUp(`not done after ${DEADLINE / 60_000} minutes`), DEADLINE).unref()
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => void giveUp(signal))
process.on('uncaughtException', (error) => void giveUp(String(error.stack)))
const began = performance.now()
setInterval(() => {
  const seconds = ((performance.now() - began) / 1_000).toFixed(0)
  console.log(`${seconds} s: ${verdict.runs} runs, ${verdict.failures} failures; now ${verdict.last}`)
}, PROGRESS).unref()
try {
  await run()
} catch (error) {
  await giveUp(error instanceof Error ? String(error.stack) : String(error))
}

async function run(): Promise<void> {
  console.log(
    `Seed ${seed}, Node ${process.version}, ${availableParallelism()} cores, load ${loadavg()[0]?.toFixed(1)}`,
  )
  const executions = join(temporaryFolder(scope), 'executions')
  const [everything, modern, healthy] = await Promise.all([
    startEverything(scope),
    startModern(scope, undefined, 'ignore'),
    startFixture(scope, 'modern-http.mjs', '{}'),
  ])
  const raw = await Promise.all(
    ['legacy', 'modern'].map((era) => startFixture(scope, 'raw-http.mjs', JSON.stringify({ era }))),
  )
  const named = (way: { upstream: string }) => parseUpstream(way.upstream)
  const bad = { timeouts: { call: CALL } }
  const badServers = {
    'bad-program': { ...program('raw-stdio.mjs'), ...bad },
    'bad-legacy-http': { url: raw[0]?.url, ...bad },
    'bad-modern-http': { url: raw[1]?.url, ...bad },
  }
  const settings = {
    admin: 'http://127.0.0.1:0',
    limits: { startsPerMinute: 100_000 },
    timeouts: { drainTimeout: 2_000 },
  }
  const start: Start = async (mcpServers, more = {}) => {
    const node = [`--max-old-space-size=${HEAP}`]
    const bridge = await BuiltBridge.start(scope, { ...settings, mcpServers, ...more }, { node })
    // At the end, calls that nobody waits for any more are cut off.
    bridge.onMistake = (line) =>
      bridge.stopped === undefined &&
      verdict.fail('mistakes', `${Object.keys(mcpServers).length} servers: ${line.slice(0, 900)}`)
    return bridge
  }
  const bridge = await start(
    {
      everything: named(everything.stdio),
      'everything-http': named(everything['Streamable HTTP']),
      modern: named(modern['Streamable HTTP']),
      scripted: { ...program('legacy-stdio.mjs', { asks: true, executions }), timeouts: { answer: ANSWER } },
      'healthy-program': program('legacy-stdio.mjs'),
      'healthy-http': { url: healthy.url },
      ...badServers,
    },
    { listen: 'http://127.0.0.1:0/mcp', auth: { tokens: TOKENS } },
  )
  const before = await bridge.metrics()
  const beside = startHealthy(scope, [bridge.url('healthy-program'), bridge.url('healthy-http')], TOKENS.alice)
  const direct = startHealthy(scope, [healthy.url])
  // It is the bridge that is measured, and not how much of the machine is left beside this process.
  setPriority(POLITE)

  const groups: Record<string, () => Promise<void>> = {
    texts: () => runTexts(bridge, start, named(everything.stdio), named(modern.stdio)),
    requests: () => runRequests(bridge),
    states: () => runStates(bridge.url('scripted'), pace.states, ANSWER, verdict, random('states')),
    servers: () => runServers(bridge, start, badServers),
  }
  for (const [name, group] of Object.entries(groups)) {
    if (values.only !== undefined && !values.only.split(',').includes(name)) continue
    const { inputs, runs } = verdict
    const since = performance.now()
    await group()
    const seconds = ((performance.now() - since) / 1_000).toFixed(0)
    console.log(`${name}: ${verdict.inputs - inputs} inputs, ${verdict.runs - runs} runs, ${seconds} s`)
  }

  const health = await beside()
  const machine = await direct()
  const ran = existsSync(executions) ? readFileSync(executions, 'utf8').split('\n') : []
  for (const key of ran) if (keys.has(key)) verdict.fail('executed', String(keys.get(key)))
  const after = bridge.ended === undefined ? await bridge.metrics() : {}
  await look(bridge, 'HTTP')
  for (const error of health.errors) verdict.fail('healthy', error)
  print({ verdict, health, machine, before, after, seconds: (performance.now() - began) / 1_000, seed })
  await scope.end()
  process.exit(verdict.failures > 0 ? 1 : 0)
}

type Start = (mcpServers: object, more?: object) => Promise<BuiltBridge>

/** Each group has its own chance, so that one of them can be run again alone. */
function random(name: string): Random {
  return randomOf([...name].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) >>> 0, seed))
}

/** What one front is sent: its part of the tables, and mutations of its own. */
function* corpus(era: Era, name: string, front: number): Iterable<Text> {
  const all = [...fields(era), ...texts(era), ...batches(era), ...shapes(era)]
  for (const [n, input] of all.entries()) if (n % pace.oneIn === front % pace.oneIn) yield input
  yield* mutations(era, random(name), pace.mutations)
}

/** Texts of messages, which every front is sent. */
async function runTexts(bridge: BuiltBridge, start: Start, legacyProgram: object, modernProgram: object) {
  const fronts = await Promise.all([
    modernFront('a legacy program', bridge.url('everything')),
    modernFront(UNCHANGED, bridge.url('modern')),
    legacyFront(UNCHANGED, bridge.url('everything-http')),
    legacyFront('a modern server', bridge.url('modern')),
    sseFront('a legacy program', bridge.url('everything')),
    sseFront('a modern server', bridge.url('modern')),
  ])
  const pipes = await Promise.all(
    (
      [
        ['modern', legacyProgram],
        ['legacy', modernProgram],
      ] as const
    ).map(async ([era, server]) => {
      const own = await start({ program: server }, { listen: 'stdio' })
      const pipe = new HostilePipe(own, era)
      await pipe.open()
      return { era, own, pipe }
    }),
  )
  await Promise.all([
    ...fronts.map(async (front, n) => {
      const chance = random(front.name)
      await runAll(front, textRuns(front, corpus(front.era, front.name, n)), verdict, chance, keys)
      await front.end()
    }),
    ...pipes.map(async ({ era, own, pipe }, n) => {
      await pipe.run(corpus(era, `stdio ${era}`, n), verdict, random(`stdio ${era}`))
      await look(own, `stdio, ${era}`, false)
      await own.end()
    }),
  ])
}

/** Whole requests of HTTP: their headers, how they are framed, and the sessions that they name. */
async function runRequests(bridge: BuiltBridge): Promise<void> {
  const modern = modernFront('a legacy program', bridge.url('scripted'))
  const legacy = await legacyFront('a legacy program', bridge.url('scripted'))
  const sse = await sseFront('a legacy program', bridge.url('scripted'))
  await Promise.all([
    runAll(modern, headers('modern'), verdict, random('headers'), keys),
    runAll(modern, framing(), verdict, random('framing'), keys),
    runHalves(modern, halves(), verdict, random('halves')),
    runAll(legacy, [...headers('legacy'), ...sessions()], verdict, random('sessions'), keys),
    runAll(sse, sseSessions(), verdict, random('sse'), keys),
  ])
  await Promise.all([legacy.end(), sse.end()])
}

function passingOf(front: string, server: string): Passing {
  if (server === 'bad-program') return front === 'modern HTTP' ? 'translated' : 'direct'
  if (server === 'bad-legacy-http' && front === 'HTTP+SSE') return 'direct'
  const own = server === 'bad-modern-http' ? 'modern HTTP' : 'legacy HTTP'
  return front === own ? 'unchanged' : 'translated'
}

/** Servers that answer what they should not, behind every front. */
async function runServers(bridge: BuiltBridge, start: Start, servers: Record<string, object>): Promise<void> {
  const overHttp = [...HTTP, ...TEXTS.map(asBody), ...TEXTS.map(asEvents)]
  const answers = (server: string) => {
    const all = server === 'bad-program' ? [...PROGRAM, ...TEXTS.map(asLines)] : overHttp
    return all.filter((_, n) => n % pace.oneIn === 0)
  }
  await Promise.all(
    Object.keys(servers).map(async (server) => {
      for (const [front, caller] of Object.entries(CALLERS))
        await runAnswers(
          `${front}, ${server}`,
          caller(bridge.url(server)),
          answers(server),
          verdict,
          passingOf(front, server),
        )
      const own = await start({ [server]: servers[server] }, { listen: 'stdio' })
      await runAnswers(`stdio, ${server}`, pipeCaller(own), answers(server), verdict)
      await look(own, `stdio, ${server}`)
      await own.end()
    }),
  )
}

/** Whether a bridge still runs. */
async function look(bridge: BuiltBridge, name: string, counted = true): Promise<void> {
  if (bridge.ended !== undefined && counted) verdict.fail('crashes', `${name}: ${bridge.ended}, ${bridge.stopped}`)
}

async function giveUp(why: string): Promise<never> {
  process.stderr.write(`test:hostile: ${why}\n`)
  await scope.end()
  process.exit(1)
}
