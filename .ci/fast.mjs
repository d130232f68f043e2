/**
 * The tests for the inner loop: `npm run test:fast`. It runs those of the folders below, several at once, and prints what fails.
 * `node .ci/fast.mjs --list` prints their names.
 *
 * `npm test` starts each file from its sources, and that takes longer than most of these tests. Here esbuild makes one bundle of
 * all of them first.
 */
import { spawn } from 'node:child_process'
import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { basename, join } from 'node:path'
import { argv, chdir, execPath, exit, stdout } from 'node:process'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { build } from 'esbuild'

const FOLDERS = ['rpc', 'protocol', 'policy', 'upstream', 'downstream', 'downstream/http', 'wire']

/** Files of these folders that are left out, because they take longest: most wait for a time limit or start many programs. */
const SLOW = [
  'upstream/starts',
  'wire/bad-input',
  'wire/bytes',
  'wire/cache',
  'wire/client-questions',
  'wire/clock',
  'wire/detect',
  'wire/detect-modern',
  'wire/ended-subscriptions',
  'wire/idle',
  'wire/legacy-batches',
  'wire/legacy-changes',
  'wire/legacy-pipe',
  'wire/legacy-streams',
  'wire/listen',
  'wire/pipe',
  'wire/questions-addresses',
  'wire/questions-isolation',
  'wire/questions-meanwhile',
  'wire/questions-refused',
  'wire/questions-rounds',
  'wire/rate-limits',
  'wire/reopened-session',
  'wire/roots',
  'wire/session',
  'wire/streams',
  'wire/tasks-legacy-server',
  'wire/tasks-modern-server',
  'wire/tolerance-legacy-client',
  'wire/turned',
]

/** Seconds that one file may take. */
const PATIENCE = 300
const OUT = '.tap/fast'

chdir(fileURLToPath(new URL('..', import.meta.url)))
const all = FOLDERS.flatMap((folder) =>
  readdirSync(join('test', folder))
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => `${folder}/${name.slice(0, -'.test.ts'.length)}`),
)
const missing = SLOW.filter((name) => !all.includes(name))
if (missing.length > 0) {
  stdout.write(`These tests are left out and do not exist: ${missing.join(', ')}\n`)
  exit(1)
}
const names = all.filter((name) => !SLOW.includes(name))

if (argv.includes('--list')) {
  stdout.write(`${names.join('\n')}\n`)
  exit(0)
}

const began = performance.now()
await bundle()
const waiting = [...names]
const failed = []
await Promise.all(Array.from({ length: availableParallelism() + 1 }, work))
const seconds = Math.round((performance.now() - began) / 1_000)
stdout.write(`${names.length - failed.length} files passed, ${failed.length} failed, ${seconds} s\n`)
if (failed.length > 0) {
  stdout.write(`${failed.map((name) => `  npx tap test/${name}.test.ts\n`).join('')}`)
  exit(1)
}

async function bundle() {
  rmSync(OUT, { recursive: true, force: true })
  await build({
    entryPoints: names.map((name) => `test/${name}.test.ts`),
    outdir: OUT,
    outbase: 'test',
    outExtension: { '.js': '.mjs' },
    bundle: true,
    splitting: true,
    platform: 'node',
    format: 'esm',
    target: 'node20.19',
    sourcemap: true,
    keepNames: true,
    logLevel: 'warning',
    // It keeps its state in the process, and its loaders ask for it by name.
    external: ['tap', 'esbuild'],
    // As in build.mjs.
    alias: { 'jsonc-parser': 'jsonc-parser/lib/esm/main.js' },
    banner: { js: "import { createRequire } from 'node:module'\nconst require = createRequire(import.meta.url)" },
    plugins: [{ name: 'addresses', setup: keepAddresses }],
  })
}

/** Modules find fixtures beside themselves: in the bundle, too, their address is that of their source. */
function keepAddresses({ onLoad }) {
  onLoad({ filter: /[/\\](src|test)[/\\][^:]*\.(ts|mjs)$/ }, ({ path }) => ({
    contents: readFileSync(path, 'utf8').replaceAll('import.meta.url', JSON.stringify(pathToFileURL(path).href)),
    loader: path.endsWith('.ts') ? 'ts' : 'js',
  }))
}

/** Runs one test after the other, as long as there are any. */
async function work() {
  for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) {
    const output = await run(name)
    if (output === undefined) continue
    failed.push(name)
    stdout.write(`\n# ${basename(name)}\n${output}\n`)
  }
}

/** Gives what a test has written if it failed. */
function run(name) {
  const env = { ...process.env, TAP_TIMEOUT: String(PATIENCE) }
  const child = spawn(execPath, ['--enable-source-maps', join(OUT, `${name}.test.mjs`)], { env })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (chunk) => {
      output += chunk
    })
  return new Promise((resolve) => {
    child.once('close', (code) => resolve(code === 0 ? undefined : output))
  })
}
