/** `npm run bench`: what the bridge costs, next to a proxy that reads nothing. `npm run bench -- --help` has its options. */
import { readFileSync, writeFileSync } from 'node:fs'
import { cpus, loadavg } from 'node:os'
import { buildOf, ownCommit } from './builds.js'
import { AUDIENCE, besideBuild, type Surroundings } from './candidates.js'
import { writeDocument, writePublished } from './document.js'
import { measureFresh } from './fresh.js'
import { judge } from './goals.js'
import { measureIdle } from './idle.js'
import { type Block, measure } from './measure.js'
import { help, type Options, parseOptions } from './options.js'
import { installPeers } from './peers.js'
import { pinned, runProxiesOn, startRedis, stepAside } from './processes.js'
import { profile } from './profile.js'
import { measurePublished, PUBLISHED_MINUTES, PUBLISHED_PACE } from './published.js'
import { measureReplicas } from './replicas.js'
import {
  aboutLine,
  againstTable,
  blockTable,
  freshTable,
  goalRows,
  goalTable,
  idleTable,
  openTable,
  partsTable,
  profileTable,
  publishedTable,
  replicaTables,
} from './report.js'
import type { About, Results } from './results.js'
import { groupsOf, PACES, type Part, paceOf, secondsFor, select } from './selection.js'
import { startIssuer } from './sign-in.js'
import { asText, type Table } from './tables.js'

/** A run that takes so many times what was expected, and ten minutes, is given up. */
const PATIENCE = 3
const AT_LEAST = 600_000
let impatient: NodeJS.Timeout | undefined

try {
  await main(parseOptions(process.argv.slice(2)))
  // Redis still runs. It ends with this process.
  process.exit()
} catch (error) {
  giveUp(error instanceof Error ? error.message : String(error))
}

async function main(options: Options): Promise<void> {
  if (options.help) {
    process.stdout.write(help())
    return
  }
  const { from, json, write, publish, nodes } = options
  if (from !== undefined) {
    const kept = JSON.parse(readFileSync(from, 'utf8')) as Results[]
    kept.forEach(printAll)
    if (write) writeDocument(kept)
    if (publish) writePublished(kept)
    return
  }
  const results: Results[] = []
  for (const node of nodes) {
    const version = runProxiesOn(node)
    const further = results.length > 0
    try {
      results.push(publish ? await runPublished(options, version) : await run({ ...options, further }, version))
    } finally {
      clearTimeout(impatient)
    }
    writeFileSync(json, `${JSON.stringify(results, null, 2)}\n`)
  }
  if (write) writeDocument(results)
  if (publish) writePublished(results)
}

/** Measures the bridge beside other programs. */
async function runPublished(options: Options, node: string): Promise<Results> {
  const pace = { ...PUBLISHED_PACE, lives: options.lives ?? PUBLISHED_PACE.lives }
  const minutes = (PUBLISHED_MINUTES * pace.lives) / PUBLISHED_PACE.lives
  const results: Results = { about: about(pace, node), blocks: [], fresh: [], idle: [], goals: [], profiles: [] }
  installPeers()
  beImpatient(minutes * 60)
  stepAside()
  console.log(`${aboutLine(results.about)}\nAbout ${Math.ceil(minutes)} min.\n`)
  results.published = await measurePublished(pace, { redis: undefined })
  print(publishedTable(results.published))
  return results
}

/** Gives up the run on this Node.js after a while. */
function beImpatient(seconds: number): void {
  const patience = Math.max(AT_LEAST, seconds * PATIENCE * 1000)
  impatient = setTimeout(() => giveUp(`not done after ${Math.round(patience / 60_000)} minutes`), patience)
}

