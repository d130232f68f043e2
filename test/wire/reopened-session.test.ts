import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import {
  ElicitRequestSchema,
  type ElicitResult,
  PromptListChangedNotificationSchema,
  ResourceUpdatedNotificationSchema,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js'
import t, { type Test } from 'tap'
import { z } from 'zod'
import { startBridge } from '../support/bridge.js'
import { bridgeCommand } from '../support/cli.js'
import { until } from '../support/eventually.js'
import { LegacyClient } from '../support/legacy-client.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { LegacySse } from '../support/legacy-sse.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { openPipe, type Pipe } from '../support/pipe.js'
import { RestartingServer } from '../support/restarting.js'
import { askOn } from '../support/spelled.js'
import { SseClient } from '../support/sse-client.js'

type Json = Record<string, unknown>

/** A client as people have it: it starts the bridge as its server on stdio. */
async function connect(t: Test, upstream: string, capabilities: object = {}) {
  const transport = new StdioClientTransport({
    ...bridgeCommand('--listen', 'stdio', '--upstream', upstream),
    stderr: 'pipe',
  })
  let log = ''
  transport.stderr?.on('data', (chunk: Buffer) => {
    log += String(chunk)
  })
  const client = new Client({ name: 'people', version: '1' }, { capabilities })
  const heard: string[] = []
  let ended = false
  client.onclose = () => {
    ended = true
  }
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => void heard.push('tools'))
  client.setNotificationHandler(PromptListChangedNotificationSchema, () => void heard.push('prompts'))
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => void heard.push(params.uri))
  t.teardown(() => client.close())
  await client.connect(transport)
  const call = async (name: string, args: Json = {}) => {
    const { content } = (await client.callTool({ name, arguments: args })) as { content: { text: string }[] }
    return content[0]?.text
  }
  return { client, call, heard, log: () => log, ended: () => ended }
}

/** Says which start of the server it is of, and how many calls its session has had. */
function register(server: McpServer, boot: number): void {
  let calls = 0
  const say = (text: string) => ({ content: [{ type: 'text' as const, text }] })
  server.registerTool('count', { inputSchema: { n: z.number().optional() } }, () => say(`${boot}.${++calls}`))
  server.registerTool('hang', {}, () => new Promise(() => {}))
  server.registerTool('ask', {}, async () => {
    const requestedSchema = { type: 'object' as const, properties: {} }
    const { action } = await server.server.elicitInput({ message: `Question of ${boot}`, requestedSchema })
    return say(action)
  })
  if (boot > 1) server.registerPrompt('new', {}, () => ({ messages: [] }))
  if (boot > 2) server.registerTool('new', {}, () => say('new'))
  else server.registerPrompt('old', {}, () => ({ messages: [] }))
}

t.test('an SDK client on stdio continues when its HTTP server is restarted', async (t) => {
  const server = await RestartingServer.start(t, register)
  const { client, call, heard, ended } = await connect(t, server.url)
  await client.setLoggingLevel('warning')
  await client.subscribeResource({ uri: 'test://kept' })
  await client.subscribeResource({ uri: 'test://left' })
  await client.unsubscribeResource({ uri: 'test://left' })
  const tools = await client.listTools()
  await client.listPrompts()
  t.equal(await call('count'), '1.1')

  await server.restart()
  t.match(await call('count'), /^2\./, 'the call was sent once more')
  const [first, again] = [server.got('initialize', 1), server.got('initialize')]
  t.same(again, first, 'the new session is opened with what the client said')
  t.equal(server.got('notifications/initialized').length, 1)
  t.same(server.got('logging/setLevel'), [{ level: 'warning' }])
  t.same(server.got('resources/subscribe'), [{ uri: 'test://kept' }])
  await until(() => heard.length >= 2, `what has changed (${heard})`)
  t.same(heard.sort(), ['prompts', 'test://kept'], 'the tools are the same')
  t.same(await client.listTools(), tools)

  await server.restart()
  t.match(await call('count'), /^3\./)
  await until(() => heard.includes('tools'), 'the change of the tools')
  t.equal(server.got('initialize').length, 1)
  t.notOk(ended())
})

t.test('a client hears of changes after a restart without a request', async (t) => {
  const server = await RestartingServer.start(t, register)
  const { client, heard } = await connect(t, server.url)
  await client.listPrompts()
  await until(() => server.got('notifications/initialized').length === 1)
  await server.restart()
  await until(() => heard.includes('prompts'), 'what has changed at the restart')
  const [now] = server.servers
  now?.sendToolListChanged()
  await until(() => heard.includes('tools'), 'what changes after it')
})

t.test('each call, and ping, says that the server is still down, and the next one tries again', async (t) => {
  const server = await RestartingServer.start(t, register)
  const { client, call, ended } = await connect(t, server.url)
  await call('count')
  await server.stop()
  for (let n = 0; n < 3; n++) {
    await t.rejects(call('count'), { code: -32603, data: { outcome: 'not_executed' } })
    await t.rejects(client.ping(), { code: -32603 })
  }
  t.notOk(ended(), 'the bridge lives')
  await server.start()
  await until(() => call('count').then(Boolean, () => false), 'an answer')
  t.same(await client.ping(), {})
  t.notOk(ended())
})

