/** What modern servers say that clients of the first SDK reject, and that they have to be able to take. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js'
import t, { type Test } from 'tap'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { LegacyClient } from '../support/legacy-client.js'
import { type HttpPlan, ModernHttp } from '../support/modern-http.js'
import { problems, type SchemaRevision } from '../support/schema.js'

type Json = Record<string, unknown>

const REVISIONS: SchemaRevision[] = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25']

/** Answers methods with results, in place of the script. */
function answering(results: Record<string, Json>): HttpPlan {
  return {
    override: ({ message }, response) => {
      const result = results[String(message?.['method'])]
      if (!result) return false
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(
        JSON.stringify({ jsonrpc: '2.0', id: message?.['id'], result: { resultType: 'complete', ...result } }),
      )
      return true
    },
  }
}

async function start(t: Test, plan: HttpPlan, settings: Json = {}) {
  const modern = await ModernHttp.start(t, plan)
  return { modern, ...(await startBridge(t, { url: modern.url }, settings)) }
}

async function connect(t: Test, url: string): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' })
  await client.connect(new StreamableHTTPClientTransport(new URL(url)) as Transport)
  t.teardown(() => client.close())
  return client
}

/** An answer to `server/discover` of which clients of the first SDK reject each part. */
const NASTY = {
  supportedVersions: ['2026-07-28'],
  capabilities: {
    tools: { listChanged: null },
    resources: { subscribe: 'yes', listChanged: true },
    completions: {},
    experimental: { good: {}, bad: null, worse: 7 },
    extensions: { 'com.example/good': { a: 1 }, 'com.example/bad': null },
  },
  instructions: null,
  serverInfo: {
    name: 'nasty',
    version: '1',
    title: null,
    description: 7,
    websiteUrl: 'https://example.com',
    icons: [{ src: 'data:,' }, { src: 7 }, { src: 'data:,', theme: 'blue' }],
  },
}

t.test("a server's description has a form that the client accepts", async (t) => {
  const { url } = await start(t, answering({ 'server/discover': NASTY }))
  const client = await connect(t, url)
  const info = { name: 'nasty', version: '1', websiteUrl: 'https://example.com', icons: [{ src: 'data:,' }] }
  t.same(client.getServerVersion(), info)
  t.same(client.getServerCapabilities(), {
    tools: {},
    resources: { listChanged: true },
    completions: {},
    experimental: { good: {} },
    extensions: { 'com.example/good': { a: 1 } },
  })
  for (const revision of REVISIONS) {
    const { result } = (await LegacyClient.open(url, { revision })).opened.message
    t.same(problems(revision, 'InitializeResult', result), [], revision)
    t.same((result as Json)['serverInfo'], info, revision)
  }
})

t.test("with strictness, a server's description has only members of the revision", async (t) => {
  const { url, log } = await start(t, answering({ 'server/discover': NASTY }), { compat: { strictRevisions: true } })
  const told = async (revision: string) => (await LegacyClient.open(url, { revision })).opened.message.result as Json
  const bare = { name: 'nasty', version: '1' }
  for (const revision of ['2024-11-05', '2025-03-26', '2025-06-18'])
    t.same((await told(revision))['serverInfo'], bare, revision)
  t.match((await told('2025-11-25'))['serverInfo'], { ...bare, websiteUrl: String, icons: [{ src: 'data:,' }] })
  t.notOk('completions' in ((await told('2024-11-05'))['capabilities'] as Json))
  t.ok('completions' in ((await told('2025-03-26'))['capabilities'] as Json))
  const old = await LegacyClient.open(url, { revision: '2024-11-05' })
  const about = { ref: { type: 'ref/prompt', name: 'greet' }, argument: { name: 'who', value: 'A' } }
  t.ok((await old.request('completion/complete', about)).message.result, 'the method came with prompts and resources')
  t.ok(log.some(({ feature, revision }) => feature === 'icons' && revision === '2024-11-05'))
})

t.test('a notification of a change has a form that the client accepts', async (t) => {
  const notify = (method: string, params: Json) => `data: ${JSON.stringify({ jsonrpc: '2.0', method, params })}\n\n`
  const override: HttpPlan['override'] = ({ message }, response) => {
    if (message?.['method'] !== 'subscriptions/listen') return false
    const meta = { 'io.modelcontextprotocol/subscriptionId': message['id'] }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const notifications = { toolsListChanged: true }
    response.write(notify('notifications/subscriptions/acknowledged', { notifications, _meta: meta }))
    response.write(notify('notifications/tools/list_changed', { _meta: 7 as unknown }))
    return true
  }
  const { url } = await start(t, { override })
  const client = new Client({ name: 'test', version: '1' })
  let told = 0
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => {
    told++
  })
  await client.connect(new StreamableHTTPClientTransport(new URL(url)) as Transport)
  t.teardown(() => client.close())
  await until(() => told === 1, 'the change at the client')
})

