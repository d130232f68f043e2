/** The configuration changes while the bridge runs: what stays the same notices nothing. */
import { renameSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { parseSettings } from '../src/config/settings.js'
import { talk } from './support/asking.js'
import { createBridge, startBridge } from './support/bridge.js'
import { says, startProgram } from './support/cli.js'
import { until } from './support/eventually.js'
import { temporaryFile, temporaryFolder } from './support/folder.js'
import { LegacyClient } from './support/legacy-client.js'
import { LegacyHttp } from './support/legacy-http.js'
import { legacyStdio } from './support/legacy-stdio.js'
import { ALL_LISTS, changed, hears, listen } from './support/listening.js'
import { call } from './support/modern.js'

type Servers = Record<string, object>

const SERVERS = 50
const RELOADS = 20
const CLIENTS = 16

const at = (url: string, path: string) => new URL(path, url).href
const echo = (url: string) => call(url, 'tools/call', { name: 'echo', arguments: { a: 1 } })
const settingsOf = (mcpServers: Servers, more: object = {}) =>
  parseSettings(
    { mcpServers, listen: 'http://127.0.0.1:0/mcp', timeouts: { drainTimeout: 5_000 }, ...more },
    { env: {}, read: () => '' },
  )

t.test(
  `${SERVERS} servers are configured anew ${RELOADS} times under load, and no call of an unchanged one fails`,
  async (t) => {
    const http = await LegacyHttp.start(t, { asks: true })
    const servers: Servers = {}
    for (let i = 0; i < SERVERS; i++) servers[`s${i}`] = { url: `${http.url}?n=${i}` }
    servers['s0'] = legacyStdio(t, { asks: true }).server
    const { url, bridge } = await startBridge(t, {}, { mcpServers: servers, timeouts: { drainTimeout: 5_000 } })
    // Those from the 40th on are changed; the others stay.
    const stays = Array.from({ length: 40 }, (_, i) => at(url, `/s${i}/mcp`))
    const session = await LegacyClient.open(stays[0] as string)
    const stream = await listen(stays[0] as string, ALL_LISTS)
    await stream.has(1)
    const parked = await talk(stays[0] as string).steps([{ ask: [{ method: 'roots/list' }] }])

    let over = false
    let calls = 0
    const failed: unknown[] = []
    const load = Array.from({ length: CLIENTS }, async (_, client) => {
      for (let i = client; !over; i += CLIENTS) {
        const answer = await echo(stays[i % stays.length] as string)
        calls++
        if (!answer.message.result) failed.push(answer.text)
      }
    })
    let now = servers
    for (let round = 0; round < RELOADS; round++) {
      const which = 40 + (round % 10)
      now = { ...now, [`s${which}`]: { url: `${http.url}?n=${which}`, headers: { 'x-round': String(round) } } }
      if (round % 3 === 0) now = { ...now, [`new${round}`]: { url: http.url } }
      if (round % 3 === 2) now = Object.fromEntries(Object.entries(now).filter(([name]) => name !== `new${round - 2}`))
      const wait = call(at(url, `/s${which}/mcp`), 'tools/call', { name: 'wait', arguments: { ms: 150 } })
      await until(() => http.received.some(({ path, body }) => path.endsWith(`=${which}`) && body.includes('"wait"')))
      const changes = await bridge.reload(settingsOf(now))
      t.same(changes.changed, [`s${which}`])
      t.match(
        await wait,
        { status: 200, message: { result: {} } },
        'a call with a server that is changed ends where it began',
      )
      t.match(await echo(at(url, `/s${which}/mcp`)), { status: 200 })
      t.equal((await echo(at(url, '/new0/mcp'))).status, round < 2 ? 200 : 404)
    }
    over = true
    await Promise.all(load)
    t.same(failed, [])
    t.ok(calls > 100, `${calls} calls`)
    t.equal((await session.request('ping')).status, 200, 'the session is the same')
    const first = talk(stays[0] as string, { capabilities: {} })
    await first.call('tools/call', { name: 'touch', arguments: { tools: true } })
    t.same(await hears(stream, 1), [changed('tools')], 'the subscription is the same')
    t.match(await talkAgain(stays[0] as string, parked), { roots: [] }, 'and the call that waited for an answer')
  },
)

async function talkAgain(url: string, parked: Awaited<ReturnType<ReturnType<typeof talk>['steps']>>): Promise<unknown> {
  const [key = ''] = parked.keys
  const args = { steps: [{ ask: [{ method: 'roots/list' }] }] }
  const params = {
    name: 'steps',
    arguments: args,
    inputResponses: { [key]: { roots: [] } },
    requestState: parked.state,
  }
  const answer = await talk(url).call('tools/call', params)
  return [answer.said].flat(3)[0]
}

t.test('what only a start can change stays as it is, and is named', async (t) => {
  const { server } = legacyStdio(t)
  const { url, bridge } = await startBridge(t, server)
  const wanted = settingsOf({ test: server }, { listen: 'http://127.0.0.1:1/x', metrics: false, limits: { calls: 1 } })
  const { fixed, changed } = await bridge.reload(wanted)
  t.same(fixed, ['listen', 'metrics'])
  t.same(changed, ['test'], 'the bounds of a server are others')
  t.equal((await echo(url)).status, 200)
})

t.test('a session with a server that has been taken out ends, and a client is told so', async (t) => {
  const kept = legacyStdio(t).server
  const gone = legacyStdio(t).server
  const { bridge } = createBridge(t, {}, { mcpServers: { kept, gone } })
  const urls = await bridge.listen({ kind: 'http', host: '127.0.0.1', port: 0, path: '/mcp' })
  const client = await LegacyClient.open(urls.get('gone') as string)
  const { removed } = await bridge.reload(settingsOf({ kept }))
  t.same(removed, ['gone'])
  t.equal((await client.request('ping')).status, 404)
  t.equal((await echo(urls.get('kept') as string)).status, 200)
  t.equal((await echo(at(urls.get('kept') as string, '/mcp'))).status, 200, 'the only one that is left is at /mcp too')
})

async function program(t: Test, name: string) {
  const file = join(temporaryFolder(t), name)
  const write = (config: unknown) => {
    writeFileSync(`${file}.new`, typeof config === 'string' ? config : JSON.stringify(config))
    // Another file in its place, as editors and Kubernetes do it.
    renameSync(`${file}.new`, file)
  }
  const a = legacyStdio(t).server
  const b = legacyStdio(t).server
  write({ mcpServers: { a }, listen: 'http://127.0.0.1:0/mcp' })
  const running = startProgram(t, ['--config', file])
  const [, origin = ''] = await says(running, /"url":"(http:[^"]*)\/mcp"/)
  return { running, write, origin, a, b }
}

