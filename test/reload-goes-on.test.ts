/** A reload makes anew only what depends on a changed option: programs, sessions and streams go on with other bounds. */
import t from 'tap'
import { changedOptions } from '../src/config/changed.js'
import { fileSchema } from '../src/config/schema/schema.js'
import { createBridge, settingsOf, startBridge } from './support/bridge.js'
import { until } from './support/eventually.js'
import { LegacyClient } from './support/legacy-client.js'
import { LegacyHttp } from './support/legacy-http.js'
import { legacyStdio } from './support/legacy-stdio.js'
import { listen } from './support/listening.js'
import { call } from './support/modern.js'
import { modernStdio } from './support/modern-stdio.js'
import { runs } from './support/unkind.js'

type Json = Record<string, unknown>

const TOKEN = 'a-token-of-some-length'
const OTHER = 'another-token-of-some-length'
const echo = (url: string, x = 1, headers = {}) =>
  call(url, 'tools/call', { name: 'echo', arguments: { x } }, { headers })

/** Values that no option has by default, for those that cannot be 40,000. */
const DIFFERENT: Readonly<Record<string, unknown>> = {
  memory: 64 * 1024 * 1024,
  perPrincipal: 0.9,
  bareDiscover: false,
  ignoreVersionSkew: false,
  draftErrorCodes: true,
  emulateTasks: true,
  strictRevisions: true,
}
const others = (group: 'limits' | 'timeouts' | 'compat') =>
  Object.keys(fileSchema.shape[group].unwrap().shape)
    .filter((key) => key !== 'tools')
    .map((key) => [key, DIFFERENT[key] ?? 40_000] as const)

t.test('no limit, time limit or switch that changes ends a program, a session or a stream', async (t) => {
  const [translated, direct, http] = [modernStdio(t), legacyStdio(t), await LegacyHttp.start(t)]
  const mcpServers = { translated: translated.server, direct: direct.server, http: { url: http.url } }
  const { bridge } = createBridge(t, {}, { mcpServers })
  const urls = await bridge.listen({ kind: 'http', host: '127.0.0.1', port: 0, path: '/mcp' })
  const at = (name: string) => urls.get(name) ?? [...bridge.groupUrls.values()][0] ?? ''
  const names = [...Object.keys(mcpServers), 'group']
  const clients = await Promise.all(names.map((name) => LegacyClient.open(at(name))))
  const streams = await Promise.all(clients.map((client) => client.listen()))
  const listening = await listen(at('group'), { toolsListChanged: true })
  await listening.has(1)
  const pids = () => [...translated.pids(), ...direct.pids()]
  for (const client of clients) await client.request('tools/list')
  // One more for the stream of the group, which starts after it has been opened.
  await until(() => translated.pids().length === 2 && direct.pids().length === 3, 'the start of all programs')
  const before = pids()
  const opened = http.of('initialize').length
  for (const group of ['limits', 'timeouts', 'compat'] as const)
    for (const [key, value] of others(group)) {
      const { changed, options, fixed } = await bridge.reload(settingsOf({ mcpServers, [group]: { [key]: value } }))
      t.same([changed, fixed], [[], []], `${group}.${key}`)
      t.ok(options.includes(`${group}.${key}`), `${group}.${key}: ${options}`)
    }
  for (const client of clients) t.match(await client.request('tools/list'), { status: 200, message: { result: {} } })
  t.same(pids(), before)
  t.equal(http.of('initialize').length, opened)
  for (const one of [...streams, listening]) t.notOk(one.over)
})

t.test('changed limits hold for the programs that run already', async (t) => {
  const program = legacyStdio(t)
  const { url, bridge } = await startBridge(t, program.server)
  const mcpServers = { test: program.server }
  const long = () => call(url, 'tools/call', { name: 'echo', arguments: { x: 'x'.repeat(50_000) } })
  t.match((await long()).message, { result: {} })
  await bridge.reload(settingsOf({ mcpServers, limits: { lineBytes: 20_000 } }))
  t.match((await long()).message, { error: { message: /limits\.lineBytes/ } })
  await bridge.reload(settingsOf({ mcpServers }))
  t.match((await long()).message, { result: {} })
  await bridge.reload(settingsOf({ mcpServers, timeouts: { call: 50 } }))
  const hang = await call(url, 'tools/call', { name: 'linger', arguments: {} })
  t.match(hang.message, { error: { message: /sent nothing for 0\.05 s/ } })
  await bridge.reload(settingsOf({ mcpServers, limits: { callsPerServer: 1 } }))
  const first = call(url, 'tools/call', { name: 'linger', arguments: {} })
  await until(
    () => program.messages().filter(({ method }) => method === 'tools/call').length >= 5,
    'the call that lasts',
  )
  t.match((await echo(url)).message, { error: { message: /Too many calls with the server/ } })
  await bridge.reload(settingsOf({ mcpServers }))
  t.match((await echo(url)).message, { result: {} })
  await bridge.close()
  await first
})

