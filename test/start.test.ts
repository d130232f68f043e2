/** What the published program needs to start. */
import { chownSync, copyFileSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import { env, execPath, geteuid, kill } from 'node:process'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { startProgram } from './support/cli.js'
import { until } from './support/eventually.js'
import { temporaryFile, temporaryFolder } from './support/folder.js'

const root = fileURLToPath(new URL('../', import.meta.url))
const server = join(root, 'test/fixtures/legacy-stdio.mjs')
const INITIALIZE = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
}

function isAlive(pid: number): boolean {
  try {
    return kill(pid, 0)
  } catch {
    return false
  }
}

/** While coverage is measured, dist/main.js starts the sources, which need all their files. */
const skip = env['NODE_V8_COVERAGE'] ? 'coverage is measured' : false

/** A copy of the published program with these files of dist only, in a folder where nothing else is. */
function copied(t: Test, ...names: string[]): string {
  const folder = temporaryFolder(t)
  for (const name of names) copyFileSync(join(root, 'dist', name), join(folder, name))
  // Without a package.json, this name says that it is an ES module.
  renameSync(join(folder, 'main.js'), join(folder, 'main.mjs'))
  return join(folder, 'main.mjs')
}

t.test('the program knows its version where no package.json is', { skip }, async (t) => {
  const { ended, stdout, stderr } = startProgram(t, ['--version'], {}, [execPath, copied(t, 'main.js', 'bridge.cjs')])
  t.equal(await ended, 0, stderr())
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
  t.equal(stdout(), `${version}\n`)
})

t.test('a bridge between pipes reads none of the files with large packages', { skip }, async (t) => {
  const main = copied(t, 'main.js', 'bridge.cjs')
  const args = ['--listen', 'stdio', '--', execPath, server, '{}']
  const { child, stdout, stderr } = startProgram(t, args, {}, [execPath, main])
  child.stdin.write(`${JSON.stringify(INITIALIZE)}\n`)
  await until(() => stdout().includes('"serverInfo"') || child.exitCode !== null, 'an answer')
  t.match(stdout(), '"serverInfo"', stderr())
})

t.test(
  'a bridge that serves HTTP in front of a program reads the files of Fastify and of metrics, and no other',
  { skip },
  async (t) => {
    const main = copied(t, 'main.js', 'bridge.cjs', 'http.cjs', 'metrics.cjs')
    const args = ['--log-format', 'json', '--listen', 'http://127.0.0.1:0/mcp', '--', execPath, server, '{}']
    const { child, stderr } = startProgram(t, args, {}, [execPath, main])
    await until(() => stderr().includes('"server_ready"') || child.exitCode !== null, 'a line')
    t.match(stderr(), /"listening".*\n.*"server_ready"/, 'it reports the server after its own address')
  },
)

/** Tells on stderr which modules of Node.js were loaded: for NODE_OPTIONS. */
const TELLS_MODULES = `process.on('exit', () => process.stderr.write(\`loaded \${process.moduleLoadList.join(' ')}\\n\`))`

t.test('a bridge without TLS loads no TLS and no HTTP/2', { skip }, async (t) => {
  const env = { NODE_OPTIONS: `--require=${temporaryFile(t, 'modules.cjs', TELLS_MODULES)}` }
  const args = ['--log-format', 'json', '--listen', 'http://127.0.0.1:0/mcp', '--', execPath, server, '{}']
  const { child, ended, stderr } = startProgram(t, args, env)
  await until(() => stderr().includes('"server_ready"') || child.exitCode !== null, 'a line')
  child.kill()
  t.equal(await ended, 0)
  const [, loaded = ''] = /^loaded (.*)$/m.exec(stderr()) ?? []
  t.match(loaded, 'NativeModule http ')
  for (const name of ['http2', 'https', 'tls', 'zlib', 'readline']) t.notMatch(loaded, `NativeModule ${name} `)
})

/** Tells on stderr which programs of servers start: for NODE_OPTIONS. */
const TELLS_STARTS = `const childProcess = require('node:child_process')
const { spawn } = childProcess
childProcess.spawn = (command, ...more) => {
  const child = spawn(command, ...more)
  if (command === process.execPath) process.stderr.write(\`started \${child.pid}\\n\`)
  return child
}`

t.test('a program starts once, before the rest of the bridge is loaded, and ends with it', { skip }, async (t) => {
  const env = { NODE_OPTIONS: `--require=${temporaryFile(t, 'starts.cjs', TELLS_STARTS)}` }
  const args = ['--log-format', 'json', '--listen', 'http://127.0.0.1:0/mcp', '--', execPath, server, '{}']
  const whole = startProgram(t, args, env, [execPath, copied(t, 'main.js', 'bridge.cjs', 'http.cjs', 'metrics.cjs')])
  await until(() => whole.stderr().includes('"server_ready"') || whole.child.exitCode !== null, 'a line')
  t.equal(whole.stderr().match(/^started/gm)?.length, 1, whole.stderr())
  const part = startProgram(t, args, env, [execPath, copied(t, 'main.js', 'bridge.cjs')])
  t.not(await part.ended, 0)
  t.match(part.stderr(), /^started \d+\n.*metrics\.cjs/s, 'it had started when a file was missing')
  const pid = Number(/started (\d+)/.exec(part.stderr())?.[1])
  await until(() => !isAlive(pid), 'its end')
})

