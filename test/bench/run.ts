/** `npm run bench [-- --quick] [-- --json <file>]`: what the bridge costs, next to a proxy that reads nothing. */
import { writeFileSync } from 'node:fs'
import { cpus, loadavg } from 'node:os'
import { parseArgs } from 'node:util'
import { candidates } from './candidates.js'
import { judge, type Measured } from './goals.js'
import { type IdlePace, measureIdle } from './idle.js'
import { measure, type Pace } from './measure.js'
import { hasRedis, pinned, startRedis, stepAside } from './processes.js'
import { blockTable, goalList, idleTable, startUpTable } from './report.js'
import { scenarios } from './scenarios.js'
import { measureStartUp } from './start-up.js'

interface RunPace extends Pace {
  starts: number
  idle: IdlePace
}

const PACES: Record<'full' | 'quick', RunPace> = {
  // Until it is compiled, code takes several times the CPU, and compiling takes place on the same core.
  full: { rounds: 5, turn: 800, warmUp: 4_000, starts: 7, idle: { sessions: 1_000, pause: 3_000 } },
  quick: { rounds: 2, turn: 300, warmUp: 1_000, starts: 5, idle: { sessions: 200, pause: 1_000 } },
}
/** Milliseconds after which a run is given up. */
const DEADLINE = 600_000

const { values } = parseArgs({ options: { quick: { type: 'boolean' }, json: { type: 'string' } } })

setTimeout(() => giveUp(`not done after ${DEADLINE / 1000} s`), DEADLINE).unref()
try {
  await run(values.quick ? PACES.quick : PACES.full)
} catch (error) {
  giveUp(error instanceof Error ? error.message : String(error))
}

async function run(pace: RunPace): Promise<void> {
  stepAside()
  if (hasRedis) startRedis()
  const [{ model } = { model: 'unknown' }, ...others] = cpus()
  const machine = { node: process.version, model, cores: 1 + others.length, load: loadavg()[0] ?? 0, pinned }
  const how = pinned ? 'proxies on core 0, all else on core 1' : 'NOT PINNED to cores, so expect noise'
  console.log(`Node ${machine.node}, ${machine.cores} × ${model}, load ${machine.load.toFixed(1)}, ${how}
Multiples (×) are of the pass-through to the same server in the same round. A proxy that is less than 95 % busy is not what limits the rate.
${values.quick ? 'Quick: code is still being compiled while it is measured, so that all figures are worse than they are.\n' : ''}`)

  const measured: Measured = { blocks: [], startUp: [], idle: [] }
  for (const scenario of scenarios) {
    const among = candidates.filter(({ asked }) => asked?.includes(scenario.question) ?? true)
    for (const block of await measure(scenario, among, pace)) {
      measured.blocks.push(block)
      console.log(blockTable(block))
    }
  }
  const starting = candidates.filter(({ startUp }) => startUp)
  measured.startUp = await measureStartUp(starting, pace.starts)
  console.log(startUpTable(measured.startUp))
  measured.idle = await measureIdle(
    candidates.filter(({ idle }) => idle),
    pace.idle,
  )
  console.log(idleTable(measured.idle))

  const goals = judge(measured)
  console.log(goalList(goals))
  if (values.json !== undefined)
    writeFileSync(values.json, `${JSON.stringify({ machine, pace, ...measured, goals }, null, 2)}\n`)
}

/** No figures without right answers. What was started ends with this process. */
function giveUp(why: string): void {
  process.stderr.write(`bench: ${why}\n`)
  process.exit(1)
}