t.test('a call with an unknown outcome says so, and is not repeated', async (t) => {
  const server = await RestartingServer.start(t, register)
  const { client, call } = await connect(t, server.url)
  const hanging = client.callTool({ name: 'hang', arguments: {} })
  hanging.catch(() => {})
  await until(() => server.got('tools/call').length === 1)
  await server.restart()
  await t.rejects(hanging, { code: -32603, data: { outcome: 'unknown' } })
  t.match(await call('count'), /^2\./)
  t.same(
    server.got('tools/call').filter((params) => (params as Json)['name'] === 'hang'),
    [],
  )
})

t.test('calls that lose the session at the same time share one new session', async (t) => {
  const server = await RestartingServer.start(t, register)
  const { call } = await connect(t, server.url)
  await call('count')
  server.forget()
  const answers = await Promise.all(Array.from({ length: 8 }, (_, n) => call('count', { n })))
  t.same(
    answers.sort(),
    Array.from({ length: 8 }, (_, n) => `2.${n + 1}`),
  )
  t.equal(server.got('initialize').length, 1)
})

t.test('questions of a lost session are withdrawn, and not mixed up with those of the new one', async (t) => {
  const server = await RestartingServer.start(t, register)
  const { client, call } = await connect(t, server.url, { elicitation: {} })
  const asked: { message: string; signal: AbortSignal; answer: (result: ElicitResult) => void }[] = []
  client.setRequestHandler(
    ElicitRequestSchema,
    ({ params }, { signal }) =>
      new Promise((answer) => {
        asked.push({ message: params.message, signal, answer })
      }),
  )
  // Clients of SDK v1 pass over the cancellation of a request whose id is 0.
  const first = call('ask')
  await until(() => asked.length === 1, 'a question')
  asked.pop()?.answer({ action: 'accept' })
  t.equal(await first, 'accept')

  const lost = call('ask')
  lost.catch(() => {})
  await until(() => asked.length === 1, 'the first question')
  await server.restart()
  await t.rejects(lost, { code: -32603, data: { outcome: 'unknown' } })
  await until(() => asked[0]?.signal.aborted === true, 'the end of the first question')

  const again = call('ask')
  await until(() => asked.length === 2, 'the second question')
  asked[0]?.answer({ action: 'cancel' })
  t.equal(asked[1]?.message, 'Question of 2')
  asked[1]?.answer({ action: 'decline' })
  t.equal(await again, 'decline')
})

const hello = (protocolVersion: string) => ({
  jsonrpc: '2.0',
  id: 'hello',
  method: 'initialize',
  params: { protocolVersion, capabilities: {}, clientInfo: { name: 'old', version: '1' } },
})

async function shakeHands(pipe: Pipe, revision = '2025-11-25'): Promise<void> {
  const { method, params } = hello(revision)
  await askOn(pipe, method, params)
  pipe.line('{"jsonrpc":"2.0","method":"notifications/initialized"}')
}

const echo = { name: 'echo', arguments: { x: 1 } }
const echoed = { result: { structuredContent: { x: 1 } } }

t.test('a client on stdio continues when its program is killed between calls', async (t) => {
  const program = legacyStdio(t)
  const pipe = openPipe(t, program.server)
  await shakeHands(pipe)
  await askOn(pipe, 'logging/setLevel', { level: 'error' })
  await askOn(pipe, 'resources/subscribe', { uri: 'test://static' })
  const [pid] = program.pids()
  process.kill(Number(pid), 'SIGKILL')
  await until(() => pipe.log.some(({ event }) => event === 'server_gone'))
  t.match(await askOn(pipe, 'tools/call', echo), echoed)
  const again = program
    .seen()
    .filter(({ pid: other, line }) => other !== pid && line.startsWith('{'))
    .map(({ line }) => (JSON.parse(line) as Json)['method'])
  t.same(again.slice(0, 2), ['initialize', 'notifications/initialized'])
  t.same(again.slice(2, 4).sort(), ['logging/setLevel', 'resources/subscribe'])
  t.equal(again[4], 'tools/call')
  t.equal(program.pids().length, 2)
})

t.test('a client on stdio gets an error when its program is killed in mid-call, and continues', async (t) => {
  const program = legacyStdio(t)
  const pipe = openPipe(t, program.server)
  await shakeHands(pipe)
  const waiting = askOn(pipe, 'tools/call', { name: 'wait', arguments: { ms: 60_000 } })
  await until(() => program.messages().some(({ method }) => method === 'tools/call'))
  process.kill(Number(program.pids()[0]), 'SIGKILL')
  t.match(await waiting, { error: { code: -32603, data: { reason: 'upstream_closed', outcome: 'unknown' } } })
  t.match(await askOn(pipe, 'tools/call', echo), echoed)
  const waits = program.messages().filter(({ params }) => (params as Json | undefined)?.['name'] === 'wait')
  t.equal(waits.length, 1, 'it was not repeated')
})