t.test('only a bridge with --inspect reads the page of the inspector', { skip }, async (t) => {
  for (const [flags, ready] of [
    [[], true],
    [['--inspect'], false],
  ] as const) {
    const main = copied(t, 'main.js', 'bridge.cjs', 'http.cjs', 'metrics.cjs', 'zod.cjs')
    const listen = ['--log-format', 'json', '--listen', 'http://127.0.0.1:0/mcp', ...flags]
    const { child, stderr } = startProgram(t, [...listen, '--', execPath, server, '{}'], {}, [execPath, main])
    await until(() => stderr().includes('"server_ready"') || child.exitCode !== null, 'a line, or the end')
    t.equal(stderr().includes('"server_ready"'), ready, flags.join())
    if (!ready) t.match(stderr(), 'page.cjs', 'it misses the page')
  }
})

t.test('searches tools with the program’s own file and that of schemas', { skip }, async (t) => {
  const call = (id: number, name: string, args: object) => ({
    jsonrpc: '2.0',
    id,
    method: 'tools/call',
    params: { name, arguments: args },
  })
  const search = [
    call(2, 'search_tools', { query: 'echo' }),
    call(3, 'call_tool', { name: 'one__echo', arguments: {} }),
  ]
  const one = { command: execPath, args: [server, '{}'] }
  const file = temporaryFile(t, 'mcp.json', { mcpServers: { one, two: one }, groups: { team: { search: true } } })
  const main = copied(t, 'main.js', 'bridge.cjs', 'zod.cjs')
  const args = ['--log-format', 'json', '--listen', 'stdio', '--config', file]
  const { child, stdout, stderr } = startProgram(t, args, {}, [execPath, main])
  for (const message of [INITIALIZE, ...search]) child.stdin.write(`${JSON.stringify(message)}\n`)
  await until(() => ['"id":2', '"id":3'].every((id) => stdout().includes(id)) || child.exitCode !== null, 'answers')
  t.match(stdout(), '"id":3,"result"', stderr())
  t.match(stdout(), /"id":2,"result":.*one__echo/)
})

/** Tells on stderr which files take code that was compiled before: for NODE_OPTIONS. */
const TELLS = `const vm = require('node:vm')
vm.Script = class extends vm.Script {
  constructor(text, options) {
    super(text, options)
    process.stderr.write(\`\${require('node:path').basename(options.filename)}: \${options.cachedData !== undefined && !this.cachedDataRejected}\\n\`)
  }
}`

/** Runs the program in front of a server until it has answered, with this cache. Gives what it says of its files. */
async function served(t: Test, cache: string): Promise<string> {
  const env = { XDG_CACHE_HOME: cache, NODE_OPTIONS: `--require=${temporaryFile(t, 'tells.cjs', TELLS)}` }
  const args = ['--log-level', 'silent', '--listen', 'stdio', '--', execPath, server, '{}']
  const { child, ended, stdout, stderr } = startProgram(t, args, env)
  child.stdin.write(`${JSON.stringify(INITIALIZE)}\n`)
  await until(() => stdout().includes('"serverInfo"') || child.exitCode !== null, 'an answer')
  child.stdin.end()
  t.equal(await ended, 0, stderr())
  return stderr()
}

t.test('keeps compiled code in the cache folder of the user, and the next start takes it', { skip }, async (t) => {
  const cache = temporaryFolder(t)
  t.equal(await served(t, cache), 'bridge.cjs: false\n')
  const [file, ...others] = readdirSync(join(cache, 'mcp-bridge/compiled'))
  t.match(file, /^bridge\.cjs-/)
  t.same(others, [])
  t.equal(await served(t, cache), 'bridge.cjs: true\n')
})

t.test('takes no code that another user has written, or of another build', { skip }, async (t) => {
  const cache = temporaryFolder(t)
  await served(t, cache)
  const folder = join(cache, 'mcp-bridge/compiled')
  const [file] = readdirSync(folder)
  renameSync(join(folder, String(file)), join(folder, String(file).replace(/-\w+/, '-0123456789abcdef')))
  t.equal(await served(t, cache), 'bridge.cjs: false\n')
  if (geteuid?.() !== 0) return
  chownSync(join(folder, String(file)), 65_534, 65_534)
  t.equal(await served(t, cache), 'bridge.cjs: false\n')
})

t.test('code that was written long ago goes when new code is kept', { skip }, async (t) => {
  const cache = temporaryFolder(t)
  await served(t, cache)
  const folder = join(cache, 'mcp-bridge/compiled')
  const [file] = readdirSync(folder)
  const old = join(folder, String(file).replace(/-\w+/, '-0123456789abcdef'))
  renameSync(join(folder, String(file)), old)
  await served(t, cache)
  t.ok(existsSync(old), 'another build may run, too')
  utimesSync(old, 0, 0)
  rmSync(join(folder, String(file)))
  await served(t, cache)
  t.same(readdirSync(folder), [file])
})

t.test('keeps no code where Node.js is told to keep none', { skip }, async (t) => {
  const cache = temporaryFolder(t)
  const { ended } = startProgram(t, ['--version'], { XDG_CACHE_HOME: cache, NODE_DISABLE_COMPILE_CACHE: '1' })
  t.equal(await ended, 0)
  t.same(readdirSync(cache), [])
})

t.test('starts although the cache folder cannot be written', async (t) => {
  const file = temporaryFile(t, 'file', '')
  const { ended, stdout } = startProgram(t, ['--version'], { XDG_CACHE_HOME: file })
  t.equal(await ended, 0)
  t.match(stdout(), /^\d/)
})

t.test('its files have no character beyond ASCII, which would make all of them slower to load', async (t) => {
  const files = readdirSync(join(root, 'dist')).filter((name) => name.endsWith('.cjs'))
  t.ok(files.includes('bridge.cjs'))
  for (const name of files) t.notMatch(readFileSync(join(root, 'dist', name), 'latin1'), /[^\0-\x7f]/, name)
})
