/** A bridge on stdio follows its configuration as one over HTTP does, though its client cannot connect again. */
import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { ElicitRequestSchema, ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js'
import t, { type Test } from 'tap'
import { settingsOf } from './support/bridge.js'
import { bridgeCommand, says, startProgram } from './support/cli.js'
import { until } from './support/eventually.js'
import { temporaryFolder } from './support/folder.js'
import { initialize } from './support/legacy-client.js'
import { legacyStdio } from './support/legacy-stdio.js'
import { modernStdio } from './support/modern-stdio.js'
import { openPipe } from './support/pipe.js'
import { runs } from './support/unkind.js'

type Json = Record<string, unknown>

/** A configuration file that is replaced as a whole, as editors do it. */
function configFile(t: Test, first: object) {
  const file = join(temporaryFolder(t), 'bridge.json')
  const write = (config: object) => {
    writeFileSync(`${file}.new`, JSON.stringify(config))
    renameSync(`${file}.new`, file)
  }
  write(first)
  return { file, write }
}

/** A client as people have it, which has started the bridge with a file. */
async function connect(t: Test, file: string, more: readonly string[] = []) {
  const transport = new StdioClientTransport({
    ...bridgeCommand('--listen', 'stdio', '--config', file, ...more),
    stderr: 'pipe',
  })
  let log = ''
  transport.stderr?.on('data', (chunk: Buffer) => {
    log += String(chunk)
  })
  const client = new Client({ name: 'people', version: '1' }, { capabilities: { elicitation: {} } })
  let changes = 0
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => void changes++)
  client.setRequestHandler(ElicitRequestSchema, () => ({ action: 'accept', content: { name: 'Zoë' } }))
  t.teardown(() => client.close())
  await client.connect(transport)
  const tools = async () => (await client.listTools()).tools.map(({ name }) => name)
  const hangUp = () => process.kill(transport.pid as number, 'SIGHUP')
  return { client, tools, hangUp, changes: () => changes, log: () => log, pid: () => transport.pid }
}

const echo = (client: Client, name: string, x: unknown) =>
  client.callTool({ name, arguments: { x } }).then(({ structuredContent }) => structuredContent)

for (const kind of ['legacy', 'modern'] as const)
  t.test(`a client on stdio in front of a ${kind} server hears of a second server, and of its end`, async (t) => {
    const [a, b] = kind === 'legacy' ? [legacyStdio(t), legacyStdio(t)] : [modernStdio(t), modernStdio(t)]
    const { file, write } = configFile(t, { mcpServers: { a: a.server } })
    const { client, tools, changes, log } = await connect(t, file)
    t.same(await echo(client, 'echo', 1), { x: 1 })
    write({ mcpServers: { a: a.server, b: b.server } })
    await until(() => /"event":"config_changed"/.test(log()), 'the reload')
    await until(() => changes() > 0, 'the notification')
    await until(async () => (await tools()).includes('b__echo'), 'the tools of both servers')
    t.same(await echo(client, 'a__echo', 2), { x: 2 })
    t.same(await echo(client, 'b__echo', 3), { x: 3 })
    const before = changes()
    write({ mcpServers: { b: b.server } })
    await until(() => /"removed":\["a"\]/.test(log()), 'the second reload')
    await until(() => changes() > before, 'the second notification')
    await until(async () => (await tools()).includes('echo'), 'the tools of the server that is left')
    t.same(await echo(client, 'echo', 4), { x: 4 })
    await until(() => a.pids().every((pid) => !runs(Number(pid))), 'the end of the removed server')
  })

t.test('SIGHUP makes a bridge on stdio read its file again, and does not end it', async (t) => {
  const [a, b] = [legacyStdio(t), legacyStdio(t)]
  const { file, write } = configFile(t, { mcpServers: { a: a.server, b: b.server } })
  const { client, tools, hangUp, changes, log } = await connect(t, file)
  await until(async () => (await tools()).length > 2, 'the tools of both servers')
  hangUp()
  await until(() => /"event":"config_changed"/.test(log()), 'the reload of an unchanged file')
  const before = changes()
  write({ mcpServers: { a: a.server, b: { ...b.server, tools: { allow: ['echo'] } } } })
  hangUp()
  await until(() => /"changed":\["b"\]/.test(log()), 'the reload')
  await until(() => changes() > before, 'the notification')
  await until(async () => (await tools()).filter((name) => name.startsWith('b__')).length === 1, 'the chosen tool')
  t.same(await echo(client, 'b__echo', 1), { x: 1 })
  t.equal(b.pids().filter((pid) => runs(Number(pid))).length, 1, 'a choice of tools needs no new process')
})