/** Measures what is selected, and prints each table when it is complete. */
async function run(options: Options, node: string): Promise<Results> {
  const { size, against, peers } = options
  const parts = select(options)
  const usual = PACES[size]
  const lives = options.lives ?? usual.lives
  const pace = {
    ...usual,
    lives,
    ways: { ...usual.ways, lives },
    idle: { ...usual.idle, sessions: options.sessions ?? usual.idle.sessions },
  }
  const results: Results = { about: about(pace, node), blocks: [], fresh: [], idle: [], goals: [], profiles: [] }
  if (parts.some(({ among }) => among.some(({ kind }) => kind === 'peer')) && peers) installPeers()
  const build = against === undefined ? undefined : buildOf(against)
  const seconds = options.profile ? 0 : secondsFor(parts, pace, build === undefined ? 1 : 2)
  beImpatient(seconds)
  stepAside()
  const redis = await startRedis()
  const surroundings = { redis: redis?.url, issuer: await startIssuer(AUDIENCE) }
  console.log(aboutLine(results.about))
  if (options.profile) {
    await profileAll(parts, options, surroundings, results)
    return results
  }
  console.log(
    `About ${Math.ceil(seconds / 60)} min. A proxy that is less than 95 % busy is not what limits the rate.\n`,
  )
  for (const { scenario, connections, among: chosen } of parts) {
    const among = build === undefined ? chosen : besideBuild(chosen, build)
    if (scenario.kind === 'fresh') {
      const fresh = await measureFresh(among, pace.starts, surroundings)
      results.fresh.push(...fresh)
      print(freshTable(fresh))
    } else if (scenario.kind === 'idle') {
      results.idle = await measureIdle(among, pace.idle, surroundings)
      print(idleTable(results.idle))
    } else if (scenario.kind === 'replicas') {
      if (redis === undefined) {
        console.log('replicas: left out, because there is no redis-server on the PATH\n')
        continue
      }
      results.replicas = await measureReplicas(among, pace, redis)
      replicaTables(results.replicas).forEach(print)
    } else {
      const measured: Block[] = []
      for (const group of groupsOf(scenario, among))
        measured.push(...(await measure(scenario, connections, group, paceOf(scenario, pace), surroundings)))
      const blocks = joined(measured)
      results.blocks.push(...blocks)
      for (const block of blocks) print(scenario.kind === 'open' ? openTable(block) : blockTable(block))
    }
  }
  if (against !== undefined) {
    results.against = against
    print(againstTable(results, against))
  }
  results.goals = judge(results)
  print(goalTable(goalRows(results.goals)))
  return results
}

/** Blocks over the same connections as one. Of what was measured several times, as controls are, the first figures are kept. */
function joined(blocks: readonly Block[]): Block[] {
  return [...new Set(blocks.map(({ connections }) => connections))].map((connections) => {
    const [first, ...others] = blocks.filter((block) => block.connections === connections) as [Block, ...Block[]]
    const cells = [...first.cells]
    for (const cell of others.flatMap((block) => block.cells))
      if (cells.every(({ candidate }) => candidate !== cell.candidate)) cells.push(cell)
    return { ...first, cells, failed: [...first.failed, ...others.flatMap(({ failed }) => failed)] }
  })
}

/** Profiles the lanes of the first scenario that is selected, and the pass-throughs. */
async function profileAll(parts: readonly Part[], options: Options, surroundings: Surroundings, { profiles }: Results) {
  const [part] = parts
  if (part === undefined || part.scenario.kind !== 'closed') throw new Error('--profile needs a scenario with calls')
  const [connections = 64] = options.connections.length > 0 ? options.connections : part.scenario.connections.quick
  const among = part.among.filter(({ kind, name }) => kind === 'bridge' || name.startsWith('pass-through'))
  for (const candidate of among) {
    const one = await profile(candidate, part.scenario, connections, PACES[options.size].profile, surroundings)
    profiles.push(one)
    print(profileTable(one))
  }
  print(partsTable(profiles))
}

function printAll(results: Results): void {
  const { blocks, fresh, idle, replicas, goals, profiles, published, against } = results
  console.log(aboutLine(results.about))
  for (const block of blocks) print(block.scenario === 'open' ? openTable(block) : blockTable(block))
  if (fresh.length > 0) print(freshTable(fresh))
  if (idle.length > 0) print(idleTable(idle))
  if (replicas) replicaTables(replicas).forEach(print)
  if (published) print(publishedTable(published))
  for (const one of profiles) print(profileTable(one))
  if (profiles.length > 0) print(partsTable(profiles))
  if (against !== undefined) print(againstTable(results, against))
  if (goals.length > 0) print(goalTable(goalRows(goals)))
}

function print(table: Table): void {
  console.log(asText(table))
}

function about(pace: About['pace'], node: string): About {
  const [{ model } = { model: 'unknown' }, ...others] = cpus()
  return {
    commit: ownCommit(),
    date: `${new Date().toISOString().slice(0, 16)}Z`,
    node,
    processor: model,
    cores: 1 + others.length,
    load: loadavg()[0] ?? 0,
    pinned,
    // Without where the results go, and where each Node.js is: its version is said.
    options: process.argv
      .slice(2)
      .join(' ')
      .replace(/ ?--(?:write|json \S+|node \S+)/g, ''),
    pace: { rounds: pace.rounds, window: pace.window, warmUp: pace.warmUp, lives: pace.lives },
  }
}

/** No figures without right answers. What was started ends with this process. */
function giveUp(why: string): void {
  process.stderr.write(`bench: ${why}\n`)
  process.exit(1)
}