t.test('the result of a task matches the listed schema of its tool', async (t) => {
  const outputSchema = { type: ['object', 'null'], properties: { a: { type: 'integer' } } }
  const tools = [{ name: 'either', inputSchema: { type: 'object' }, outputSchema }]
  const results = { 'tools/list': { tools }, 'tools/call': { content: [], structuredContent: { a: 1 } } }
  const { url } = await start(t, answering(results), { compat: { emulateTasks: true } })
  const client = await LegacyClient.open(url)
  await client.request('tools/list')
  const direct = (await client.call('either')).message.result
  t.same(direct?.['structuredContent'], { result: { a: 1 } })
  const created = await client.request('tools/call', { name: 'either', arguments: {}, task: {} })
  const { taskId } = created.message.result?.['task'] as Json
  const { _meta, ...result } = (await client.request('tasks/result', { taskId })).message.result ?? {}
  t.same(result, direct)
})

/** Answers `tools/call` with these, one after the other, and with the last from then on. */
function inTurn(results: Json[]): HttpPlan {
  let at = 0
  return {
    override: ({ message }, response) => {
      if (message?.['method'] !== 'tools/call') return false
      const result = results[Math.min(at++, results.length - 1)]
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ jsonrpc: '2.0', id: message['id'], result }))
      return true
    },
  }
}

const waiting = (requestState: string, more: Json = { inputRequests: {} }) => ({
  resultType: 'input_required',
  requestState,
  ...more,
})
const DONE = { resultType: 'complete', content: [{ type: 'text', text: 'done' }] }

t.test('a server that asks nothing is called again with its state, after a while', async (t) => {
  const waits = [waiting('a'), waiting('b', { inputRequests: null }), waiting('c', {})]
  const { url, modern } = await start(t, inTurn([...waits, DONE]))
  const client = await LegacyClient.open(url)
  const began = performance.now()
  const { messages, message } = await client.call('slow', { x: 1 })
  t.ok(performance.now() - began >= 1_700, 'it has waited 250, 500 and 1,000 ms')
  t.same(message.result, { content: DONE.content })
  t.equal(messages.length, 1, 'the client is not asked anything')
  const sent = modern.of('tools/call').map(({ message }) => message?.['params'] as Json)
  t.same(
    sent.map(({ requestState }) => requestState),
    [undefined, 'a', 'b', 'c'],
  )
  t.ok(sent.every((params) => !('inputResponses' in params)))
})

t.test('waits for it no longer than for a client that is asked', async (t) => {
  const { url, modern } = await start(t, inTurn([waiting('a')]), { timeouts: { answer: 1_000 } })
  const { message } = await (await LegacyClient.open(url)).call('slow')
  t.match(message.error, { code: -32603, data: { reason: 'upstream_timeout', outcome: 'unknown' } })
  t.equal(modern.of('tools/call').length, 3)
})

t.test('a server that gives no state either has asked nothing', async (t) => {
  const { url, modern } = await start(t, inTurn([{ resultType: 'input_required', inputRequests: {} }]))
  const { message } = await (await LegacyClient.open(url)).call('slow')
  t.match(message.error, { code: -32603, data: { reason: 'upstream_protocol_error' } })
  t.equal(modern.of('tools/call').length, 1)
})

t.test('a legacy client gets what a tool returns in place of blocks', async (t) => {
  for (const content of ['It is 3 degrees', { type: 'text', text: 'It is 3 degrees' }, ['It is 3 degrees']]) {
    const { url } = await start(t, answering({ 'tools/call': { content } as Json }))
    const client = await connect(t, url)
    const result = await client.callTool({ name: 'echo', arguments: {} })
    t.same(result.content, [{ type: 'text', text: 'It is 3 degrees' }], JSON.stringify(content))
  }
})

t.test('a legacy client is offered the lists that a modern server answers and does not declare', async (t) => {
  for (const capabilities of [{}, undefined, [], { tools: null }] as unknown[]) {
    const what = JSON.stringify(capabilities) ?? 'nothing'
    const { url, modern } = await start(t, answering({ 'server/discover': { ...NASTY, capabilities } as Json }))
    const client = await connect(t, url)
    t.match(client.getServerCapabilities(), { tools: {} }, what)
    t.match((await client.listTools()).tools[0], { name: String }, what)
    t.ok(modern.of('tools/list').length >= 2, what)
  }
})
