/** A restart of the program: a group lists at once what its servers listed before, and nothing secret is in the files for that. */
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { listStoreOf } from '../../src/app/list-stores.js'
import type { Log } from '../../src/base/log/events.js'
import { parseSettings } from '../../src/config/settings.js'
import { says, startProgram } from '../support/cli.js'
import { temporaryFile, temporaryFolder } from '../support/folder.js'
import { freePort } from '../support/free-port.js'
import { LegacyClient } from '../support/legacy-client.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { call } from '../support/modern.js'

const SECRET = 'canary-of-the-kept-lists'

async function setUp(t: Test, more: object = {}) {
  const [folder, port] = [temporaryFolder(t), await freePort()]
  const startFile = join(folder, 'start')
  writeFileSync(startFile, '')
  const program = () => ({ ...legacyStdio(t, { startFile }).server, env: { TOKEN: SECRET, SECRET_ARG: SECRET } })
  const config = temporaryFile(t, 'mcp.json', {
    mcpServers: { one: program(), two: program() },
    listen: `http://127.0.0.1:${port}/mcp`,
    ...more,
  })
  const env = { XDG_STATE_HOME: join(folder, 'state') }
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    /** Its programs answer nothing from now on. */
    stall: () => rmSync(startFile),
    start: async (...args: string[]) => {
      const bridge = startProgram(t, ['--config', config, '--log-format', 'json', ...args], env)
      await says(bridge, /"listening"/)
      return async () => {
        bridge.child.kill('SIGTERM')
        await bridge.ended
        return bridge.stderr()
      }
    },
    lists: join(env.XDG_STATE_HOME, 'mcp-bridge', 'lists'),
  }
}

t.test('after a restart the list is whole while no program has answered', async (t) => {
  const { url, start, stall, lists } = await setUp(t)
  const stop = await start()
  const whole = (await call(url, 'tools/list')).message.result
  t.ok((whole?.['tools'] as unknown[]).length > 1)
  await stop()
  const files = readdirSync(lists)
  t.equal(files.length, 2, 'one for each server')
  for (const name of files) t.notMatch(readFileSync(join(lists, name), 'utf8'), SECRET)
  stall()
  const stopAgain = await start()
  const again = (await call(url, 'tools/list')).message.result
  t.same(again?.['tools'], whole?.['tools'])
  t.match(again?.['_meta'], { 'io.github.mcp-bridge/unavailable': [{ server: 'one' }, { server: 'two' }] })
  await stopAgain()
})

t.test('a group of one server lists at once what it knows, under the names of the server', async (t) => {
  const { url, start, stall } = await setUp(t, { groups: { only: { servers: ['one'], path: '/mcp' } } })
  const listed = async () => {
    const client = await LegacyClient.open(url)
    return [
      client.opened.message.result?.['capabilities'],
      (await client.request('tools/list')).message.result?.['tools'],
    ]
  }
  const stop = await start()
  const before = await listed()
  t.match(before, [{ tools: {} }, [{ name: 'echo' }]])
  await stop()
  stall()
  await start()
  t.same(await listed(), before)
})

t.test('a damaged record is said once, and replaced', async (t) => {
  const { start, url, lists } = await setUp(t)
  const stop = await start()
  const whole = (await call(url, 'tools/list')).message.result
  await stop()
  const files = readdirSync(lists).map((name) => join(lists, name))
  for (const file of files) writeFileSync(file, readFileSync(file).subarray(0, -1))
  const stopAgain = await start()
  t.same((await call(url, 'tools/list')).message.result?.['tools'], whole?.['tools'])
  const lines = (await stopAgain()).split('\n').filter((line) => line.includes('lists_not_kept'))
  t.equal(lines.length, 1)
  t.match(JSON.parse(lines[0] ?? '{}'), { event: 'lists_not_kept', why: 'it is not as it was written' })
  t.ok(files.includes((JSON.parse(lines[0] ?? '{}') as { path: string }).path))
  const stopLast = await start()
  await call(url, 'tools/list')
  t.notMatch(await stopLast(), /lists_not_kept/)
})

t.test('with "lists": "memory" nothing is kept', async (t) => {
  const { url, start, lists } = await setUp(t, { lists: 'memory' })
  const stop = await start()
  await call(url, 'tools/list')
  await stop()
  t.notOk(existsSync(lists))
})

t.test(
  'lists are kept in files where only this machine can reach the bridge, and in Redis with replicas',
  async (t) => {
    const folder = temporaryFolder(t)
    const log = { warn() {} } as unknown as Pick<Log, 'warn'>
    const shared = new Map<string, string>()
    const records = {
      lasting: true,
      recall: (kind: string, name: string) => Promise.resolve(shared.get(`${kind} ${name}`)),
      remember: (kind: string, name: string, text: string) => {
        shared.set(`${kind} ${name}`, text)
        return Promise.resolve(true)
      },
    }
    const storeOf = (more: object, redis = false) => {
      const settings = parseSettings({ mcpServers: { a: { command: 'x' } }, ...more }, { env: {}, read: () => '' })
      return listStoreOf(settings, { folder, log, records: redis ? records : undefined })
    }
    const everywhere = { listen: 'http://0.0.0.0:8080/mcp', allowedHosts: ['a.example'], allowUnauthenticated: true }
    for (const more of [{}, { listen: 'stdio' }, { listen: 'unix:/tmp/x.sock' }, { ...everywhere, lists: 'kept' }])
      t.ok(storeOf(more), JSON.stringify(more))
    for (const more of [{ lists: 'memory' }, everywhere]) t.notOk(storeOf(more), JSON.stringify(more))
    t.notOk(storeOf({ lists: 'memory' }, true))
    const store = storeOf(everywhere, true)
    await store?.write('key', 'text')
    t.equal(await store?.read('key'), 'text')
    t.equal(shared.size, 1)
    t.notOk(existsSync(join(folder, 'lists')))
  },
)
