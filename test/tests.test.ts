/** The tests themselves: what CONTRIBUTING.md says of them. */
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process, { execPath, platform } from 'node:process'
import { fileURLToPath, pathToFileURL } from 'node:url'
import t from 'tap'
// @ts-expect-error: plain JavaScript, of what runs the tests
import { WAITING } from '../.ci/tests-waiting.mjs'
import { temporaryFolder } from './support/folder.js'
import { freePort } from './support/free-port.js'

const root = fileURLToPath(new URL('../', import.meta.url))
const runner = join(root, '.ci/tests.mjs')
const list = (...args: string[]) => spawnSync(execPath, [runner, '--list', ...args], { encoding: 'utf8' })

/** Folders of tools that are no tests, and may take their time. */
const TOOLS = /^(?:bench|soak|windows|conformance|hostile\/tool)\/|^inspect\/load\.ts$/
const LONG = /\.(?:slow|soak|memory|field)\.ts$/
const sources = readdirSync(join(root, 'test'), { recursive: true, encoding: 'utf8' })
  .filter((path) => /\.(?:ts|mjs)$/.test(path) && !LONG.test(path) && !TOOLS.test(path))
  .map((path) => [path, readFileSync(join(root, 'test', path), 'utf8')] as const)

/** Milliseconds that a test may sleep at once. */
const MOST = 100
/** A pause of a fixed length: `sleep(100)`, `pause(SHORT)`, `setTimeout(resolve, 100)`. Not one with a signal, which ends it. */
const SLEEP = /\b(?:(?:sleep|pause|delay)\(|setTimeout\((?:\w+|\(\) => \w+\(\)), )([\d_]+|[A-Z][A-Z_]+)\)/g

function sleepsIn(text: string): number[] {
  return [...text.matchAll(SLEEP)].map(([, length = '']) => {
    const value = new RegExp(`const ${length} = ([\\d_]+)$`, 'm').exec(text)?.[1] ?? length
    return Number(value.replaceAll('_', ''))
  })
}

t.test('recognizes a fixed sleep in each spelling', async (t) => {
  const written: [text: string, length: number][] = [
    ['await sleep(1_200)', 1_200],
    ['await pause(150)', 150],
    ['new Promise((resolve) => setTimeout(resolve, 500))', 500],
    ['setTimeout(() => resolve(), 500)', 500],
    ['const LONG = 2_000\nawait pause(LONG)', 2_000],
  ]
  for (const [text, length] of written) t.same(sleepsIn(text), [length], text)
  for (const text of ['await pause(1_000, signal)', 'setTimeout(() => fail(), limit)']) t.same(sleepsIn(text), [], text)
})

t.test(`no test sleeps for more than ${MOST} ms, except the slow ones`, async (t) => {
  const all = sources.flatMap(([path, text]) => sleepsIn(text).map((length) => ({ path, length })))
  t.ok(all.length > 10, 'there are short ones')
  // The text of another test, above.
  const long = all.filter(({ path, length }) => path !== 'tests.test.ts' && !(length <= MOST))
  t.same(long, [])
})

t.test('the runner finds all tests, those of a folder, and those of a kind', async (t) => {
  const names = list().stdout.split('\n')
  for (const name of ['rpc/splice.test', 'wire/same-era-http.test', 'matrix.test']) t.ok(names.includes(name), name)
  t.notOk(names.includes('load/isolation.soak'))
  t.ok(list('--kind', 'slow,soak').stdout.split('\n').includes('load/isolation.soak'))
  const some = list('test/rpc', 'wire/same-era-http.test.ts', 'fault/fault').stdout.trim().split('\n')
  t.ok(some.length > 10)
  t.same(
    some.filter((name) => !/^rpc\/|^wire\/same-era-http\.test$|^fault\/fault\.test$/.test(name)),
    [],
  )
})

t.test('the files that begin first, because they mostly wait, are tests', async (t) => {
  const names = list().stdout.split('\n')
  t.ok((WAITING as string[]).length > 10)
  t.same(
    (WAITING as string[]).filter((name) => !names.includes(name)),
    [],
  )
})

t.test('the runner refuses names that match no test', async (t) => {
  const { status, stdout } = list('rpc', 'no/such')
  t.equal(status, 2)
  t.match(stdout, 'test/no/such')
})

t.test('files share processes, and each failure has the name of its file', async (t) => {
  const { status, stdout } = spawnSync(execPath, [runner, '--kind', 'example', '--jobs', '1', '--times'], {
    encoding: 'utf8',
  })
  t.equal(status, 1)
  const failed = [...stdout.matchAll(/^ {2}npm run test:only -- runner\/(.+)\.example\.ts$/gm)].map(([, name]) => name)
  t.same(failed.sort(), ['empty', 'exits', 'fails', 'late', 'rejects', 'throws'])
  const told = [
    'a sum that is wrong',
    'thrown by the file itself',
    'test unfinished',
    'heard by nobody',
    'rejected for nobody',
  ]
  for (const what of told) t.match(stdout, what)
  t.match(stdout, 'test/runner/fails.example.ts:5', 'a place is that of the source')
  t.match(stdout, /^4 files passed, 6 failed, \d+ assertions/m)
  t.match(stdout, /^ +\d+\.\d +\d+\.\d {2}runner\/passes\.example$/m, 'with its seconds and CPU time')
})

t.test('a file whose process has gone has failed, and the runner goes on', async (t) => {
  const path = join(temporaryFolder(t), 'worker.mjs')
  writeFileSync(path, 'process.send({ name: null }, () => process.exit(3))')
  const script = `
    import { Worker } from ${JSON.stringify(pathToFileURL(join(root, '.ci/tests-process.mjs')).href)}
    const worker = new Worker(${JSON.stringify(path)}, process.env)
    const first = await worker.run('first', 'first.mjs')
    const second = await worker.run('second', 'second.mjs')
    console.log(JSON.stringify([first.passed, second.passed, await worker.end()]))`
  const { stdout, stderr } = spawnSync(execPath, ['--input-type=module', '--eval', script], { encoding: 'utf8' })
  t.equal(stdout.trim(), '[false,false,null]', stderr)
})

t.test(
  'with --again, a file that fails once and passes alone is reported, and one that fails twice has failed',
  async (t) => {
    const env = { ...process.env, MCP_BRIDGE_TEST_RAN: join(temporaryFolder(t), 'ran') }
    const args = ['--kind', 'twice', '--jobs', '1', '--again']
    const { status, stdout } = spawnSync(execPath, [runner, ...args], { encoding: 'utf8', env })
    t.equal(status, 1)
    t.match(stdout, 'unsteady: runner/unsteady.twice failed once, and passed alone')
    t.match(stdout, /^1 files passed, 1 failed/m)
    t.match(stdout, /^ {2}npm run test:only -- runner\/always\.twice\.ts$/m)
  },
)

t.test(
  'a free port is not one that the system gives to who asks for any',
  { skip: platform !== 'linux' },
  async (t) => {
    const range = readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'latin1').trim().split(/\s+/).map(Number)
    const [first = 0, last = 0] = range
    const ports = await Promise.all(Array.from({ length: 20 }, freePort))
    t.same(
      ports.filter((port) => port >= first && port <= last),
      [],
    )
    t.equal(new Set(ports).size, ports.length, 'nor one that has been given before')
  },
)
