/**
 * Counts the files and functions of src that one warm `tools/call` passes, in each of five directions (DIRECTIONS).
 *
 * It builds src file by file, so that files and functions keep their names, and starts a bridge with its defaults for each
 * direction. V8 counts which functions run between two looks, with exactly one call in between. `--list` prints them; a
 * function of a class that only initializes fields has no name. `--json` prints the same for programs. Words choose
 * directions: those whose names contain them all.
 *
 * Of these functions, it also counts those that make a promise (async functions, and what is given to `new Promise`), and the
 * constructors: the objects of classes that are made for one call, where one of a class that extends another counts for both.
 * Object literals and closures are not counted.
 */
import { fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { Session } from 'node:inspector/promises'
import { join } from 'node:path'
import { chdir, execPath, pid } from 'node:process'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath, pathToFileURL } from 'node:url'

/** Under node_modules, because the packages are found from there. `main` reads package.json in the folder above. */
const out = process.env.CALL_PATH ?? fileURLToPath(new URL(`../node_modules/.cache/call-path-${pid}/`, import.meta.url))
const fixture = (name) => fileURLToPath(new URL(`../test/fixtures/${name}.mjs`, import.meta.url))
const PROGRAM = ['--', execPath, fixture('legacy-stdio'), '{}']
/** Each direction: how its client calls, and what is behind the bridge. A server over HTTP prints its address. */
const DIRECTIONS = {
  'modern HTTP to a program': { client: modernHttp, program: PROGRAM },
  'modern HTTP to legacy HTTP': { client: modernHttp, server: 'legacy-http' },
  'legacy HTTP to modern HTTP': { client: legacyHttp, server: 'modern-http' },
  'modern HTTP to modern HTTP': { client: modernHttp, server: 'modern-http' },
  'modern stdio to legacy stdio': { client: modernStdio, program: PROGRAM },
}
/** Calls that come first: what is done once for a session or an envelope has been done then. */
const WARM = 20
/** Calls that are measured, each by itself. What not every one of them passes is not counted. */
const CALLS = 8
/** Milliseconds in which whatever a call has left behind runs, such as its line in the log. */
const REST = 300

if (process.send) await count()
else await measureAll()

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
        functions: functions
          .filter(({ ranges }) => ranges[0].count > 0)
          .map(({ functionName: name, ranges }) => ({ name, at: ranges[0].startOffset })),
      }))
    process.send(ran.filter(({ functions }) => functions.length > 0))
  })
}

async function measureAll() {
  chdir(fileURLToPath(new URL('..', import.meta.url)))
  const words = process.argv.slice(2).filter((word) => !word.startsWith('--'))
  const chosen = Object.entries(DIRECTIONS).filter(([name]) => words.every((word) => name.includes(word)))
  try {
    await build()
    const measured = await Promise.all(chosen.map(async ([name, parts]) => ({ name, ran: await measure(parts) })))
    report(measured)
  } finally {
    rmSync(out, { recursive: true, force: true })
  }
}

async function measure({ client, program, server }) {
  const ends = []
  try {
    const target = program ?? ['--upstream', await started(server, ends)]
    const call = await client(target, ends)
    for (let i = 0; i < WARM; i++) await call()
    const { bridge } = call
    await taken(bridge)
    const measured = []
    for (let i = 0; i < CALLS; i++) {
      await call()
      measured.push(await taken(bridge))
    }
    return measured.reduce(inBoth).map(withSources)
  } finally {
    for (const end of ends.reverse()) end()
  }
}

/** What has run with both calls: a timer of the bridge may fire next to one of them. */
function inBoth(one, other) {
  const keys = new Set(other.flatMap(({ file, functions }) => functions.map(({ at }) => `${file}:${at}`)))
  return one
    .map(({ file, functions }) => ({ file, functions: functions.filter(({ at }) => keys.has(`${file}:${at}`)) }))
    .filter(({ functions }) => functions.length > 0)
}

/** The functions of a file, each with what it makes: a promise, or an object. */
function withSources({ file, functions }) {
  const source = readFileSync(join(out, 'src', file.replace(/\.ts$/, '.js')), 'utf8')
  const of = file.replace(/^.*\/|\.ts$/g, '')
  return { file, functions: functions.map(({ name, at }) => ({ name, of, makes: madeBy(source, at) })) }
}

function madeBy(source, at) {
  if (source.startsWith('constructor', at)) return 'object'
  const isPromise = source.startsWith('async', at) || source.slice(0, at).endsWith('new Promise(')
  return isPromise ? 'promise' : undefined
}

/** What has run in the bridge since it was asked last, by file. */
async function taken(bridge) {
  await sleep(REST)
  const answer = once(bridge, 'message')
  bridge.send('take')
  const [ran] = await answer
  return ran
}

