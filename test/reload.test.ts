/** The configuration changes while the bridge runs: what stays the same notices nothing. */
import { renameSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { createBridge, settingsOf, startBridge } from './support/bridge.js'
import { says, startProgram } from './support/cli.js'
import { until } from './support/eventually.js'
import { temporaryFile, temporaryFolder } from './support/folder.js'
import { LegacyClient } from './support/legacy-client.js'
import { LegacyHttp } from './support/legacy-http.js'
import { legacyStdio } from './support/legacy-stdio.js'
import { call } from './support/modern.js'

type Servers = Record<string, object>

const at = (url: string, path: string) => new URL(path, url).href
const echo = (url: string) => call(url, 'tools/call', { name: 'echo', arguments: { a: 1 } })
const wanted = (mcpServers: Servers, more: object = {}) =>
  settingsOf({ mcpServers, timeouts: { drainTimeout: 5_000 }, ...more })

t.test('options that need a restart stay as they are, and are named', async (t) => {
  const { server } = legacyStdio(t)
  const { url, bridge } = await startBridge(t, server)
  const after = wanted({ test: server }, { listen: 'http://127.0.0.1:1/x', metrics: false, limits: { calls: 1 } })
  const { fixed, changed, options } = await bridge.reload(after)
  t.same(fixed, ['listen', 'metrics'])
  t.same(changed, [], 'the server goes on with other bounds')
  t.same(options, ['limits.calls', 'timeouts.drainTimeout'])
  t.equal((await echo(url)).status, 200)
})

t.test('a session with a removed server ends, and its client is told', async (t) => {
  const kept = legacyStdio(t).server
  const gone = legacyStdio(t).server
  const { bridge } = createBridge(t, {}, { mcpServers: { kept, gone } })
  const urls = await bridge.listen({ kind: 'http', host: '127.0.0.1', port: 0, path: '/mcp' })
  const client = await LegacyClient.open(urls.get('gone') as string)
  const { removed } = await bridge.reload(wanted({ kept }))
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

t.test('reads a changed file again, and refuses an invalid one with the reason, keeping the old one', async (t) => {
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
})

t.test('options that need a restart are named, and are no new configuration by themselves', async (t) => {
  const { running, write, a, b } = await program(t, 'config.json')
  const listen = 'http://127.0.0.1:0/mcp'
  const folder = temporaryFolder(t)
  write({ mcpServers: { a }, listen, log: { calls: 'none' }, audit: { file: join(folder, 'audit.jsonl') } })
  await says(running, /"event":"restart_required","options":\["log\.calls","audit"\]/)
  write({ mcpServers: { a, b }, listen })
  await says(running, /"event":"config_changed","added":\["b"\]/)
  t.equal(running.stderr().match(/"event":"config_changed"/g)?.length, 1)
})

t.test('reports an added server that is unreachable as unavailable, and a reachable one as ready', async (t) => {
  const { running, write, a, b } = await program(t, 'config.json')
  write({ mcpServers: { a, b, gone: { command: 'no-such-command-here' } } })
  await says(running, /"event":"server_unavailable","server":"gone","why":".*command not found"/)
  await says(running, /"event":"server_ready","server":"b","era":"legacy"/)
})

t.test('reads a file again that changes while the bridge starts', async (t) => {
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

t.test('SIGHUP makes it read the file again, with the files that it refers to', async (t) => {
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

t.test('says once that a file is invalid, although a signal and a look at the file find it', async (t) => {
  const { running, write, a } = await program(t, 'config.json')
  write({ mcpServers: { a: { ...a, command: 7 } } })
  running.child.kill('SIGHUP')
  await says(running, /"event":"config_invalid"/)
  // The bridge looks at the file each second.
  await setTimeout(2_500)
  write({ mcpServers: { a, b: a } })
  await says(running, /"added":\["b"\]/)
  t.equal(running.stderr().match(/"event":"config_invalid"/g)?.length, 1)
  write({ mcpServers: { a: { ...a, command: 7 } } })
  await until(() => running.stderr().match(/"event":"config_invalid"/g)?.length === 2, 'the same mistake again')
})
