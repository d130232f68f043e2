/** `mcp-bridge status`: which bridges it finds, what it prints of them, and its exit code. */
import { readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { parseCommand } from '../../src/command/parse.js'
import { statusTargets } from '../../src/command/status-targets.js'
import { run, says, startProgram } from '../support/cli.js'
import { until } from '../support/eventually.js'
import { temporaryFile, temporaryFolder } from '../support/folder.js'
import { freePort } from '../support/free-port.js'
import { legacyStdio } from '../support/legacy-stdio.js'

const DOWN = { command: 'node', args: ['-e', `console.error('Port 3333 is already in use'); process.exit(1)`] }
const INITIALIZE = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
})
const OPENING = {
  method: 'POST',
  headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
  body: INITIALIZE,
}
const TOKEN = 'a-token-of-a-client-for-tests'

/** The state of the bridges at these arguments, as programs read it. */
async function statusOf(t: Test, args: readonly string[], env: Record<string, string> = {}) {
  const { code, stdout, stderr } = await run(t, ['status', '--json', ...args], env)
  return { code, stderr, ...(JSON.parse(stdout) as { bridges: Record<string, never>[] }) }
}

t.test('shows the servers of a bridge over HTTP, and why one is down', async (t) => {
  const port = await freePort()
  const file = temporaryFile(t, 'mcp.json', {
    mcpServers: { files: legacyStdio(t).server, taken: DOWN },
    listen: `http://127.0.0.1:${port}/mcp`,
  })
  const bridge = startProgram(t, ['--config', file, '--log-format', 'json'])
  await says(bridge, /"server_unavailable"/)
  await says(bridge, /"server_ready"/)
  const shown = await run(t, ['status', '--config', file])
  t.equal(shown.code, 1, 'a server is down')
  t.match(
    shown.stdout,
    new RegExp(`^http://127.0.0.1:${port}: ready, mcp-bridge \\S+, process ${bridge.child.pid}, since 2`),
  )
  t.match(shown.stdout, /^ {2}server +state +era +sessions +calls +programs +memory$/m)
  t.match(shown.stdout, /^ {2}files +ready +legacy .* 0 +0 +1 +(?:\d+ MiB|–)$/m)
  t.match(
    shown.stdout,
    /^ {2}taken +down +– +0 +0 +0 +–\n {4}.*Port 3333 is already in use\n {4}.*"process": "single"/m,
  )
  t.match(shown.stdout, /^ {2}group all +ready +– +0 +0 +– +–\n {4}without taken$/m)
  const { bridges, code } = await statusOf(t, [`http://127.0.0.1:${port}/mcp`])
  t.equal(code, 1)
  t.match(bridges, [
    {
      status: 'ready',
      pid: bridge.child.pid,
      since: /^\d{4}-.*Z$/,
      memory: Number,
      programs: 1,
      servers: {
        files: { state: 'ready', era: 'legacy', sessions: 0, programs: 1, lastError: undefined },
        taken: {
          state: 'down',
          why: /3333/,
          next: /single/,
          programs: 0,
          lastError: { at: /^\d{4}-.*Z$/, why: /3333/ },
        },
      },
    },
  ])
})

t.test('counts the sessions of legacy clients, and is well if all servers are', async (t) => {
  const admin = `http://127.0.0.1:${await freePort()}`
  const { command, args } = legacyStdio(t).server
  const bridge = startProgram(t, [
    '-l',
    'http://127.0.0.1:0',
    '--admin',
    admin,
    '--log-format',
    'json',
    '--',
    command,
    ...args,
  ])
  const [, url = ''] = await says(bridge, /"event":"listening","url":"(http:[^"]+)"/)
  const opened = await fetch(url, OPENING)
  await opened.text()
  const { code, bridges } = await statusOf(t, [admin])
  t.equal(code, 0)
  const [{ servers = {} } = {}] = bridges
  t.match(Object.values(servers), [{ state: 'ready', era: 'legacy', sessions: 1 }])
  const outside = await statusOf(t, [new URL(url).origin])
  t.equal(outside.code, 1)
  t.match(outside.bridges, [{ error: /404/, next: /"admin"/ }])
})