t.test(
  'a file that changes is read again; a broken one is refused with what is wrong, and the old one stays',
  async (t) => {
    const { running, write, origin, a, b } = await program(t, 'config.json')
    const client = await LegacyClient.open(`${origin}/a/mcp`)
    write({ mcpServers: { a, b } })
    await says(running, /"event":"config_changed","added":\["b"\]/)
    t.equal((await echo(`${origin}/b/mcp`)).status, 200)
    t.equal((await client.request('ping')).status, 200)
    write({ mcpServers: { a, b: { command: 'x', era: 'old' } }, limit: {} })
    const [said] = await says(running, /.*invalid configuration; keeping.*/)
    t.match(said, /mcpServers\.b\.era.*"limit","message":"is not an option: did you mean|"limit".*mcpServers\.b\.era/)
    t.equal((await echo(`${origin}/b/mcp`)).status, 200)
    write('{')
    await says(running, /is not valid JSON/)
    t.equal((await client.request('ping')).status, 200)
  },
)

t.test(
  '11.29 a server that is added and cannot be had is said to be unavailable, and one that can to be ready',
  async (t) => {
    const { running, write, a, b } = await program(t, 'config.json')
    write({ mcpServers: { a, b, gone: { command: 'no-such-command-here' } } })
    await says(running, /"event":"server_unavailable","server":"gone","why":".*command not found"/)
    await says(running, /"event":"server_ready","server":"b","era":"legacy"/)
  },
)

t.test('a file that changes while the bridge starts is read again', async (t) => {
  const release: (() => void)[] = []
  const slow = createServer((_request, response) => {
    release.push(() => response.writeHead(404).end())
  })
  await new Promise<void>((resolve) => {
    slow.listen(0, '127.0.0.1', resolve)
  })
  t.teardown(() => slow.close().closeAllConnections())
  const discover = [`http://127.0.0.1:${(slow.address() as AddressInfo).port}`]
  const [a, b] = [legacyStdio(t).server, legacyStdio(t).server]
  const config = { mcpServers: { a }, listen: 'http://127.0.0.1:0/mcp', discover, discoverLoopback: true }
  const file = temporaryFile(t, 'config.json', config)
  const running = startProgram(t, ['--config', file])
  // The bridge has read its file, and looks for servers before it listens.
  await until(() => release.length > 0, 'the search for servers')
  writeFileSync(file, JSON.stringify({ ...config, mcpServers: { a, b } }))
  for (const answer of release.splice(0)) answer()
  slow.on('request', () => release.pop()?.())
  await says(running, /"event":"config_changed","added":\["b"\]/)
})

t.test('SIGHUP has it read again, with the files that it refers to', async (t) => {
  const { running, write, origin, a } = await program(t, 'config.json')
  const http = await LegacyHttp.start(t)
  const secret = temporaryFile(t, 'token', 'one\n')
  const b = { url: http.url, headers: { 'x-key': `\${file:${secret}}` } }
  write({ mcpServers: { a, b } })
  running.child.kill('SIGHUP')
  await says(running, /"added":\["b"\]/)
  await echo(`${origin}/b/mcp`)
  t.equal(http.received.at(-1)?.headers['x-key'], 'one')
  writeFileSync(secret, 'two\n')
  await says(running, /"changed":\["b"\]/)
  await echo(`${origin}/b/mcp`)
  t.equal(http.received.at(-1)?.headers['x-key'], 'two', 'a secret that is changed is taken without a start')
  t.notMatch(running.stderr(), /"two"|"one"/)
})
