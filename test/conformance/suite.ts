/** Runs the suite against one leg, and reads what it found. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { visit } from '../support/person.js'
import { start } from './children.js'
import { expectedFailures, type Leg } from './legs.js'
import { namesIn, unscoredIn } from './names.js'

export interface Check {
  id: string
  name: string
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

const SUITE_FOLDER = '.ci/tools/conformance/node_modules/@modelcontextprotocol/conformance'
const SUITE = join(SUITE_FOLDER, 'dist/index.js')
const REQUIREMENTS = join(SUITE_FOLDER, 'requirements')

/** Runs the suite. `subject` are the arguments that say what it looks at. */
export async function runSuite(leg: Leg, subject: readonly string[], options: Options): Promise<Outcome> {
  const { scenarios, folder } = options
  const { scored, all } = requirementsOf(leg)
  // It can be told to run all that a revision requires, but then of a client also what is not had here.
  const names = scenarios.length === 0 && leg.mode === 'client' ? all : all.filter((name) => scenarios.includes(name))
  const common = [SUITE, leg.mode, ...subject, '--output-dir', folder]
  // The second of the scenarios of an authorization server needs what the first has found.
  const runAll = leg.mode === 'authorization' ? runWhole : runRequired
  const exitCode = await (names.length === 0 ? runAll(leg, common, options) : runEach(names, leg, common, options))
  return {
    leg,
    exitCode,
    scored,
    wanted: scenarios.length === 0 ? scored : names,
    expected: expectedOf(leg),
    checks: readChecks(folder, leg.mode),
  }
}

/** Whether the leg has any of these scenarios; it has all of none. */
export function knows(leg: Leg, scenarios: readonly string[]): boolean {
  return scenarios.length === 0 || requirementsOf(leg).all.some((name) => scenarios.includes(name))
}

function runRequired(leg: Leg, common: readonly string[], { folder, onScenario }: Options): Promise<number> {
  const required = ['--requirements', leg.revision, '--expected-failures', expectedFailures(leg)]
  return run([...common, ...required], join(folder, 'suite.log'), onScenario)
}

function runWhole(_leg: Leg, common: readonly string[], { folder, onScenario }: Options): Promise<number> {
  return run([...common], join(folder, 'suite.log'), onScenario)
}

async function runEach(
  names: readonly string[],
  leg: Leg,
  common: readonly string[],
  { folder, onScenario }: Options,
): Promise<number> {
  const failing = expectedOf(leg).map((entry) => entry.split(':')[0])
  let exitCode = 0
  for (const [index, name] of names.entries()) {
    onScenario(name, index, names.length)
    // Required scenarios are run whether or not they say that they belong to the revision; so is one by itself.
    const one = ['--scenario', name, '--spec-version', leg.revision, '--force']
    // Where it is given failures to expect, the suite does not look at how its client has ended.
    const known = leg.mode === 'server' || failing.includes(name)
    const expecting = known ? ['--expected-failures', expectedFailures(leg)] : []
    const ended = await run([...common, ...one, ...expecting], join(folder, 'suite.log'), () => {})
    exitCode = Math.max(exitCode, ended)
  }
  return exitCode
}

function expectedOf(leg: Leg): string[] {
  return namesIn(readFileSync(expectedFailures(leg), 'utf8'), leg.mode)
}

/** Sign-in of 2025-03-26, of which the suite has no list. They are run where legacy servers are signed in to. */
const OLDEST_SIGN_IN = ['auth/2025-03-26-oauth-metadata-backcompat', 'auth/2025-03-26-oauth-endpoint-fallback']

/** What the suite checks of authorization servers, whatever the revision. */
const AUTHORIZATION = ['authorization-server-metadata-endpoint', 'authorization-code-grant']

/** What counts of what the revision requires, and all that is run. Clients of the suite's server legs sign in nowhere. */
function requirementsOf({ mode, revision }: Leg): { scored: string[]; all: string[] } {
  if (mode === 'authorization') return { scored: AUTHORIZATION, all: AUTHORIZATION }
  const yaml = readFileSync(join(REQUIREMENTS, `${revision}.yaml`), 'utf8')
  const isOurs = (name: string) => !(mode === 'server' && name.startsWith('auth/'))
  const scored = namesIn(yaml, mode).filter(isOurs)
  const oldest = mode === 'client' && revision === '2025-11-25' ? OLDEST_SIGN_IN : []
  return { scored, all: [...scored, ...unscoredIn(yaml, mode).filter(isOurs), ...oldest] }
}

const AUTHORIZE = /^http:\/\/\S+\/authorize\?/

async function run(args: string[], log: string, onScenario: Options['onScenario']): Promise<number> {
  const child = start(args, log)
  let count = 0
  let index = 0
  for await (const line of child.lines) {
    const announced = /\((\d+) scenarios\)/.exec(line)?.[1]
    if (announced !== undefined) count = Number(announced)
    const name = /^=== Running scenario: (.+) ===$/.exec(line)?.[1]
    if (name !== undefined) onScenario(name, index++, count)
    // The suite has no browser: it writes where a person has to go.
    if (AUTHORIZE.test(line)) await visit(line)
  }
  return (await child.ended) ?? 1
}

/** What is before the name of a scenario in the name of its folder. */
const PREFIX = { server: 'server-', client: '', authorization: 'authorization-server-' } as const

/** Each scenario has a folder, named after the scenario and the time, and before them what is looked at. */
function readChecks(folder: string, mode: Leg['mode']): Map<string, Check[]> {
  const found = new Map<string, Check[]>()
  for (const path of readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort()) {
    const name = new RegExp(`^${PREFIX[mode]}(.+)-\\d{4}-\\d\\d-\\d\\dT[\\d-]+Z/checks\\.json$`).exec(path)?.[1]
    if (name !== undefined) found.set(name, JSON.parse(readFileSync(join(folder, path), 'utf8')) as Check[])
  }
  return found
}