const skip = process.platform !== 'linux' && 'it reads the processes of Linux'

t.test('counts the memory of programs, and remembers why one has ended', { skip }, async (t) => {
  const admin = `http://127.0.0.1:${await freePort()}`
  const { command, args } = legacyStdio(t).server
  const options = ['-l', 'http://127.0.0.1:0', '--admin', admin, '--log-format', 'json']
  const bridge = startProgram(t, [...options, '--', command, ...args])
  await says(bridge, /"server_ready"/)
  const serverNow = async () => Object.values((await statusOf(t, [admin])).bridges[0]?.['servers'] ?? {})[0]
  const { memory } = (await serverNow()) as unknown as { memory: number }
  t.ok(memory > 20 * 1024 * 1024 && memory < 1024 * 1024 * 1024, `a program of Node.js has ${memory} bytes`)
  const [, url = ''] = await says(bridge, /"event":"listening","url":"(http:[^"]+)"/)
  await (await fetch(url, OPENING)).text()
  const of = `/proc/${bridge.child.pid}/task/${bridge.child.pid}/children`
  const children = readFileSync(of, 'utf8').split(' ').filter(Boolean)
  const program = children.find((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(args[0] as string))
  process.kill(Number(program), 'SIGKILL')
  await says(bridge, /"event":"server_gone"/)
  t.match(await serverNow(), { state: 'ready', lastError: { why: /SIGKILL/ } })
  t.match((await run(t, ['status', admin])).stdout, /^ {4}last error \d+ s ago: .*SIGKILL/m)
})

t.test('a bridge that requires a token is asked with that of its configuration', async (t) => {
  const port = await freePort()
  const file = temporaryFile(t, 'mcp.json', {
    mcpServers: {
      files: legacyStdio(t).server,
      other: { url: 'https://x.example/mcp', headers: { a: '${NOT_SET_HERE}' }, enabled: false },
    },
    listen: `http://127.0.0.1:${port}/mcp`,
    auth: { tokens: { bob: '${BOBS_TOKEN}' } },
  })
  const env = { BOBS_TOKEN: TOKEN }
  await says(startProgram(t, ['--config', file, '--log-format', 'json'], env), /"server_ready"/)
  const known = await statusOf(t, ['--config', file], env)
  t.equal(known.code, 0)
  t.match(known.bridges, [{ servers: { files: { state: 'ready' } } }])
  const named = await statusOf(t, [`http://127.0.0.1:${port}`, '--token', '${BOBS_TOKEN}'], env)
  t.match(named.bridges, [{ servers: { files: { state: 'ready' } } }])
  const stranger = await statusOf(t, [`http://127.0.0.1:${port}`])
  t.match(stranger.bridges, [{ status: 'ready', servers: undefined, next: /requires a token/ }])
})

t.test('finds bridges on stdio, also with --inspect', { skip: process.platform === 'win32' }, async (t) => {
  const env = { XDG_STATE_HOME: temporaryFolder(t) }
  const { command, args } = legacyStdio(t).server
  const start = (...flags: string[]) => startProgram(t, [...flags, '-l', 'stdio', '--', command, ...args], env)
  const other = start()
  other.child.stdin.write(`${INITIALIZE}\n`)
  const bridge = start('--inspect')
  bridge.child.stdin.write(`${INITIALIZE}\n`)
  await until(() => bridge.stdout() !== '' && other.stdout() !== '', 'they have answered')
  const { bridges } = await statusOf(t, [], env)
  const onStdio = bridges.filter(({ address }) => String(address).startsWith('stdio'))
  t.same(onStdio.map(({ pid }) => pid).toSorted(), [bridge.child.pid, other.child.pid].toSorted(), 'each is shown once')
  const own = onStdio.filter(({ pid }) => pid === bridge.child.pid)
  t.match(own, [{ address: `stdio, process ${bridge.child.pid}`, pid: bridge.child.pid, status: 'ready' }])
  const [{ servers = {} } = {}] = own
  t.match(Object.values(servers), [{ state: 'ready', era: 'legacy', sessions: 1 }])
  const one = await run(t, ['status', String(bridge.child.pid)], env)
  t.equal(one.code, 0)
  t.match(one.stdout, /^stdio, process \d+: ready, mcp-bridge /)
})

