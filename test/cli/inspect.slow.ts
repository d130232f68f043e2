/** The program with `--inspect`: where its inspector is, who may look, and how `mcp-bridge tail` finds it. */
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { execPath, platform } from 'node:process'
import t from 'tap'
import { run, says, startProgram } from '../support/cli.js'
import { until } from '../support/eventually.js'
import { temporaryFile, temporaryFolder } from '../support/folder.js'
import { messages } from '../support/inspected.js'
import { noRedis, RedisServer } from '../support/redis.js'

const EVERYTHING = ['--', execPath, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js']
const noSockets = platform === 'win32' && 'Node.js has no unix sockets on Windows'
const CALL = messages.call('echo', { message: 'hello' })

t.test('prints the address of the page with its token, and tail follows it', async (t) => {
  const bridge = startProgram(t, ['--inspect', '--log-format', 'pretty', '-l', 'http://127.0.0.1:0/mcp', ...EVERYTHING])
  const [, address = ''] = await says(bridge, /^Inspector: (http\S+)$/m)
  const [, url = ''] = await says(bridge, /listens on (\S+)/)
  t.match(address, /^http:\/\/127\.0\.0\.1:\d+\/inspect#[\w-]{32}$/)
  const page = await fetch(address)
  t.equal(page.status, 200)
  t.match(await page.text(), /<script type="module" src="inspect\/page.js">/)
  t.match(await (await fetch(new URL('/inspect/page.js', address))).text(), /tools?:/)
  t.equal((await fetch(new URL('/inspect/calls', address))).status, 401)
  const headers = { authorization: `Bearer ${new URL(address).hash.slice(1)}` }
  t.equal((await fetch(new URL('/inspect/calls/c99', address), { headers })).status, 404)
  t.equal((await fetch(new URL('/inspect/export?format=exe', address), { headers })).status, 400)
  const events = (await (await fetch(new URL('/inspect/export', address), { headers })).text()).split('\n')
  const refused = events.filter((line) => line.includes('"kind":"refused"'))
  t.match(refused, [/"status":401/], 'what a viewer asks in vain is no refused request')

  const tail = startProgram(t, ['tail', '--both', address, 'tool:echo'])
  await says(bridge, /(inspector opened)/)
  t.equal((await messages.post(url, CALL)).status, 200)
  await until(() => /result/.test(tail.stdout()), 'a call in the terminal')
  t.match(
    tail.stdout(),
    /✓ ok {2}tools\/call echo .* M 07-28 http → L 11-25 stdio .*\n {4}→ tools\/call id 1 +│ → tools\/call/,
  )
})

t.test('logs the address without the token as JSON', async (t) => {
  const bridge = startProgram(t, ['--inspect', '--log-format', 'json', '-l', 'http://127.0.0.1:0/mcp', ...EVERYTHING])
  await says(bridge, /"event":"(server_ready)"/)
  const [, url = ''] = await says(bridge, /"event":"inspector_listening","url":"([^"]+)"/)
  t.match(url, /^http:\/\/127\.0\.0\.1:\d+\/inspect$/)
  t.match(bridge.stderr(), /"event":"inspector_listening".*"next":"set inspect\.token to look at it"/)
  t.equal((await fetch(new URL('/inspect/events', url))).status, 401)
})

t.test(
  'the address of all of this machine is printed as one that can be opened, with the place of the token',
  async (t) => {
    const config = {
      mcpServers: { default: { command: EVERYTHING[1], args: EVERYTHING.slice(2) } },
      listen: 'http://127.0.0.1:0/mcp',
      admin: 'http://0.0.0.0:0',
      inspect: { token: 'a-token-of-the-configuration' },
    }
    const file = temporaryFile(t, 'mcp.json', JSON.stringify(config))
    const bridge = startProgram(t, ['--config', file, '--log-format', 'pretty'])
    const [, address = ''] = await says(bridge, /^Inspector: (http\S+)#<token>, where <token> is inspect\.token/m)
    t.match(address, /^http:\/\/127\.0\.0\.1:\d+\/inspect$/)
    const headers = { authorization: `Bearer ${config.inspect.token}` }
    t.equal((await fetch(`${address}/calls`, { headers })).status, 200)
  },
)

t.test('prints a working tail command for a unix socket', { skip: noSockets }, async (t) => {
  const admin = `unix:${join(temporaryFolder(t), 'a.sock')}`
  const flags = ['--inspect', '--log-format', 'pretty', '-l', 'http://127.0.0.1:0/mcp', '--admin', admin]
  const bridge = startProgram(t, [...flags, ...EVERYTHING])
  const [, target = ''] = await says(bridge, /^Inspector: mcp-bridge tail '(unix:\S+:\/inspect#[\w-]{32})'$/m)
  const [, url = ''] = await says(bridge, /listens on (\S+)/)
  const tail = startProgram(t, ['tail', target])
  await says(bridge, /(inspector opened)/)
  await (await messages.post(url, CALL)).text()
  await until(() => /✓ ok {2}tools\/call echo/.test(tail.stdout()), 'a call in the terminal')
})

t.test('names the option for a token that other machines need, which has no flag', async (t) => {
  const { code, stderr } = await run(t, ['--inspect', '--admin', 'http://0.0.0.0:0', 'http://127.0.0.1:1/mcp'])
  t.equal(code, 78)
  t.match(
    stderr,
    /inspect\.token.*is required, because other machines can reach the inspector at \\?"admin\\?": set it in the configuration file/,
  )
  t.notMatch(stderr, /--inspect/)
})

t.test('on stdio, tail finds the bridge by a socket of its user, which is removed with the bridge', async (t) => {
  const state = temporaryFolder(t)
  const env = { XDG_STATE_HOME: state }
  const bridge = startProgram(t, ['--inspect', '--inspect-payloads', 'all', '-l', 'stdio', ...EVERYTHING], env)
  const folder = join(state, 'mcp-bridge')
  await says(bridge, /(serving the inspector|inspector_listening)/)
  await until(() => readdirSync(folder).length === 2, 'the socket for mcp-bridge status, too')
  t.same(readdirSync(folder).toSorted(), [`${bridge.child.pid}.sock`, `${bridge.child.pid}.status`])
  t.equal(statSync(folder).mode & 0o777, 0o700)
  for (const name of readdirSync(folder)) t.equal(statSync(join(folder, name)).mode & 0o777, 0o600, name)
  const tail = startProgram(t, ['tail', '--json'], env)
  await says(bridge, /(inspector opened|inspector_opened)/)
  bridge.child.stdin.write(`${CALL}\n`)
  await until(() => /"outcome":"ok"/.test(tail.stdout()), 'the call as JSON')
  t.match(tail.stdout(), /"hop":"server","dir":"out".*hello/)
  bridge.child.stdin.end()
  await until(() => readdirSync(folder).length === 0, 'the sockets are gone')
  const late = startProgram(t, ['tail'], env)
  t.not(await late.ended, 0)
  t.match(late.stderr(), /no bridge on stdio with --inspect runs as this user/)
})

t.test('each replica shows its own calls, with the id of the replica', { skip: noRedis }, async (t) => {
  const redis = await RedisServer.start(t)
  const config = {
    mcpServers: { default: { command: EVERYTHING[1], args: EVERYTHING.slice(2) } },
    listen: 'http://127.0.0.1:0/mcp',
    redis: { url: redis.url },
    stateKeys: ['a secret that all the replicas know of'],
    inspect: { token: 'the-token-of-both-inspectors' },
    admin: 'http://127.0.0.1:0',
  }
  const file = temporaryFile(t, 'replicas.json', JSON.stringify(config))
  const idOf = async () => {
    const bridge = startProgram(t, ['--config', file, '--log-format', 'json'])
    const [, address = ''] = await says(bridge, /"event":"inspector_listening","url":"([^"]+)"/)
    const [, url = ''] = await says(bridge, /"event":"listening","url":"([^"]+)"/)
    t.equal((await messages.post(url, CALL)).status, 200)
    const headers = { authorization: `Bearer ${config.inspect.token}` }
    const lines = (await (await fetch(`${address}/export`, { headers })).text()).trim().split('\n')
    const ids = new Set(lines.map((line) => (JSON.parse(line) as { replica?: string }).replica))
    t.equal(ids.size, 1)
    return String([...ids][0])
  }
  const ids = [await idOf(), await idOf()]
  t.match(ids[0], /^[0-9a-f]{16}$/)
  t.not(ids[0], ids[1])
})
