/** Runs alone: containers. The commands of docs/docker.md, as they are written there, from a folder like the checkout. */

import { spawn } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { env } from 'node:process'
import t, { type Test } from 'tap'
import { blocksOf } from '../support/blocks.js'
import { type Program, says, watchProgram } from '../support/cli.js'
import { docker, engine, newName, root, startContainer, startDocker, untilHealthy } from '../support/containers.js'
import { secret } from '../support/deployment.js'
import { until } from '../support/eventually.js'
import { temporaryFolder } from '../support/folder.js'
import { call } from '../support/modern.js'

const page = readFileSync(join(root, 'docs/docker.md'), 'utf8')
/** The blocks that run a container. The images are there already. */
const commands = blocksOf(page, 'sh')
  .filter((text) => text.includes('docker run'))
  .map((text) => text.replaceAll(/^docker build .*\n/gm, ''))
const URL_OF_ALL = 'http://127.0.0.1:8080/mcp'
const TOKEN = secret('TOKEN')

/** Runs a block of commands in a shell, until the test ends. */
function inShell(t: Test, block: string, cwd: string, more: Record<string, string> = {}): Program {
  const bin = temporaryFolder(t)
  symlinkSync(engine.startsWith('/') ? engine : '/usr/bin/docker', join(bin, 'docker'))
  const path = [bin, env['PATH']].join(delimiter)
  const child = spawn('bash', ['-c', block.replace(/^docker run/m, 'exec docker run')], {
    cwd,
    env: { ...env, PATH: path, DOCKER_BUILDKIT: '1', ...more },
  })
  return watchProgram(t, child)
}

const statusWith = async (token: string) =>
  (await call(URL_OF_ALL, 'tools/list', {}, { headers: { authorization: `Bearer ${token}` } })).status

t.test('a gateway with a configuration file and secrets in files', async (t) => {
  const folder = temporaryFolder(t)
  cpSync(join(root, 'config/examples'), join(folder, 'config/examples'), { recursive: true })
  mkdirSync(join(folder, 'secrets'))
  const names = ['orders-token', 'token-shop', 'token-support', 'state-key']
  for (const name of names) writeFileSync(join(folder, 'secrets', name), secret(name), { mode: 0o644 })
  const [, gateway = ''] = commands
  t.teardown(() => docker('rm', '--force', 'mcp-bridge').catch(() => {}))
  const program = inShell(t, gateway, folder)
  await says(program, /"event":"listening"/)
  await untilHealthy('mcp-bridge')
  t.equal((await call(URL_OF_ALL, 'tools/list')).status, 401)
  t.not(await statusWith(secret('token-shop')), 401)
  await docker('kill', '-s', 'HUP', 'mcp-bridge')
  await says(program, /"event":"config_changed"/)
  await docker('stop', 'mcp-bridge')
  t.equal(await program.ended, 0)
})

t.test('the gateway with minimal privileges makes its own token', async (t) => {
  const [gateway = ''] = commands
  t.teardown(() => docker('rm', '--force', 'mcp-bridge').catch(() => {}))
  const program = inShell(t, gateway.replace('\n', '\necho "token $TOKEN"\n'), root)
  await says(program, /"event":"listening"|listening on/)
  await untilHealthy('mcp-bridge')
  const [, token = ''] = /token ([0-9a-f]{64})/.exec(program.stdout()) ?? []
  t.equal((await call(URL_OF_ALL, 'tools/list')).status, 401)
  t.not(await statusWith(token), 401)
  await docker('stop', 'mcp-bridge')
  t.equal(await program.ended, 0)
})

t.test('a client starts the container on stdio', async (t) => {
  const { example } = (
    JSON.parse(blocksOf(page, 'json')[0] ?? '') as {
      mcpServers: Record<string, { args: string[]; env: Record<string, string> }>
    }
  ).mcpServers
  const name = newName(t)
  const [run = '', ...args] = example?.args ?? []
  const program = startDocker(t, [run, `--name=${name}`, ...args], example?.env)
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } }
  program.child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params })}\n`)
  // Nobody need be at the address of the example.
  await until(() => program.stdout().includes('\n'), 'an answer')
  t.match(JSON.parse(program.stdout().split('\n')[0] as string), { jsonrpc: '2.0', id: 1 })
  t.notMatch(await docker('inspect', '--format', '{{json .Args}}', name), 'your-token', 'others do not see the token')
  program.child.stdin.end()
  await program.ended
})

t.test('an image of your own has its server, which needs no network', { timeout: 600_000 }, async (t) => {
  const folder = temporaryFolder(t)
  writeFileSync(join(folder, 'Dockerfile'), blocksOf(page, 'dockerfile')[0] ?? '')
  const tag = newName(t, 'image', 'rm', '--force')
  // Only the network is that of this machine, in case the registry is.
  const built = inShell(t, `docker build --network host --tag ${tag} .`, folder)
  const code = await built.ended
  if (code !== 0 && /ENOTFOUND|EAI_AGAIN|ETIMEDOUT/.test(built.stderr()))
    return t.pass('no registry', { skip: 'there is no registry of npm' })
  t.equal(code, 0, built.stderr())
  const name = await startContainer(t, ['--network=none', `--env=TOKEN=${TOKEN}`], [], tag)
  await untilHealthy(name)
  const ask = `fetch('http://127.0.0.1:8080/mcp', { method: 'POST', body: '{"jsonrpc":"2.0","id":1,"method":"server/discover"}',
    headers: { 'content-type': 'application/json', authorization: 'Bearer ${TOKEN}' } }).then(async (a) => console.log(a.status, await a.text()))`
  t.match(await docker('exec', name, 'node', '-e', ask), /^200 .*tools/s)
})