t.test('finds bridges wherever they listen, until they end', { skip: process.platform === 'win32' }, async (t) => {
  const env = { XDG_STATE_HOME: temporaryFolder(t) }
  const { command, args } = legacyStdio(t).server
  const folder = temporaryFolder(t)
  const places = ['http://127.0.0.1:0/mcp', `unix:${join(folder, 'bridge.sock')}:/mcp`]
  const started = places.map((listen) =>
    startProgram(t, ['-l', listen, '--log-format', 'json', '--', command, ...args], env),
  )
  for (const bridge of started) await says(bridge, /"server_ready"/)
  const [first, second] = started
  const [, origin] = await says(first as (typeof started)[0], /"url":"(http:\/\/[^"/]+)/)
  // Whoever else runs at the usual addresses of this machine.
  const found = async () => {
    const { bridges } = await statusOf(t, [], env)
    return bridges.filter(({ pid }) => started.some(({ child }) => child.pid === pid))
  }
  const shown = (await found()).toSorted((a, b) => String(a['address']).localeCompare(String(b['address'])))
  t.match(shown, [
    {
      address: origin,
      pid: first?.child.pid,
      servers: { [Object.keys(shown[0]?.['servers'] ?? {})[0] ?? '']: { state: 'ready' } },
    },
    { address: `unix:${join(folder, 'bridge.sock')}`, pid: second?.child.pid },
  ])
  first?.child.kill('SIGKILL')
  second?.child.kill('SIGTERM')
  const isOver = ({ child }: (typeof started)[0]) => child.exitCode !== null || child.signalCode !== null
  await until(() => started.every(isOver), 'both have ended')
  t.same(await found(), [])
  t.same(
    readdirSync(join(env.XDG_STATE_HOME, 'mcp-bridge')).filter((name) => name.endsWith('.status')),
    [],
  )
})

t.test('says how to start a bridge where none runs, and asks nothing but bridges', async (t) => {
  const other = createServer((request, response) => {
    request.resume()
    response.end(JSON.stringify({ hello: 'I am no bridge' }))
  })
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
  t.teardown(() => other.close())
  const { port } = other.address() as AddressInfo
  const strange = await run(t, ['status', `http://127.0.0.1:${port}`])
  t.equal(strange.code, 1)
  t.match(strange.stdout, /not with the state of a bridge/)
  const closed = await run(t, ['status', `http://127.0.0.1:${await freePort()}`])
  t.equal(closed.code, 1)
  t.match(closed.stdout, /cannot connect.*\n(?:.*\n)? {2}To start a bridge: mcp-bridge --config mcp\.json\n$/)
  const stdio = temporaryFile(t, 'mcp.json', { mcpServers: {}, listen: 'stdio' })
  const none = await run(t, ['status', '--config', stdio], { XDG_STATE_HOME: join(temporaryFolder(t), 'none') })
  t.equal(none.code, 1)
  t.equal(none.stdout, '')
  t.match(none.stderr, /no bridge was found: none runs as this user.*\n.*mcp-bridge status http.*\n.*To start a bridge/)
  for (const word of ['localhost:8080', 'github'])
    t.throws(() => parseCommand(['status', word], {}), { message: /is not an address: (?:begin it with|give that of)/ })
  for (const [word, line] of [
    ['mcp.json', 'for a configuration file, write mcp-bridge status --config mcp.json'],
    ['etc/team.toml', 'for a configuration file, write mcp-bridge status --config etc/team.toml'],
    ['/run/bridge.sock', 'for a socket, write mcp-bridge status unix:/run/bridge.sock'],
  ] as const)
    t.throws(() => parseCommand(['status', word], {}), { message: `"${word}" is not an address: ${line}` })
})

t.test('without an address, the usual ones are asked', async (t) => {
  const { targets } = await statusTargets({ target: undefined, places: undefined, json: false }, undefined, -1)
  t.same(
    targets.map(({ address, isGuess }) => [address, isGuess]),
    [
      ['http://127.0.0.1:8080', true],
      ['http://127.0.0.1:9090', true],
    ],
  )
})