t.test('SIGHUP does not end a bridge without a configuration file', async (t) => {
  for (const listen of ['stdio', 'http://127.0.0.1:0/mcp']) {
    const { server } = legacyStdio(t)
    const running = startProgram(t, ['--listen', listen, '--', server.command, ...server.args])
    if (listen !== 'stdio') await says(running, /"event":"listening"/)
    else {
      running.child.stdin.write(`${initialize('2025-06-18')}\n`)
      await until(() => running.stdout().includes('protocolVersion'), 'the handshake')
    }
    running.child.kill('SIGHUP')
    await says(running, /"event":"config_unchanged"/)
    t.equal(running.child.exitCode, null)
    running.child.kill('SIGTERM')
    await running.ended
  }
})

t.test('an invalid file changes nothing for a client on stdio', async (t) => {
  const a = legacyStdio(t)
  const { file, write } = configFile(t, { mcpServers: { a: a.server } })
  const { client, log, changes } = await connect(t, file)
  write({ mcpServers: {} })
  await until(() => /invalid configuration; keeping the previous one/.test(log()), 'the refusal')
  t.same(await echo(client, 'echo', 1), { x: 1 })
  t.equal(changes(), 0)
})

t.test('a call in flight ends where it was sent, while the next one goes to what is served now', async (t) => {
  const [a, b] = [legacyStdio(t), legacyStdio(t)]
  const { bridge, line, messages } = openPipe(t, a.server, { timeouts: { drainTimeout: 60_000 } })
  const say = (id: number, name: string, args: Json) =>
    line(JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: args } }))
  const answerTo = (id: number) => messages().find((one) => one['id'] === id && !('method' in one))
  line(initialize('2025-11-25', { capabilities: { elicitation: { form: {} } } }))
  await until(() => messages().length === 1, 'the handshake')
  line(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' }))
  line(JSON.stringify({ jsonrpc: '2.0', id: 5, method: 'logging/setLevel', params: { level: 'warning' } }))
  await until(() => answerTo(5) !== undefined, 'the answer to setLevel')
  const params = { message: 'Who?', requestedSchema: { type: 'object', properties: { name: { type: 'string' } } } }
  say(10, 'ask', { method: 'elicitation/create', params })
  const question = () => messages().find(({ method }) => method === 'elicitation/create')
  await until(() => question() !== undefined, 'the question')
  await bridge.reload(settingsOf({ mcpServers: { test: b.server }, timeouts: { drainTimeout: 60_000 } }))
  say(11, 'echo', { x: 1 })
  await until(() => answerTo(11) !== undefined, 'the answer of the new server')
  t.match(answerTo(11), { result: { structuredContent: { x: 1 } } })
  t.equal(answerTo(10), undefined)
  const heard = messages().filter(({ method }) => method === 'notifications/tools/list_changed')
  t.ok(heard.length > 0, 'the client is told at once')
  line(
    JSON.stringify({ jsonrpc: '2.0', id: question()?.['id'], result: { action: 'accept', content: { name: 'Zoë' } } }),
  )
  await until(() => answerTo(10) !== undefined, 'the answer of the old server')
  t.match(JSON.stringify(answerTo(10)), 'Zoë')
  await until(() => a.pids().every((pid) => !runs(Number(pid))), 'the end of the old server')
  const levels = b.messages().filter(({ method }) => method === 'logging/setLevel')
  t.match(levels, [{ params: { level: 'warning' } }], 'the new server knows the level of the log')
})

t.test('a subscription of a modern client stays open across servers', async (t) => {
  const [a, b] = [modernStdio(t), modernStdio(t)]
  const { bridge, line, messages, call } = openPipe(t, a.server)
  const meta = (await import('./support/modern.js')).envelope({})
  const notifications = { toolsListChanged: true }
  line(
    JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'subscriptions/listen', params: { notifications, _meta: meta } }),
  )
  const heard = (method: string) => messages().filter((one) => one['method'] === `notifications/${method}`).length
  await until(() => heard('subscriptions/acknowledged') === 1, 'the acknowledgement')
  await bridge.reload(settingsOf({ mcpServers: { test: b.server } }))
  await until(() => heard('tools/list_changed') === 1, 'the change')
  await call('tools/call', { name: 'echo', arguments: { x: 1 } })
  await until(
    () => b.messages().some(({ method }) => method === 'subscriptions/listen'),
    'the subscription to the new one',
  )
  await call('tools/call', { name: 'touch', arguments: { tools: true } }, { id: 9 })
  await until(() => heard('tools/list_changed') >= 2, 'a change of the new server')
  t.equal(heard('subscriptions/acknowledged'), 1)
  t.notOk(
    messages().some(({ id }) => id === 7),
    'the subscription has not ended',
  )
})
