/**
 * Runs the tests: `npm run test:only -- [options] [files and folders]`, by default all `*.test.ts` below test.
 *
 * Starting a file from its sources takes longer than most tests do, and so does compiling what many files share. So esbuild
 * makes one bundle of all that will run, with tap in it, and a few processes (tests-worker.mjs) run one file after the other:
 * five at once for each core, two of which begin with files that mostly wait (tests-waiting.mjs). A file that has to be alone
 * says so in its first lines ("Runs alone: why"), and so does one that needs a process of its own ("Runs in its own process: why").
 */
import { readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join, resolve } from 'node:path'
import { chdir, env, exit, pid, stdout } from 'node:process'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { isBuilt } from './is-built.mjs'
import { mapped } from './source-maps.mjs'
import { bundle } from './tests-bundle.mjs'
import { run, Worker } from './tests-process.mjs'
import { WAITING } from './tests-waiting.mjs'

const HELP = `Usage: npm run test:only -- [options] [files and folders]

Runs all tests, or those of some files and folders of test: rpc, wire/session.test.ts, test/cli

  --kind K   files *.K.ts: test (the default), slow, soak, memory, field or containers; several with
             commas
  --told     prints the names of tests that passed, and what tests tell: figures, for example
  --times    prints a table of seconds and CPU time of each file
  --again    runs files that failed, if they are few, once more, each alone; what passes then is unsteady, and no failure
  --jobs N   files at once, by default five for each core, because they wait most of their time; two of
             other kinds, which start browsers and many processes
  --sources  runs the sources without a bundle and each in its own process, which coverage needs
  --list     prints the names of the files, and runs nothing
`
/** Of this run: several may run at once. */
const FOLDER = `.tap/run-${pid}`
const OUT = `${FOLDER}/bundle`
const ALONE = /^(?: \*|\/\*\*) Runs alone: /m
const APART = /^(?: \*|\/\*\*) Runs in its own process: /m
/** Lines about what has passed, which are left out of the output of a file that failed. */
const PASSED = /^ *(?:ok \d.*|1\.\.\d+|# Subtest: .*|)\n/gm
/** The share of processes that begin with files that mostly wait. */
const WAIT = 2 / 5
/** Between two lines of progress, in seconds, where no terminal shows it. */
const SILENCE = 60
/** Files that `--again` repeats. If more fail, it is not by chance. */
const FEW = 3

chdir(fileURLToPath(new URL('..', import.meta.url)))
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    kind: { type: 'string', default: 'test' },
    told: { type: 'boolean', default: false },
    times: { type: 'boolean', default: false },
    again: { type: 'boolean', default: false },
    jobs: { type: 'string' },
    sources: { type: 'boolean', default: false },
    list: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})
if (values.help) {
  stdout.write(HELP)
  exit(0)
}

const all = readdirSync('test', { recursive: true }).map((path) => path.replaceAll('\\', '/'))
const endings = values.kind.split(',').map((kind) => `.${kind}.ts`)
const chosen = positionals.map((path) => path.replace(/^(\.\/)?test\/|\/$/g, ''))
const names = all
  .filter((path) => endings.some((ending) => path.endsWith(ending)) && (chosen.length === 0 || chosen.some(isOf(path))))
  .map((path) => path.slice(0, -'.ts'.length))
const unknown = chosen.filter((choice) => !names.some((name) => isOf(`${name}.ts`)(choice)))
if (unknown.length > 0) {
  const where = unknown.map((choice) => `test/${choice}`).join(', ')
  stdout.write(`No file of this kind (${endings.join(', ')}) at ${where}\n`)
  exit(2)
}
if (values.list) {
  stdout.write(`${names.sort().join('\n')}\n`)
  exit(0)
}

const began = performance.now()
const secondsSince = (start) => Math.round((performance.now() - start) / 1_000)
process.on('exit', () => rmSync(FOLDER, { recursive: true, force: true }))
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => exit(1))
if (!isBuilt()) await import('./build.mjs')
const programs = all.filter((path) => path.endsWith('.program.ts')).map((path) => path.slice(0, -'.ts'.length))
if (!values.sources) await bundle(OUT, names, programs)

/** Large files first: they tend to take longest, and nothing should run on alone at the end. */
const bySize = names.toSorted((a, b) => sizeOf(b) - sizeOf(a))
const alone = bySize.filter((name) => ALONE.test(headOf(name)))
const waiting = WAITING.filter((name) => names.includes(name))
const busy = bySize.filter((name) => !alone.includes(name) && !waiting.includes(name))
const inherited = { ...env }
// These reach nothing outside of the machine, and each process of Node.js would read the file when it starts.
if (values.kind === 'test') delete inherited.NODE_EXTRA_CA_CERTS
if (!values.sources) inherited.MCP_BRIDGE_TEST_BUNDLE = resolve(OUT)
const failed = new Set()
const skips = []
const times = []
let finished = 0
let assertions = 0
const progress = setInterval(report, stdout.isTTY ? 1_000 : SILENCE * 1_000)
const perCore = values.kind === 'test' ? 5 : 2
const jobs = Math.max(1, Number(values.jobs ?? perCore * availableParallelism()))
const beginWaiting = Math.floor(jobs * WAIT)
await Promise.all(
  Array.from({ length: jobs }, (_, n) => (n < beginWaiting ? work(waiting, busy) : work(busy, waiting))),
)
await work(alone)
const unsteady =
  values.again && failed.size <= FEW ? await repeat([...failed].filter((name) => names.includes(name))) : []