function report(measured) {
  const isListed = process.argv.includes('--list')
  if (process.argv.includes('--json')) {
    console.log(
      JSON.stringify(
        measured.map(({ name, ran }) => ({
          name,
          files: ran.length,
          functions: functionsOf(ran).length,
          promises: makersOf(ran, 'promise').length,
          objects: makersOf(ran, 'object').length,
        })),
      ),
    )
    return
  }
  for (const { name, ran } of measured) {
    console.log(`${name}: ${ran.length} files, ${functionsOf(ran).length} functions`)
    console.log(`  promises: ${makersOf(ran, 'promise').join(', ')}`)
    console.log(`  objects: ${makersOf(ran, 'object').join(', ')}`)
    for (const { file, functions } of isListed ? ran : [])
      console.log(`  ${file} (${functions.length}): ${functions.map(({ name }) => name || '(anonymous)').join(', ')}`)
  }
}

function functionsOf(ran) {
  return ran.flatMap(({ functions }) => functions)
}

/** The names of the functions that make this. */
function makersOf(ran, what) {
  return functionsOf(ran)
    .filter(({ makes }) => makes === what)
    .map(({ name, of }) => (what === 'object' ? name : `${of} ${name || '(anonymous)'}`))
}

async function build() {
  const { build: esbuild } = await import('esbuild')
  mkdirSync(out, { recursive: true })
  copyFileSync('package.json', join(out, 'package.json'))
  const files = readdirSync('src', { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'))
  const entryPoints = files.map((file) => join('src', file))
  const target = 'node20.19'
  await esbuild({ entryPoints, outdir: join(out, 'src'), outbase: 'src', platform: 'node', format: 'esm', target })
}

/** Starts a server of the tests. Returns its address. */
async function started(server, ends) {
  const child = spawn(execPath, [fixture(server), '{}'], { stdio: ['ignore', 'pipe', 'ignore'] })
  ends.push(() => child.kill())
  const [line] = await once(createInterface(child.stdout), 'line')
  return line
}

function bridgeTo(target, options, stdio, ends) {
  const bridge = fork(join(out, 'src/main.js'), [...options, ...target], {
    execArgv: ['--import', import.meta.url],
    env: { ...process.env, CALL_PATH: out },
    stdio: [...stdio, 'pipe', 'ipc'],
  })
  ends.push(() => bridge.kill())
  return bridge
}

/** Starts a bridge that listens. Returns a function that posts to it, over one connection: to open it is not part of a warm call. */
async function listening(target, ends) {
  const options = ['--listen', 'http://127.0.0.1:0/mcp', '--log-format', 'json']
  const bridge = bridgeTo(target, options, ['ignore', 'ignore'], ends)
  const url = await addressOf(bridge)
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  ends.push(() => agent.destroy())
  const post = async (message, more) => {
    const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...more }
    const posted = request(url, { method: 'POST', agent, headers })
    posted.end(JSON.stringify(message))
    const [response] = await once(posted, 'response')
    let text = ''
    for await (const chunk of response.setEncoding('utf8')) text += chunk
    return { text, headers: response.headers }
  }
  return { bridge, post }
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

function modernCall() {
  const name = 'io.modelcontextprotocol/'
  const envelope = {
    [`${name}protocolVersion`]: '2026-07-28',
    [`${name}clientCapabilities`]: {},
    [`${name}clientInfo`]: { name: 'call-path', version: '1' },
  }
  return {
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name: 'echo', arguments: { a: 1 }, _meta: envelope },
  }
}

async function modernHttp(target, ends) {
  const { bridge, post } = await listening(target, ends)
  const headers = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'echo' }
  const call = async () => check((await post(modernCall(), headers)).text)
  return Object.assign(call, { bridge })
}

async function legacyHttp(target, ends) {
  const { bridge, post } = await listening(target, ends)
  const version = '2025-11-25'
  const clientInfo = { name: 'call-path', version: '1' }
  const params = { protocolVersion: version, capabilities: {}, clientInfo }
  const opened = await post({ jsonrpc: '2.0', id: 1, method: 'initialize', params })
  const headers = { 'mcp-session-id': opened.headers['mcp-session-id'], 'mcp-protocol-version': version }
  await post({ jsonrpc: '2.0', method: 'notifications/initialized' }, headers)
  const message = { jsonrpc: '2.0', id: 2, method: 'tools/call', params: { name: 'echo', arguments: { a: 1 } } }
  const call = async () => check((await post(message, headers)).text)
  return Object.assign(call, { bridge })
}

async function modernStdio(target, ends) {
  const bridge = bridgeTo(target, ['--listen', 'stdio', '--log-format', 'json'], ['pipe', 'pipe'], ends)
  bridge.stderr.resume()
  const lines = createInterface(bridge.stdout)
  const call = async () => {
    const answered = once(lines, 'line')
    bridge.stdin.write(`${JSON.stringify(modernCall())}\n`)
    const [line] = await answered
    check(line)
  }
  return Object.assign(call, { bridge })
}

/** Throws if the call failed: a refusal would pass fewer functions. The answer may be an event. */
function check(text) {
  const json = text.startsWith('{') ? text : /^data: ?(\{.*)$/m.exec(text)?.[1]
  if (!json || !JSON.parse(json).result || JSON.parse(json).result.isError) throw new Error(`The call failed: ${text}`)
}
