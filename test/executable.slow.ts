/** The executable: what it does without Node.js or npm on the PATH, and without any file of the package. */
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { execPath } from 'node:process'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { main, says, startProgram } from './support/cli.js'
import { until } from './support/eventually.js'
import { executable } from './support/executable.js'
import { temporaryFile, temporaryFolder } from './support/folder.js'
import { Guarded } from './support/guarded.js'
import { messages } from './support/inspected.js'
import { LegacyHttp } from './support/legacy-http.js'
import { legacyStdio } from './support/legacy-stdio.js'
import { call } from './support/modern.js'
import { Oidc } from './support/oidc.js'
import { startSdkV1 } from './support/sdk-v1.js'

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }
const willing = `${execPath} ${fileURLToPath(new URL('fixtures/willing-browser.mjs', import.meta.url))}`

t.setTimeout(120_000)
// Nothing of the package is near it.
const program = join(temporaryFolder(t), 'mcp-bridge')
copyFileSync(executable(), program)

const start = (t: Test, args: readonly string[], env: Record<string, string> = {}) =>
  startProgram(t, args, { PATH: dirname(program), ...env }, [program])

async function run(t: Test, args: readonly string[], env?: Record<string, string>) {
  const running = start(t, args, env)
  const code = await running.ended
  return { code, stdout: running.stdout(), stderr: running.stderr() }
}

t.test('tells its version and its help, and nothing on stderr', async (t) => {
  t.same(await run(t, ['--version']), { code: 0, stdout: `${version}\n`, stderr: '' })
  t.match(await run(t, ['help', 'serve']), { code: 0, stdout: '--listen', stderr: '' })
})

t.test('takes all code that was compiled before', async (t) => {
  const told = `const vm = require('node:vm')
    vm.Script = class extends vm.Script {
      constructor(text, options) {
        super(text, options)
        process.stderr.write(\`code of \${require('node:path').basename(options.filename)}: \${!this.cachedDataRejected && options.cachedData !== undefined}\\n\`)
      }
    }`
  const env = { NODE_OPTIONS: `--require=${temporaryFile(t, 'told.cjs', told)}` }
  const { server } = legacyStdio(t)
  const bridge = start(t, ['--listen', 'http://127.0.0.1:0/mcp', '--', server.command, ...server.args], env)
  await says(bridge, /127\.0\.0\.1:\d+\/mcp/)
  const said = [...bridge.stderr().matchAll(/^code of (\S+): (\S+)$/gm)].map(([, name, taken]) => `${name} ${taken}`)
  t.same(said.sort(), ['bridge.cjs true', 'http.cjs true', 'metrics.cjs true'])
})

t.test('serves a program over HTTP, and another server over HTTP', async (t) => {
  const { server } = legacyStdio(t)
  const remote = await LegacyHttp.start(t)
  for (const upstream of [
    ['--', server.command, ...server.args],
    ['--upstream', remote.url],
  ]) {
    const bridge = start(t, ['--listen', 'http://127.0.0.1:0/mcp', '--log-format', 'json', ...upstream])
    const [url] = await says(bridge, /http:\/\/127\.0\.0\.1:\d+\/mcp/)
    const answer = await call(url, 'tools/call', { name: 'echo', arguments: { a: 1 } })
    t.match(answer, { status: 200, message: { result: { resultType: 'complete' } } })
    bridge.child.kill()
    t.equal(await bridge.ended, 0, bridge.stderr())
  }
})

t.test('starts itself again as workers', async (t) => {
  const { server } = legacyStdio(t)
  const words = ['--workers', '2', '--listen', 'http://127.0.0.1:0/mcp', '--log-format', 'json']
  const bridge = start(t, [...words, '--', server.command, ...server.args])
  const [url] = await says(bridge, /http:\/\/127\.0\.0\.1:\d+\/mcp/)
  await says(bridge, /"worker":2,"event":"server_ready"/)
  for (let i = 0; i < 4; i++) t.match(await call(url, 'tools/list'), { status: 200 })
  bridge.child.kill()
  t.equal(await bridge.ended, 0, bridge.stderr())
})

t.test('is a server on stdio in front of one, for a client that starts programs', async (t) => {
  const { server } = legacyStdio(t)
  const { child, stdout } = start(t, ['--listen', 'stdio', '--', server.command, ...server.args])
  child.stdin.write(`${messages.call('echo', { a: 1 })}\n`)
  await until(() => stdout().includes('\n'), 'an answer')
  t.match(JSON.parse(stdout()), { result: { resultType: 'complete' } })
})

t.test('probes its own demo servers', async (t) => {
  for (const [name, speaks] of [
    ['server', 'legacy 2025-11-25'],
    ['modern-server', 'modern 2026-07-28'],
  ] as const) {
    const { code, stdout } = await run(t, ['probe', '--', program, 'demo', name])
    t.equal(code, 0)
    t.match(stdout, `speaks     ${speaks} over stdio`)
  }
})

