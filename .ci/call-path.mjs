/**
 * Counts the files and functions of src that one warm call passes: a modern `tools/call` over HTTP to a legacy program.
 *
 * It builds src file by file, so that files and functions keep their names, and starts the bridge with its defaults. V8 counts
 * which functions run between two looks, with exactly one call in between. `--list` prints them; a function
 * of a class that only initializes fields has no name.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { Session } from 'node:inspector/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath, pathToFileURL } from 'node:url'

/** Under node_modules, because the packages are found from there. `main` reads package.json in the folder above. */
const out = fileURLToPath(new URL('../node_modules/.cache/call-path/', import.meta.url))
/** Calls that come first: what is done once for a session or an envelope has been done then. */
const WARM = 20
/** Calls that are measured, each by itself. */
const CALLS = 3
/** Milliseconds in which whatever a call has left behind runs, such as its line in the log. */
const REST = 300
/** One connection for all calls: to open it is not part of a warm call. */
const agent = new Agent({ keepAlive: true, maxSockets: 1 })

if (process.send) await count()
else await measure()

/** In the bridge: tells the parent what has run since it asked last. */
async function count() {
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  process.on('message', async () => {
    const { result } = await session.post('Profiler.takePreciseCoverage')
    const root = pathToFileURL(join(out, 'src/')).href
    const ran = result
      .filter(({ url }) => url.startsWith(root))
      .map(({ url, functions }) => ({
        file: url.slice(root.length).replace(/\.js$/, '.ts'),
        functions: functions.filter(({ ranges }) => ranges[0].count > 0).map(({ functionName }) => functionName),
      }))
    process.send(ran.filter(({ functions }) => functions.length > 0))
  })
}

async function measure() {
  await build()
  const program = fileURLToPath(new URL('../test/fixtures/legacy-stdio.mjs', import.meta.url))
  const options = ['--listen', 'http://127.0.0.1:0/mcp', '--log-format', 'json', '--', process.execPath, program, '{}']
  const bridge = fork(join(out, 'src/main.js'), options, {
    execArgv: ['--import', import.meta.url],
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  try {
    const url = await addressOf(bridge)
    for (let i = 0; i < WARM; i++) await call(url)
    await taken(bridge)
    const measured = []
    for (let i = 0; i < CALLS; i++) {
      await call(url)
      measured.push(await taken(bridge))
    }
    // A timer of the bridge may fire next to a call. The smallest count is that of the call alone.
    report(measured.sort((a, b) => functionsOf(a) - functionsOf(b))[0])
  } finally {
    bridge.kill()
    agent.destroy()
  }
}

/** What has run in the bridge since it was asked last, by file. */
async function taken(bridge) {
  await sleep(REST)
  const answer = once(bridge, 'message')
  bridge.send('take')
  const [ran] = await answer
  return ran
}

function report(ran) {
  console.log(`${ran.length} files, ${functionsOf(ran)} functions`)
  if (!process.argv.includes('--list')) return
  for (const { file, functions } of ran)
    console.log(`${file} (${functions.length}): ${functions.map((name) => name || '(anonymous)').join(', ')}`)
}

function functionsOf(ran) {
  return ran.reduce((sum, { functions }) => sum + functions.length, 0)
}

async function build() {
  const { build: esbuild } = await import('esbuild')
  rmSync(out, { recursive: true, force: true })
  mkdirSync(out, { recursive: true })
  copyFileSync('package.json', join(out, 'package.json'))
  const files = readdirSync('src', { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'))
  const entryPoints = files.map((file) => join('src', file))
  const target = 'node20.19'
  await esbuild({ entryPoints, outdir: join(out, 'src'), outbase: 'src', platform: 'node', format: 'esm', target })
}

/** Where the bridge listens, by its log. Rejects where it does not start. */
async function addressOf(bridge) {
  let log = ''
  for await (const chunk of bridge.stderr.setEncoding('utf8')) {
    log += chunk
    const url = /"url":"([^"]+)"/.exec(log)?.[1]
    if (url === undefined) continue
    bridge.stderr.resume()
    return url
  }
  throw new Error(`The bridge did not start:\n${log}`)
}

async function call(url) {
  const name = 'io.modelcontextprotocol/'
  const envelope = {
    [`${name}protocolVersion`]: '2026-07-28',
    [`${name}clientCapabilities`]: {},
    [`${name}clientInfo`]: { name: 'call-path', version: '1' },
  }
  const params = { name: 'echo', arguments: { a: 1 }, _meta: envelope }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': 'tools/call',
    'mcp-name': 'echo',
  }
  const posted = request(url, { method: 'POST', agent, headers })
  posted.end(body)
  const [response] = await once(posted, 'response')
  let text = ''
  for await (const chunk of response.setEncoding('utf8')) text += chunk
  if (!JSON.parse(text).result) throw new Error(`The call failed: ${text}`)
}