t.test('a program that crashes repeatedly is restarted once for each crash', async (t) => {
  const program = legacyStdio(t)
  const pipe = openPipe(t, program.server)
  await shakeHands(pipe)
  for (let crash = 1; crash <= 3; crash++) {
    t.match(await askOn(pipe, 'tools/call', { name: 'crash' }), { error: { data: { outcome: 'unknown' } } })
    t.match(await askOn(pipe, 'tools/call', echo), echoed)
  }
  t.equal(program.pids().length, 4)
})

t.test('a client over HTTP+SSE keeps its stream when the server is restarted, or its program killed', async (t) => {
  const http = await RestartingServer.start(t, register)
  const front = await startBridge(t, { url: http.url })
  const client = await SseClient.open(front.url, '2025-11-25')
  const count = { name: 'count', arguments: {} }
  t.match(await client.request('tools/call', count), { result: { content: [{ text: '1.1' }] } })
  await http.restart()
  t.match(await client.request('tools/call', count), { result: { content: [{ text: /^2\./ }] } })

  const program = legacyStdio(t)
  const other = await SseClient.open((await startBridge(t, program.server)).url, '2025-11-25')
  t.match(await other.request('tools/call', { name: 'crash' }), { error: { data: { outcome: 'unknown' } } })
  t.match(await other.request('tools/call', echo), echoed)
})

t.test('a client on stdio continues when the stream of its HTTP+SSE server breaks', async (t) => {
  const sse = await LegacySse.start(t)
  const pipe = openPipe(t, { url: sse.url, transport: 'sse' })
  await shakeHands(pipe)
  const opened = () => sse.received.filter(({ message }) => message['method'] === 'initialize').length
  const before = opened()
  t.match(await askOn(pipe, 'tools/call', { name: 'crash' }), { error: { data: { outcome: 'unknown' } } })
  t.match(await askOn(pipe, 'tools/call', echo), echoed)
  t.equal(opened(), before + 1)
})

t.test('refuses another revision with the reason, and logs other differences', async (t) => {
  let forgotten = ''
  const now = { revision: '2025-06-18', capabilities: { tools: {} } }
  const server = await LegacyHttp.start(t, {
    sessions: true,
    get: 405,
    get revision() {
      return now.revision
    },
    get capabilities() {
      return now.capabilities
    },
    override: ({ headers, method }, response) => {
      if (forgotten === '' || headers['mcp-session-id'] !== forgotten || method === 'DELETE') return false
      response.writeHead(404).end()
      return true
    },
  })
  const pipe = openPipe(t, { url: server.url })
  await shakeHands(pipe, '2025-06-18')
  t.match(await askOn(pipe, 'tools/call', echo), echoed)
  forgotten = String(server.of('tools/call')[0]?.headers['mcp-session-id'])
  now.revision = '2024-11-05'
  const refused = { error: { code: -32603, message: /2024-11-05.*2025-06-18/, data: { outcome: 'not_executed' } } }
  t.match(await askOn(pipe, 'tools/call', echo), refused)
  t.match(await askOn(pipe, 'tools/call', echo), refused, 'each call says so')
  now.revision = '2025-06-18'
  Object.assign(now.capabilities, { prompts: {} })
  t.match(await askOn(pipe, 'tools/call', echo), echoed)
  const told = pipe.log.find(({ event }) => event === 'capabilities_changed')
  t.same(told?.['changed'], ['prompts'])
})

t.test('a session that is lost again before the call is sent is reported', async (t) => {
  let forgets = false
  const server = await LegacyHttp.start(t, {
    sessions: true,
    get: 405,
    override: ({ message }, response) => {
      if (!forgets || message['method'] !== 'tools/call') return false
      response.writeHead(404).end()
      return true
    },
  })
  const pipe = openPipe(t, { url: server.url })
  await shakeHands(pipe)
  forgets = true
  const refused = { error: { code: -32603, message: /lost the session twice/, data: { outcome: 'not_executed' } } }
  t.match(await askOn(pipe, 'tools/call', echo), refused)
  t.equal(server.of('tools/call').length, 2)
  forgets = false
  t.match(await askOn(pipe, 'tools/call', echo), echoed)
})

t.test('over Streamable HTTP the client gets 404, and opens another session itself', async (t) => {
  const http = await RestartingServer.start(t, register)
  const direct = await LegacyClient.open((await startBridge(t, { url: http.url })).url)
  await http.restart()
  t.equal((await direct.call('count')).status, 404)

  const program = legacyStdio(t)
  const inProgram = await LegacyClient.open((await startBridge(t, program.server)).url)
  await inProgram.call('crash')
  await until(async () => (await inProgram.call('echo')).status === 404, 'the end of the session')
  t.equal(program.pids().length, 1)
})
