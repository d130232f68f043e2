/** Programs of a group that are started when something of them is used: a list of what is known starts none. */
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { lazyServers, parseSettings } from '../../src/config/settings.js'
import { run, says, startProgram } from '../support/cli.js'
import { until } from '../support/eventually.js'
import { temporaryFile, temporaryFolder } from '../support/folder.js'
import { freePort } from '../support/free-port.js'
import { LegacyClient } from '../support/legacy-client.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { CLIENT_INFO, call } from '../support/modern.js'
import { isRunning } from '../support/short-clients.js'

const NAMES = ['one', 'two', 'three', 'four', 'five', 'six']

async function setUp(t: Test, more: object = {}, settings: object = {}) {
  const [folder, port] = [temporaryFolder(t), await freePort()]
  const programs = Object.fromEntries(NAMES.map((name) => [name, legacyStdio(t)]))
  const entries = NAMES.map((name) => [name, { ...programs[name]?.server, ...more }])
  const listen = `http://127.0.0.1:${port}/mcp`
  const config = temporaryFile(t, 'mcp.json', { mcpServers: Object.fromEntries(entries), listen, ...settings })
  const env = { XDG_STATE_HOME: join(folder, 'state') }
  const start = async () => {
    const bridge = startProgram(t, ['--config', config, '--log-format', 'json'], env)
    await says(bridge, /"listening"/)
    return async () => {
      bridge.child.kill('SIGTERM')
      await bridge.ended
    }
  }
  /** How many programs run. */
  const running = async () => {
    const { stdout } = await run(t, ['status', listen, '--json'], env)
    const { bridges } = JSON.parse(stdout) as { bridges: { programs: number; status: string }[] }
    return bridges[0]
  }
  return { url: listen, start, running, programs }
}

const toolsOf = async (url: string) => (await call(url, 'tools/list')).message.result?.['tools'] as { name: string }[]

t.test('six programs whose lists are known: none runs for a list, and one for a call', async (t) => {
  const { url, start, running } = await setUp(t)
  const stop = await start()
  await LegacyClient.open(url)
  const before = await toolsOf(url)
  t.equal(new Set(before.map(({ name }) => name.split('__')[0])).size, 6)
  await stop()

  const stopAgain = await start()
  t.match(await running(), { status: 'ready', programs: 0 })
  t.same(await toolsOf(url), before)
  const client = await LegacyClient.open(url)
  const stream = await client.listen()
  const listed = (await client.request('tools/list')).message.result as { tools: unknown[] }
  t.equal(listed.tools.length, before.length)
  t.match(await running(), { programs: 0 }, 'nor for a session, its stream and its list')
  const [tool] = before.filter(({ name }) => name.startsWith('four__'))
  const { message } = await client.request('tools/call', { name: tool?.name, arguments: {} })
  t.ok(message.result)
  t.match(await running(), { programs: 1 })
  await client.request('tools/list')
  t.match(await running(), { programs: 1 }, 'the list of a program that runs asks that one')
  stream.leave?.()
  await stopAgain()
})

t.test(
  'an idle program sleeps while its client is connected and listens, and runs again when it is used',
  async (t) => {
    const { url, start, running } = await setUp(t, {}, { timeouts: { idle: 300 } })
    const stop = await start()
    const client = await LegacyClient.open(url)
    const stream = await client.listen()
    const names = async () => {
      const { tools } = (await client.request('tools/list')).message.result as { tools: { name: string }[] }
      return tools.map(({ name }) => name)
    }
    const before = await names()
    const name = before.find((one) => one.startsWith('four__'))
    for (const n of [1, 2]) {
      t.ok((await client.request('tools/call', { name, arguments: {} })).message.result, `call ${n}`)
      await until(async () => (await running())?.programs === 0, 'no program runs')
      t.same(await names(), before, 'its tools stay listed')
      t.match(await running(), { programs: 0 })
    }
    stream.leave?.()
    await stop()
  },
)