t.test('what clients may see changes without a restart of the programs', async (t) => {
  const program = legacyStdio(t)
  const { url, bridge } = await startBridge(t, program.server)
  t.match((await echo(url)).message, { result: {} })
  const hidden = { test: { ...program.server, tools: { deny: ['echo'] } } }
  const { changed, options } = await bridge.reload(settingsOf({ mcpServers: hidden }))
  t.same([changed, options], [['test'], ['mcpServers.test.tools']])
  t.match((await echo(url)).message, { error: { message: 'Unknown tool: echo' } })
  await bridge.reload(settingsOf({ mcpServers: { test: program.server } }))
  t.match((await echo(url)).message, { result: {} })
  t.equal(program.pids().length, 1)
  await bridge.reload(settingsOf({ mcpServers: { test: { ...program.server, env: { A: '1' } } } }))
  t.match((await echo(url)).message, { result: {} })
  t.equal(program.pids().length, 2, 'another environment needs another process')
  await until(
    () =>
      program
        .pids()
        .slice(0, 1)
        .every((pid) => !runs(Number(pid))),
    'the end of the first one',
  )
})

t.test('another principal or another secret restarts nothing, and a removed principal ends what was his', async (t) => {
  const program = legacyStdio(t)
  const mcpServers = { test: program.server }
  const tokens = (tokens: object) => settingsOf({ mcpServers, auth: { tokens } })
  const { url, bridge } = await startBridge(t, program.server, { auth: { tokens: { alice: TOKEN, bob: OTHER } } })
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
  t.match((await echo(url, 1, bearer(OTHER))).message, { result: {} })
  await bridge.reload(tokens({ alice: TOKEN, bob: OTHER, carol: 'one-more-token-of-length' }))
  await bridge.reload(tokens({ alice: `${TOKEN}-2`, bob: OTHER, carol: 'one-more-token-of-length' }))
  t.match((await echo(url, 1, bearer(OTHER))).message, { result: {} })
  t.equal(program.pids().length, 1)
  await bridge.reload(tokens({ alice: TOKEN, carol: 'one-more-token-of-length' }))
  await until(() => program.pids().every((pid) => !runs(Number(pid))), 'the end of the process of bob')
})

t.test('a reload that cannot be used changes no limit', async (t) => {
  const program = legacyStdio(t)
  const { url, bridge } = await startBridge(t, program.server)
  const bad = settingsOf({ mcpServers: { test: program.server }, limits: { callsPerServer: 1 } })
  const paths = { ...bad, mcpServers: { test: program.server, again: { ...program.server, path: '/:bad(' } } } as never
  await t.rejects(bridge.reload(paths))
  const both = [1, 2].map((x) => echo(url, x))
  for (const { message } of await Promise.all(both)) t.match(message, { result: {} })
  t.equal(program.pids().length, 1)
})

t.test('changed options are named by their paths, without their values, and not without end', async (t) => {
  const server = { command: 'node', env: { KEY: 'secret-1' } }
  const before = { limits: { calls: 1, parked: 2 }, mcpServers: { a: server, b: server }, groups: false, x: [1] }
  const now: Json = {
    limits: { calls: 2, parked: 2 },
    mcpServers: { a: { command: 'node', env: { KEY: 'secret-2' } }, c: server },
    groups: { team: {} },
    x: [1],
    log: { level: 'debug' },
  }
  const expected = ['limits.calls', 'mcpServers.a.env', 'mcpServers.b', 'mcpServers.c', 'groups', 'log']
  t.same(changedOptions(before, now), expected)
  t.same(changedOptions(before, before), [])
  const many = Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`s${i}`, {}]))
  t.same(changedOptions({ mcpServers: {} }, { mcpServers: many }).at(-1), 'and 10 more')
})
