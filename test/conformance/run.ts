/**
 * The official conformance suite, through the bridge: `npm run conformance`, or with `-- --leg stdio` for some of the
 * legs and `-- --scenario tools-list` for some of the scenarios; both can be repeated. With `-- --policies` the bridge writes an
 * audit log, and chooses all tools. The tables go to standard output, everything else to results/conformance.
 */
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { startBridge } from './bridge.js'
import { endAll } from './children.js'
import { startFacade } from './facade.js'
import { type Leg, legs, legsNamed } from './legs.js'
import { report } from './report.js'
import { knows, type Outcome, runSuite } from './suite.js'

const RESULTS = 'results/conformance'
const CLIENT = 'node --import tsx test/conformance/client.ts'
const OLDEST_NODE = 22
const INTERRUPTED = 130

process.chdir(fileURLToPath(new URL('../..', import.meta.url)))
const { values } = parseArgs({
  options: {
    leg: { type: 'string', multiple: true, default: legs.map(({ name }) => name) },
    scenario: { type: 'string', multiple: true, default: [] },
    policies: { type: 'boolean', default: false },
  },
})

let interrupted = false
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    interrupted = true
    tell('Ending what was started\n')
    endAll()
      .catch(() => {})
      .finally(() => process.exit(INTERRUPTED))
  })
}

if (Number.parseInt(process.versions.node, 10) < OLDEST_NODE) {
  fail(`The suite needs Node.js ${OLDEST_NODE}: npm run conformance has it`)
} else {
  const unknown = values.leg.filter((name) => !legs.some((leg) => leg.name === name))
  if (unknown.length > 0)
    fail(`No such leg: ${unknown.join(', ')}; there are ${legs.map(({ name }) => name).join(', ')}`)
  else await runLegs(legsNamed(values.leg).filter((leg) => knows(leg, values.scenario)))
}

/** One after the other, because some checks wait for half a second and no longer. */
async function runLegs(selected: readonly Leg[]): Promise<void> {
  const outcomes: Outcome[] = []
  for (const leg of selected) {
    try {
      outcomes.push(await runLeg(leg))
    } catch (error) {
      if (!interrupted) fail(`${leg.name}: ${error instanceof Error ? error.message : String(error)}`)
    } finally {
      await endAll()
    }
    // Half a result looks like a whole one.
    if (interrupted) return
  }
  if (outcomes.length === 0) return fail('Nothing was run')
  const { text, lost } = report(outcomes)
  process.stdout.write(`\n${text}\n`)
  if (lost) fail('There is something that passes without the bridge, and not with it')
  for (const { leg, exitCode, checks } of outcomes) {
    if (exitCode === 0 && checks.size > 0) continue
    fail(`${leg.name}: the suite exited with code ${exitCode}; its log is ${RESULTS}/${leg.name}/suite.log`)
  }
}

async function runLeg(leg: Leg): Promise<Outcome> {
  const folder = join(RESULTS, leg.name)
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  tell(`${leg.name}: starting`)
  const subject = await subjectOf(leg, folder)
  const onScenario = (name: string, index: number, count: number) => {
    tell(`${leg.name}: ${String(index + 1).padStart(String(count).length)}/${count} ${name}`)
  }
  return runSuite(leg, subject, { scenarios: values.scenario, folder, onScenario })
}

/** What the suite looks at: a server at an address, the client that a command starts, or an authorization server. */
async function subjectOf(leg: Leg, folder: string): Promise<string[]> {
  switch (leg.mode) {
    case 'server':
      return ['--url', await startBridge(leg, folder, values.policies)]
    case 'client':
      return ['--command', `${CLIENT} ${leg.front}`]
    case 'authorization':
      return startFacade(folder)
  }
}

/** What goes on, on one line where somebody is watching. */
function tell(text: string): void {
  process.stderr.write(process.stderr.isTTY ? `\r\x1b[K${text}` : `${text}\n`)
}

function fail(text: string): void {
  process.stderr.write(`${process.stderr.isTTY ? '\r\x1b[K' : ''}${text}\n`)
  process.exitCode = 1
}