t.test('what another application uses is not started for a list, with or without a session', async (t) => {
  const { url, start, running } = await setUp(t)
  const stop = await start()
  await LegacyClient.open(url)
  const before = await toolsOf(url)
  await stop()
  const stopAgain = await start()
  const name = before.find((one) => one.name.startsWith('four__'))?.name
  const named = (application: string) => ({ meta: { [CLIENT_INFO]: { name: application, version: '1' } } })
  t.ok((await call(url, 'tools/call', { name, arguments: {} }, named('one'))).message.result)
  t.match(await running(), { programs: 1 })
  t.same((await call(url, 'tools/list', {}, named('other'))).message.result?.['tools'], before)
  await LegacyClient.open(url).then((client) => client.request('tools/list'))
  t.match(await running(), { programs: 1 })
  await stopAgain()
})

t.test('a program with a subscription of its client stays', async (t) => {
  const { url, start, programs } = await setUp(t, {}, { timeouts: { idle: 300 } })
  const stop = await start()
  const client = await LegacyClient.open(url)
  const stream = await client.listen()
  const { message } = await client.request('resources/subscribe', { uri: 'two+test://x' })
  t.match(message, { result: {} })
  const pidsOf = (server: string) => programs[server]?.pids() ?? []
  const subscribed = pidsOf('two')
  for (const n of [1, 2, 3]) {
    t.ok((await client.request('tools/call', { name: 'one__echo', arguments: {} })).message.result)
    await until(() => !pidsOf('one').some((pid) => isRunning(Number(pid))), `another one sleeps, time ${n}`)
  }
  t.same(pidsOf('two'), subscribed)
  t.ok(isRunning(Number(subscribed.at(-1))))
  stream.leave?.()
  await stop()
})

t.test('"start": "eager" starts all of them with the bridge', async (t) => {
  const { url, start, running } = await setUp(t, { start: 'eager' })
  const stop = await start()
  await toolsOf(url)
  await stop()
  const stopAgain = await start()
  await until(async () => (await running())?.programs === 6, 'all run')
  await stopAgain()
})

t.test(
  'programs are lazy by default in groups of more than five, if only this machine can reach the bridge',
  async (t) => {
    const lazyIn = (count: number, more: object = {}, own: object = {}) => {
      const entries = NAMES.slice(0, count).map((name) => [name, { command: 'node', ...own }])
      const mcpServers = { ...Object.fromEntries(entries), web: { url: 'http://127.0.0.1/' } }
      return [...lazyServers(parseSettings({ mcpServers, ...more }, { env: {}, read: () => '' }))]
    }
    const everywhere = { listen: 'http://0.0.0.0:8080/mcp', allowedHosts: ['a.example'], allowUnauthenticated: true }
    t.same(lazyIn(6), NAMES)
    t.same(lazyIn(6, { listen: 'unix:/tmp/x.sock' }), NAMES)
    t.same(lazyIn(5), [])
    t.same(lazyIn(6, everywhere), [])
    t.same(lazyIn(6, { groups: false }), [])
    t.same(lazyIn(6, {}, { start: 'eager' }), [])
    t.same(lazyIn(2, everywhere, { start: 'lazy' }), NAMES.slice(0, 2))
    const [one, two, three] = NAMES
    const of = (...starts: [servers: unknown, start?: string][]) =>
      Object.fromEntries(starts.map(([servers, start], i) => [`g${i}`, { servers, start }]))
    t.same(lazyIn(6, { groups: of([[one, two], 'lazy']) }), [one, two])
    t.same(lazyIn(6, { groups: of([NAMES, 'eager']) }), [])
    t.same(lazyIn(6, { groups: of([NAMES], [[one], 'eager']) }), NAMES.slice(1), 'eager counts more')
    t.same(lazyIn(6, { groups: of([[one, two], 'lazy'], [[two, three], 'eager']) }), [one])
    t.same(lazyIn(6, { groups: of([NAMES, 'eager']) }, { start: 'lazy' }), NAMES, 'and the entry of a server most')
    t.same(lazyIn(6, { ...everywhere, groups: of([NAMES, 'lazy']) }), NAMES)
  },
)
