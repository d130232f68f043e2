/** The file that shows that a bridge serves, and the health check of the image that reads it. */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { uptime } from 'node:os'
import { join } from 'node:path'
import { env, platform } from 'node:process'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { says, startProgram } from '../support/cli.js'
import { until } from '../support/eventually.js'
import { temporaryFolder } from '../support/folder.js'
import { legacyStdio } from '../support/legacy-stdio.js'

const script = fileURLToPath(new URL('../../config/healthcheck.sh', import.meta.url))
const skip = platform === 'linux' ? false : 'the image is of Linux'

/** What the health check says of a file. */
function check(file: string): { code: number | null; said: string } {
  const { status, stdout, stderr } = spawnSync('sh', [script], {
    env: { PATH: env['PATH'], MCP_BRIDGE_HEALTH_FILE: file },
    encoding: 'utf8',
  })
  return { code: status, said: `${stdout}${stderr}` }
}

/** Starts a bridge that writes to `file`. */
function start(t: Test, file: string, ...args: string[]) {
  const { server } = legacyStdio(t)
  const command = [server.command, ...server.args]
  return startProgram(t, ['--log-format', 'json', ...args, '--', ...command], { MCP_BRIDGE_HEALTH_FILE: file })
}

const listening = ['--listen', 'http://127.0.0.1:0/mcp']

t.test('the health check succeeds while a bridge serves, and no longer', { skip }, async (t) => {
  for (const args of [listening, [...listening, '--admin', 'http://127.0.0.1:0'], ['--listen', 'stdio']]) {
    const file = join(temporaryFolder(t), 'health')
    t.match(check(file), { code: 1, said: `no bridge serves here: ${file} is missing\n` })
    const program = start(t, file, ...args)
    await until(() => check(file).code === 0, 'a success')
    t.match(check(file).said, /^serving, seen \d+ s ago\n$/)
    program.child.kill('SIGTERM')
    t.equal(await program.ended, 0)
    t.notOk(existsSync(file), args.join(' '))
  }
})

t.test('a bridge writes again and again, also after somebody has deleted the file', { skip }, async (t) => {
  const file = join(temporaryFolder(t), 'health')
  start(t, file, ...listening)
  await until(() => existsSync(file))
  const first = readFileSync(file, 'utf8')
  await until(() => readFileSync(file, 'utf8') !== first, 'another time')
  t.equal(readFileSync(file, 'utf8').length, first.length, 'no reader sees a half')
  rmSync(file)
  await until(() => check(file).code === 0, 'the file again')
})

t.test('the health check does not depend on the configuration file', { skip }, async (t) => {
  const folder = temporaryFolder(t)
  const [file, config] = [join(folder, 'health'), join(folder, 'mcp.json')]
  const { server } = legacyStdio(t)
  const settings = { mcpServers: { a: server }, listen: 'http://127.0.0.1:0/mcp', log: { format: 'json' } }
  writeFileSync(config, `// a comment\n${JSON.stringify(settings).slice(0, -1)},}`)
  const program = startProgram(t, ['--config', config], { MCP_BRIDGE_HEALTH_FILE: file })
  await until(() => check(file).code === 0, 'a success')
  writeFileSync(config, JSON.stringify({ ...settings, admin: 'http://127.0.0.1:1' }))
  await says(program, /"event":"restart_required"/)
  t.equal(check(file).code, 0, 'another address needs a restart')
  writeFileSync(config, '{')
  await says(program, /"event":"config_invalid"/)
  t.equal(check(file).code, 0, 'the bridge keeps the previous configuration')
})

t.test('the health check fails for a bridge that hangs', { skip }, async (t) => {
  const file = join(temporaryFolder(t), 'health')
  const ago = (seconds: number) => writeFileSync(file, `${Math.floor(uptime()) - seconds}\n`.padStart(20))
  ago(5)
  t.equal(check(file).code, 0, 'a moment ago')
  ago(1_000)
  t.match(check(file), { code: 1, said: /^the bridge hangs: it last wrote to .* 1\d\d\d s ago\n$/ })
  for (const text of ['', 'x\n', '1; exit 0\n', '$(id)\n']) {
    writeFileSync(file, text)
    t.match(check(file), { code: 1 }, JSON.stringify(text))
  }
})

t.test('a bridge that cannot write the file says so once, and serves', { skip }, async (t) => {
  const folder = temporaryFolder(t)
  const other = join(folder, 'other')
  writeFileSync(other, 'of somebody else')
  mkdirSync(join(folder, 'folder'))
  symlinkSync(other, join(folder, 'link'))
  for (const name of ['folder', 'link', 'missing/health']) {
    const program = start(t, join(folder, name), ...listening)
    await says(program, /"event":"server_ready"/)
    t.equal(program.stderr().match(/"event":"health_file_failed"/g)?.length, 1, name)
    program.child.kill('SIGTERM')
    t.equal(await program.ended, 0)
  }
  t.equal(readFileSync(other, 'utf8'), 'of somebody else')
})

t.test(
  'signals that a container may get do not end a bridge that is starting, or open its debugger',
  { skip },
  async (t) => {
    // Looking for servers takes as long as this one does not answer.
    let asked = false
    const silent = createServer(() => {
      asked = true
    })
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
    t.teardown(() => silent.close())
    t.teardown(() => silent.closeAllConnections())
    const { port } = silent.address() as AddressInfo
    const args = ['--discover', `http://127.0.0.1:${port}`, '--discover-loopback', '--log-format', 'json', ...listening]
    const program = startProgram(t, args)
    await says(program, /"event":"search_started"/)
    for (const signal of ['SIGHUP', 'SIGUSR1'] as const) program.child.kill(signal)
    await until(() => asked, 'the search')
    program.child.kill('SIGTERM')
    await program.ended
    t.equal(program.child.signalCode, null)
    t.notMatch(program.stderr(), /Debugger listening/)
  },
)