clearInterval(progress)

for (const skip of new Set(skips)) stdout.write(`skipped: ${skip}\n`)
if (values.times) stdout.write(tableOf(times))
stdout.write(
  `${names.length - failed.size} files passed, ${failed.size} failed, ${assertions} assertions, ${secondsSince(began)} s\n`,
)
for (const name of unsteady) stdout.write(`unsteady: ${name} failed once, and passed alone\n`)
if (failed.size > 0) {
  stdout.write([...failed].map((name) => `  npm run test:only -- ${name}.ts\n`).join(''))
  exit(1)
}

function isOf(path) {
  return (choice) =>
    path === choice || path.startsWith(`${choice}/`) || endings.some((ending) => path === `${choice}${ending}`)
}

function sourceOf(name) {
  return join('test', `${name}.ts`)
}

function sizeOf(name) {
  return statSync(sourceOf(name)).size
}

function headOf(name) {
  return readFileSync(sourceOf(name), 'utf8').slice(0, 2_000)
}

/** Runs one file after the other, as long as there are any in one of the lists: in one process, unless one needs its own. */
async function work(...lists) {
  let shared
  const next = () => lists.find((list) => list.length > 0)?.shift()
  for (let name = next(); name !== undefined; name = next()) {
    if (values.sources) record(name, await run(['--import=tsx', sourceOf(name)], inherited))
    else if (APART.test(headOf(name))) {
      const own = newWorker()
      await runIn(own, name)
      await end(own, name)
    } else {
      shared ??= newWorker()
      if (await runIn(shared, name)) continue
      // What a failure has left behind should not disturb others.
      await shared.end()
      shared = undefined
    }
  }
  if (shared) await end(shared, 'files that shared a process')
}

/** Runs files that failed once more, and gives those that pass now, which have not failed then. */
async function repeat(files) {
  const passed = []
  for (const name of files) {
    finished--
    failed.delete(name)
    await work([name])
    if (!failed.has(name)) passed.push(name)
  }
  return passed
}

function newWorker() {
  return new Worker(resolve(OUT, 'worker.mjs'), inherited)
}

/** Runs a file in a process. Says whether it has passed. */
async function runIn(worker, name) {
  const result = await worker.run(name, resolve(OUT, `${name}.mjs`))
  record(name, result)
  return result.passed
}

async function end(worker, what) {
  const wrong = await worker.end()
  if (wrong !== undefined) fail(what, wrong)
}

function record(name, { passed, output, assertions: count, seconds = 0, cpu = 0 }) {
  finished++
  assertions += count
  times.push({ name, seconds, cpu })
  for (const [, skip] of output.matchAll(/^ *ok \d+ - (.* # SKIP.*)$/gm)) skips.push(`${name}: ${skip}`)
  if (values.told) stdout.write(`${name}: ${seconds.toFixed(0)} s\n${told(output)}`)
  if (!passed) fail(name, output)
}

/** The names of tests that passed, and their comments. */
function told(output) {
  return [...output.matchAll(/^( *)(?:ok \d+ - (?! *SKIP)(.*?)(?: # time=.*| \{)?|# (?!Subtest: |time=|\{)(.*))$/gm)]
    .map(([, indent, test, comment]) => `  ${indent}${test === undefined ? `${comment}` : `ok ${test}`}\n`)
    .join('')
}

function fail(name, output) {
  failed.add(name)
  stdout.write(`\n# ${name}\n${mapped(output.replace(PASSED, ''))}\n`)
}

function report() {
  const line = `${finished} of ${names.length} files, ${failed.size} failed, ${secondsSince(began)} s`
  stdout.write(stdout.isTTY ? `\r${line}\r` : `${line}\n`)
}

/** One line for each file, the dearest first. */
function tableOf(rows) {
  const sum = (key) => rows.reduce((total, row) => total + row[key], 0)
  const line = ({ seconds, cpu, name }) => `${seconds.toFixed(1).padStart(8)} ${cpu.toFixed(1).padStart(8)}  ${name}\n`
  const lines = rows.toSorted((a, b) => b.cpu - a.cpu).map(line)
  const last = line({ seconds: sum('seconds'), cpu: sum('cpu'), name: `all ${rows.length} files` })
  return `\n seconds      CPU  file\n${lines.join('')}${last}`
}
