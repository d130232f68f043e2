/** The package for Debian, in a Debian without Node.js: installed, started, upgraded, removed and purged. */
import { execFile, execFileSync, spawn } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { arch, env, execPath, getuid, platform } from 'node:process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { says, watchProgram } from './support/cli.js'
import { executable } from './support/executable.js'
import { temporaryFolder } from './support/folder.js'
import { call } from './support/modern.js'
import { unit } from './support/systemd-units.js'
import { lacks } from './support/tools.js'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../', import.meta.url))
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
/** A Debian, kept for the next time. */
const BASE = join(env['MCP_BRIDGE_CONTAINERS'] ?? join(tmpdir(), 'mcp-bridge-containers'), 'minbase')
const CONFIG = '/etc/mcp-bridge/mcp.json'

const skip =
  platform !== 'linux' || getuid?.() !== 0
    ? 'it wants root on Linux'
    : lacks('dpkg-deb', ['--version']) || lacks('lintian', ['--version']) || lacks('debootstrap', ['--version'])

t.setTimeout(600_000)

/** The path of the package. */
const deb = skip ? '' : build()

function build(): string {
  executable()
  return join(root, execFileSync(execPath, ['.ci/deb.mjs'], { cwd: root, encoding: 'utf8' }).trim())
}

/** The same package with another version. */
async function repacked(t: Test, deb: string, other: string): Promise<string> {
  const folder = join(temporaryFolder(t), 'package')
  await run('dpkg-deb', ['--raw-extract', deb, folder])
  const control = join(folder, 'DEBIAN/control')
  writeFileSync(control, readFileSync(control, 'utf8').replace(/^Version: .*$/m, `Version: ${other}`))
  const file = join(dirname(folder), 'other.deb')
  await run('dpkg-deb', ['-Znone', '--build', folder, file])
  return file
}

/** A Debian of its own for a test: runs programs there, as root or as an account. */
async function debian(t: Test) {
  if (!existsSync(BASE)) {
    const making = `${BASE}-${process.pid}`
    mkdirSync(making, { recursive: true })
    await run('debootstrap', ['--variant=minbase', 'bookworm', making, 'http://deb.debian.org/debian'])
    renameSync(making, BASE)
  }
  const folder = temporaryFolder(t)
  await run('cp', ['--archive', '--no-target-directory', BASE, folder])
  const inside = 'mount -t proc proc "$0/proc" && mount --bind /dev "$0/dev" && exec chroot "$@"'
  const words = (args: readonly string[], account = 'root') => [
    ...['--mount', 'bash', '-c', inside, folder],
    ...[`--userspec=${account}:${account}`, folder, ...args],
  ]
  const clean = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C' }
  return {
    at: (path: string) => join(folder, path),
    sh: async (line: string) => (await run('unshare', words(['/bin/sh', '-c', line]), { env: clean })).stdout,
    start: (args: readonly string[], account: string) =>
      watchProgram(t, spawn('unshare', words(args, account), { env: clean })),
  }
}

t.test('the package is of the version of package.json, and lintian finds no error in it', { skip }, async (t) => {
  t.match(deb, `mcp-bridge_${version.replace('-', '~')}-1_${arch === 'x64' ? 'amd64' : arch}.deb`)
  const { stdout } = await run('lintian', ['--fail-on', 'error', deb])
  t.notMatch(stdout, /^E:/m)
  t.ok(statSync(deb).size < 60_000_000, `${statSync(deb).size} bytes`)
})

t.test('it is installed, started, upgraded, removed and purged', { skip }, async (t) => {
  const { at, sh, start } = await debian(t)
  const install = async (file: string) => {
    cpSync(file, at('/tmp/it.deb'))
    await sh('dpkg --install /tmp/it.deb')
  }
  await t.rejects(sh('command -v node'), 'there is no Node.js')
  await install(deb)
  t.equal(await sh('mcp-bridge --version'), `${version}\n`)
  t.match(await sh('id mcp-bridge'), /uid=\d+\(mcp-bridge\) gid=\d+\(mcp-bridge\)/, 'the account')
  t.equal(await sh(`stat --format '%a %U %G' ${CONFIG}`), '640 root mcp-bridge\n')
  for (const path of ['bash-completion/completions/mcp-bridge', 'zsh/vendor-completions/_mcp-bridge'])
    t.match(readFileSync(at(`/usr/share/${path}`), 'utf8'), '--listen', path)
  t.ok(existsSync(at('/usr/share/man/man1/mcp-bridge.1.gz')), 'the manual')
  t.equal(await sh('dpkg --verify mcp-bridge'), '', 'all files are as they were packed')
  const installed = readFileSync(at('/lib/systemd/system/mcp-bridge.service'), 'utf8')
  t.same(installed, unit.replace(/^LoadCredential=.*\n/gm, ''), 'the unit is that of the documentation')
  for (const [, program = ''] of installed.matchAll(/^Exec\w+=(\S+)/gm))
    t.ok(existsSync(at(program)), `${program} of the unit is in a Debian with nothing but what each has`)
  await t.rejects(sh(`mcp-bridge check --config ${CONFIG}`), /mcpServers/, 'it has no servers yet')

  const demo = { command: '/usr/bin/mcp-bridge', args: ['demo', 'server'] }
  const config = JSON.stringify({ mcpServers: { demo }, listen: 'http://127.0.0.1:0/mcp', log: { format: 'json' } })
  writeFileSync(at(CONFIG), config)
  const [, ...words] = /^ExecStart=(.*)$/m.exec(installed)?.[1]?.split(' ') ?? []
  const bridge = start(['/usr/bin/mcp-bridge', ...words], 'mcp-bridge')
  const [url] = await says(bridge, /http:\/\/127\.0\.0\.1:\d+\/mcp/)
  const answer = await call(url, 'tools/call', { name: 'weather', arguments: { city: 'Oslo' } })
  t.match(answer.message, { result: { content: [{ text: /^Oslo/ }] } }, 'the account can start it by hand')
  bridge.child.kill()
  await bridge.ended

  await install(await repacked(t, deb, `${version}-2`))
  t.match(await sh('dpkg-query --show mcp-bridge'), `${version}-2`)
  t.equal(readFileSync(at(CONFIG), 'utf8'), config, 'an upgrade keeps the configuration')
  t.equal(await sh(`stat --format '%a %U %G' ${CONFIG}`), '640 root mcp-bridge\n')

  mkdirSync(at('/var/lib/mcp-bridge'))
  await sh('dpkg --remove mcp-bridge')
  t.notOk(existsSync(at('/usr/bin/mcp-bridge')))
  t.equal(readFileSync(at(CONFIG), 'utf8'), config)
  t.ok(existsSync(at('/var/lib/mcp-bridge')), 'and so does its removal, with the state')
  await sh('dpkg --purge mcp-bridge')
  for (const path of ['/etc/mcp-bridge', '/var/lib/mcp-bridge', '/lib/systemd/system/mcp-bridge.service'])
    t.notOk(existsSync(at(path)), path)
  await t.rejects(sh('id mcp-bridge'), 'the account is gone')
  rmSync(at('/tmp/it.deb'))
})