t.test('the demo starts its servers; its inspector has its page, and checks values in threads', async (t) => {
  const demo = start(t, ['demo', '--no-browser', '--listen', 'http://127.0.0.1:0/mcp'])
  const [, address = ''] = await says(demo, /^Inspector: (http\S+)$/m)
  await says(demo, /Ctrl-C ends the demo/)
  t.match(demo.stderr(), /in a terminal: mcp-bridge tail/)
  const { hash, origin } = new URL(address)
  const authorization = `Bearer ${hash.slice(1)}`
  const calls = async () => (await fetch(`${origin}/inspect/calls`, { headers: { authorization } })).text()
  await until(async () => (await calls()).includes('legacy__weather'), 'a call of the client')

  const page = await (await fetch(`${origin}/inspect`)).text()
  const script = await (await fetch(`${origin}/inspect/page.js`)).text()
  t.match(page, '<title>')
  t.ok(script.length > 100_000, 'the script of the page')
  t.match(script, '·', 'in which no character is changed')

  const headers = { authorization, 'content-type': 'application/json' }
  const check = async (value: unknown) => {
    const body = JSON.stringify({ schema: { type: 'object', properties: { a: { type: 'number' } } }, value })
    return (await fetch(`${origin}/inspect/check`, { method: 'POST', headers, body })).json()
  }
  t.match(await check({ a: 1 }), { ok: true })
  t.match(await check({ a: 'x' }), { ok: false })
})

t.test('inspect shows a bridge that a client has started', async (t) => {
  const env = { XDG_STATE_HOME: temporaryFolder(t) }
  const { child } = start(t, ['--inspect', '--listen', 'stdio', '--', program, 'demo', 'server'], env)
  child.stdin.write(`${messages.call('weather', { city: 'Oslo' })}\n`)
  const inspect = start(t, ['inspect', '--no-browser'], env)
  const [, address = ''] = await says(inspect, /Inspector: (http\S+)/)
  const { hash, origin } = new URL(address)
  const headers = { authorization: `Bearer ${hash.slice(1)}` }
  const calls = async () => (await fetch(`${origin}/inspect/calls`, { headers })).text()
  await until(async () => (await calls()).includes('weather'), 'a call of the client')
})

t.test('wrap puts the executable itself into the file of a client, and unwrap takes it out', async (t) => {
  const home = temporaryFolder(t)
  const file = join(home, '.config', 'Claude', 'claude_desktop_config.json')
  mkdirSync(dirname(file), { recursive: true })
  const { server } = legacyStdio(t)
  const before = `${JSON.stringify({ mcpServers: { it: server } }, null, 2)}\n`
  writeFileSync(file, before)
  const env = { HOME: home, XDG_CONFIG_HOME: '' }
  t.match(await run(t, ['wrap', 'claude-desktop'], env), { code: 0 })
  const { mcpServers } = JSON.parse(readFileSync(file, 'utf8')) as { mcpServers: { it: typeof server } }
  t.equal(mcpServers.it.command, program)
  t.equal(mcpServers.it.args[0], '--listen')
  t.match(await run(t, ['wrap'], env), { stdout: /1 server, 1 behind/ })
  t.match(await run(t, ['unwrap', 'claude-desktop'], env), { code: 0 })
  t.equal(readFileSync(file, 'utf8'), before)
})

/** The files of a ZIP archive, with the checksums and sizes of their texts: each Node.js compresses in its own way. */
function filesIn(archive: Buffer) {
  const files: { name: string; checksum: number; size: number }[] = []
  for (let at = archive.indexOf('PK\x01\x02'); at !== -1; at = archive.indexOf('PK\x01\x02', at + 1)) {
    const name = archive.toString('utf8', at + 46, at + 46 + archive.readUInt16LE(at + 28))
    files.push({ name, checksum: archive.readUInt32LE(at + 16), size: archive.readUInt32LE(at + 24) })
  }
  return files
}

t.test('bundle writes the same extension as the package', async (t) => {
  const { url } = await LegacyHttp.start(t)
  const folder = temporaryFolder(t)
  const written = async (name: string, command: readonly [string, ...string[]]) => {
    const file = join(folder, name)
    const bundle = startProgram(t, ['bundle', url, '--output', file], {}, command)
    t.equal(await bundle.ended, 0, bundle.stderr())
    return filesIn(readFileSync(file))
  }
  const files = await written('executable.mcpb', [program])
  t.match(files.map(({ name }) => name).join(), /manifest\.json.*server\/bridge\.cjs.*server\/LICENSES\.txt/)
  t.same(files, await written('package.mcpb', [execPath, main]))
})

t.test('login signs in with an authorization server, and probe uses the token', async (t) => {
  const oidc = await Oidc.start(t)
  const legacy = await startSdkV1(t, (server) => {
    server.registerTool('greet', { description: 'Greets.' }, () => ({ content: [{ type: 'text', text: 'Hello' }] }))
  })
  const server = await Guarded.start(t, oidc, legacy)
  const store = ['--token-store', join(temporaryFolder(t), 'tokens')]
  const login = await run(t, ['login', server.url, ...store, '--browser', willing])
  t.match(login, { code: 0, stdout: /Signed in to/ }, login.stderr)
  t.match(await run(t, ['probe', server.url, ...store]), { code: 0, stdout: /greet +Greets/ })
})
