/**
 * `npm run bench`: what the bridge costs, next to a proxy that reads nothing. Options, after `--`:
 * `--quick` few and short turns; `--scenario <text>` only scenarios whose name has this text, without start-up and idle sessions;
 * `--profile` no figures, but which files of the bridge take the time of a small call;
 * `--against <commit>` also builds that commit and measures it in the same rounds; `--json <file>` writes all figures.
 */
import { writeFileSync } from 'node:fs'
import { cpus, loadavg } from 'node:os'
import { parseArgs } from 'node:util'
import { buildOf } from './builds.js'
import { besideBuild, candidates } from './candidates.js'
import { judge, type Measured } from './goals.js'
import { type IdlePace, measureIdle } from './idle.js'
import { measure, type Pace } from './measure.js'
import { hasRedis, pinned, startRedis, stepAside } from './processes.js'
import { profile } from './profile.js'
import { againstTable, blockTable, goalList, idleTable, profileTable, startUpTable } from './report.js'
import { scenarios, smallCall } from './scenarios.js'
import { measureStartUp } from './start-up.js'

interface RunPace extends Pace {
  starts: number
  idle: IdlePace
}

const PACES: Record<'full' | 'quick', RunPace> = {
  // Until it is compiled, code takes several times the CPU, and compiling takes place on the same core.
  full: { rounds: 12, turn: 400, warmUp: 4_000, starts: 7, idle: { sessions: 1_000, pause: 3_000 } },
  quick: { rounds: 2, turn: 300, warmUp: 1_000, starts: 5, idle: { sessions: 200, pause: 1_000 } },
}
/** Milliseconds after which a run is given up. */
const DEADLINE = 1_800_000

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean' },
    json: { type: 'string' },
    against: { type: 'string' },
    scenario: { type: 'string' },
    profile: { type: 'boolean' },
  },
})

setTimeout(() => giveUp(`not done after ${DEADLINE / 1000} s`), DEADLINE).unref()
try {
  await (values.profile ? profileAll() : run(values.quick ? PACES.quick : PACES.full))
} catch (error) {
  giveUp(error instanceof Error ? error.message : String(error))
}

async function run(pace: RunPace): Promise<void> {
  const { against, scenario: wanted = '' } = values
  const measuredOnes = against === undefined ? candidates : besideBuild(buildOf(against))
  stepAside()
  if (hasRedis) startRedis()
  const [{ model } = { model: 'unknown' }, ...others] = cpus()
  const machine = { node: process.version, model, cores: 1 + others.length, load: loadavg()[0] ?? 0, pinned }
  const how = pinned ? 'proxies on core 0, all else on core 1' : 'NOT PINNED to cores, so expect noise'
  console.log(`Node ${machine.node}, ${machine.cores} × ${model}, load ${machine.load.toFixed(1)}, ${how}
Multiples (×) are of the pass-through to the same server in the same round. A proxy that is less than 95 % busy is not what limits the rate.
${values.quick ? 'Quick: code is still being compiled while it is measured, so that all figures are worse than they are.\n' : ''}`)

  const measured: Measured = { blocks: [], startUp: [], idle: [] }
  for (const scenario of scenarios.filter(({ name }) => name.includes(wanted))) {
    const among = measuredOnes.filter(({ asked }) => asked?.includes(scenario.question) ?? true)
    for (const block of await measure(scenario, among, pace)) {
      measured.blocks.push(block)
      console.log(blockTable(block))
    }
  }
  if (wanted === '') {
    const starting = measuredOnes.filter(({ startUp }) => startUp)
    measured.startUp = await measureStartUp(starting, pace.starts)
    console.log(startUpTable(measured.startUp))
    const idle = measuredOnes.filter((one) => one.idle)
    measured.idle = await measureIdle(idle, pace.idle)
    console.log(idleTable(measured.idle))
  }
  if (against !== undefined) console.log(againstTable(measured.blocks, against))

  const goals = judge(measured)
  console.log(goalList(goals))
  if (values.json !== undefined)
    writeFileSync(values.json, `${JSON.stringify({ machine, pace, ...measured, goals }, null, 2)}\n`)
}

/** Profiles the ways through the bridge as they are without extras, and the pass-throughs. */
async function profileAll(): Promise<void> {
  stepAside()
  for (const candidate of candidates.filter(({ proxy, extra }) => proxy !== undefined && !extra))
    console.log(profileTable(candidate.name, await profile(candidate, smallCall)))
}

/** No figures without right answers. What was started ends with this process. */
function giveUp(why: string): void {
  process.stderr.write(`bench: ${why}\n`)
  process.exit(1)
}
