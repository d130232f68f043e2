/** Runs the suite against one leg, and reads what it found. */
import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { start } from './children.js'
import { expectedFailures, type Leg } from './legs.js'
import { namesIn } from './names.js'

export interface Check {
  id: string
  status: 'SUCCESS' | 'FAILURE' | 'WARNING' | 'SKIPPED' | 'INFO'
  errorMessage?: string
}

export interface Outcome {
  leg: Leg
  /** The suite's own verdict, which includes expectations that no longer hold. */
  exitCode: number
  /** Scenarios that count, in the order of the requirements. */
  scored: readonly string[]
  /** Scenarios that were to be run, beside those that do not count. */
  wanted: readonly string[]
  /** Names of scenarios, or of scenario and check, that are expected to fail. */
  expected: readonly string[]
  /** What was checked, by scenario. */
  checks: ReadonlyMap<string, readonly Check[]>
}

export interface Options {
  /** Scenarios to run; all that the revision requires where there are none. */
  scenarios: readonly string[]
  /** Where the suite writes its results and its log. */
  folder: string
  /** Called when a scenario begins. */
  onScenario(name: string, index: number, count: number): void
}

const manifest = createRequire(import.meta.url).resolve('@modelcontextprotocol/conformance/package.json')
const SUITE = join(dirname(manifest), 'dist/index.js')
const REQUIREMENTS = join(dirname(manifest), 'requirements')

export async function runSuite(leg: Leg, url: string, { scenarios, folder, onScenario }: Options): Promise<Outcome> {
  const baseline = expectedFailures(leg)
  const common = [SUITE, leg.mode, '--url', url, '--expected-failures', baseline, '--output-dir', folder]
  const log = join(folder, 'suite.log')
  let exitCode = 0
  if (scenarios.length === 0) {
    exitCode = await run([...common, '--requirements', leg.revision], log, onScenario)
  } else {
    for (const [index, name] of scenarios.entries()) {
      onScenario(name, index, scenarios.length)
      // Required scenarios are run whether or not they say that they belong to the revision; so is one by itself.
      const one = ['--scenario', name, '--spec-version', leg.revision, '--force']
      exitCode = Math.max(exitCode, await run([...common, ...one], log, () => {}))
    }
  }
  const scored = namesIn(readFileSync(join(REQUIREMENTS, `${leg.revision}.yaml`), 'utf8'), leg.mode)
  return {
    leg,
    exitCode,
    scored,
    wanted: scenarios.length === 0 ? scored : scenarios,
    expected: namesIn(readFileSync(baseline, 'utf8'), leg.mode),
    checks: readChecks(folder, leg.mode),
  }
}

async function run(args: string[], log: string, onScenario: Options['onScenario']): Promise<number> {
  const child = start(args, log)
  let count = 0
  let index = 0
  for await (const line of child.lines) {
    const announced = /\((\d+) scenarios\)/.exec(line)?.[1]
    if (announced !== undefined) count = Number(announced)
    const name = /^=== Running scenario: (.+) ===$/.exec(line)?.[1]
    if (name !== undefined) onScenario(name, index++, count)
  }
  return (await child.ended) ?? 1
}

/** Each scenario has a folder, named after the suite's mode, the scenario and the time. */
function readChecks(folder: string, mode: string): Map<string, Check[]> {
  const found = new Map<string, Check[]>()
  for (const path of readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort()) {
    const name = new RegExp(`^${mode}-(.+)-\\d{4}-\\d\\d-\\d\\dT[\\d-]+Z/checks\\.json$`).exec(path)?.[1]
    if (name !== undefined) found.set(name, JSON.parse(readFileSync(join(folder, path), 'utf8')) as Check[])
  }
  return found
}
