/** The scripted modern server is what the tests of the bridge believe, so it is tested itself: what it says, and notes. */
import { spawn } from 'node:child_process'
import { Client, type ClientOptions, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import t, { type Test } from 'tap'
import { until } from '../support/eventually.js'
import {
  CAPABILITIES,
  CLIENT_INFO,
  call,
  envelope,
  headersFor,
  LOG_LEVEL,
  post,
  send,
  VERSION,
} from '../support/modern.js'
import { type HttpPlan, ModernHttp } from '../support/modern-http.js'
import { modernStdio } from '../support/modern-stdio.js'
import { problems } from '../support/schema.js'

type Json = Record<string, unknown>

const ALL = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} }
const TASKS = { extensions: { 'io.modelcontextprotocol/tasks': {} } }
const able = (capabilities: object) => ({ meta: { [CAPABILITIES]: capabilities } })
const tool = (name: string, args: object = {}) => ({ name, arguments: args })
const state = (answer: { message: { result?: Json } }) => answer.message.result?.['requestState'] as string

/** What breaks a rule: what is sent in place of a well-formed `tools/call`, and what comes of it. */
interface Row {
  rule: string
  status?: number
  code?: number
  params?: Json
  meta?: Json
  method?: string
  id?: unknown
  headers?: Record<string, string | string[] | undefined>
}

const mirrored = tool('mirrored', { region: 'eu', count: 2, urgent: true, place: { zone: 'ä' } })
const mirroring = {
  'mcp-param-region': 'eu',
  'mcp-param-count': '2',
  'mcp-param-urgent': 'true',
  'mcp-param-zone': '=?base64?w6Q=?=',
}

const rows: Row[] = [
  { rule: 'content-type', headers: { 'content-type': 'text/plain' }, status: 415, code: -32600 },
  { rule: 'accept', headers: { accept: 'application/json' }, status: 406, code: -32600 },
  { rule: 'session-header', headers: { 'mcp-session-id': 's' } },
  { rule: 'resumption-header', headers: { 'last-event-id': '1' } },
  { rule: 'message', id: 1.5, status: 400, code: -32600 },
  { rule: 'envelope', meta: { [VERSION]: undefined }, status: 400, code: -32602 },
  { rule: 'envelope', meta: { [CAPABILITIES]: undefined }, status: 400, code: -32602 },
  { rule: 'envelope', meta: { [CAPABILITIES]: { sampling: true } }, status: 400, code: -32602 },
  { rule: 'envelope', meta: { [CLIENT_INFO]: { name: 'x' } }, status: 400, code: -32602 },
  { rule: 'envelope', meta: { [LOG_LEVEL]: 'loud' }, status: 400, code: -32602 },
  { rule: 'envelope', meta: { progressToken: 1.5 }, status: 400, code: -32602 },
  { rule: 'client-info', meta: { [CLIENT_INFO]: undefined } },
  { rule: 'foreign-key', params: { ...tool('echo'), task: {} } },
  { rule: 'foreign-key', meta: { [CAPABILITIES]: { roots: { listChanged: true } } } },
  { rule: 'foreign-key', meta: { [CAPABILITIES]: { tasks: {} } } },
  { rule: 'version-header', headers: { 'mcp-protocol-version': undefined }, status: 400, code: -32020 },
  { rule: 'version-header', headers: { 'mcp-protocol-version': '2025-11-25' }, status: 400, code: -32020 },
  { rule: 'method-header', headers: { 'mcp-method': 'tools/list' }, status: 400, code: -32020 },
  { rule: 'name-header', headers: { 'mcp-name': undefined }, status: 400, code: -32020 },
  { rule: 'name-header', headers: { 'mcp-name': '=?base64?ZWNobw?=' }, status: 400, code: -32020 },
  {
    rule: 'version',
    meta: { [VERSION]: '2099-01-01' },
    headers: { 'mcp-protocol-version': '2099-01-01' },
    status: 400,
    code: -32022,
  },
  { rule: 'legacy-method', method: 'ping', params: {}, status: 404, code: -32601 },
  { rule: 'legacy-method', method: 'initialize', params: {}, status: 404, code: -32601 },
  { rule: 'legacy-method', method: 'resources/subscribe', params: { uri: 'test://static' }, status: 404, code: -32601 },
  { rule: 'param-header', params: mirrored, status: 400, code: -32020 },
  {
    rule: 'param-header',
    params: mirrored,
    headers: { ...mirroring, 'mcp-param-count': '2.0' },
    status: 400,
    code: -32020,
  },
  {
    rule: 'param-header',
    params: mirrored,
    headers: { ...mirroring, 'mcp-param-zone': '=?base64?w6Q?=' },
    status: 400,
    code: -32020,
  },
  { rule: 'param-header-unasked', params: tool('mirrored', { region: null }), headers: { 'mcp-param-region': 'null' } },
  { rule: 'dropped-tool', params: tool('badly-mirrored') },
  { rule: 'schema', params: { ...tool('echo'), arguments: [] } },
]

t.test('records mistakes of a client, and refuses those that must be refused', async (t) => {
  for (const { rule, status = 200, code, method = 'tools/call', params = tool('echo'), ...rest } of rows) {
    const modern = await ModernHttp.start(t)
    await listAll(modern)
    const answer = await call(modern.url, method, params, rest)
    const what = `${rule}: ${JSON.stringify({ method, params, ...rest })}`
    t.same([answer.status, answer.message.error?.code], [status, code], what)
    t.same([...new Set(modern.violations().map((violation) => violation.rule))], [rule], what)
  }
})

t.test('refuses a request that is not modern', async (t) => {
  const modern = await ModernHttp.start(t)
  const headers = headersFor('tools/list')
  const handshake = { jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25' } }
  const bodies: [string, number, number, string][] = [
    ['{', 400, -32700, 'json'],
    ['[]', 400, -32600, 'message'],
    ['null', 400, -32600, 'message'],
    ['{"jsonrpc":"2.0","id":1,"result":{}}', 400, -32600, 'message'],
    [JSON.stringify(handshake), 400, -32022, 'handshake'],
  ]
  for (const [body, status, code, rule] of bodies) {
    const answer = await post(modern.url, body, headers)
    t.same([answer.status, answer.message.error?.code], [status, code], body)
    t.equal(modern.violations().filter((violation) => violation.rule === rule).length > 0, true, rule)
  }
  const cancelled = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } }
  t.equal((await post(modern.url, JSON.stringify(cancelled), headers)).status, 202)
  t.match(modern.violations().at(-1), { rule: 'notification' })
  for (const method of ['GET', 'DELETE']) {
    t.equal((await send(method, modern.url, undefined, headers)).status, 405)
    t.match(modern.violations().at(-1), { rule: 'http-method' })
  }
})

t.test('answers well-formed requests as the specification says', async (t) => {
  const modern = await ModernHttp.start(t)
  const requests: [string, string, Json][] = [
    ['server/discover', 'DiscoverResult', {}],
    ['prompts/list', 'ListPromptsResult', { cursor: 'page 2' }],
    ['resources/list', 'ListResourcesResult', {}],
    ['resources/templates/list', 'ListResourceTemplatesResult', {}],
    ['resources/read', 'ReadResourceResult', { uri: 'test://static' }],
    ['prompts/get', 'GetPromptResult', { name: 'greet', arguments: { who: 'Ada' } }],
    [
      'completion/complete',
      'CompleteResult',
      { ref: { type: 'ref/prompt', name: 'greet' }, argument: { name: 'who', value: 'A' } },
    ],
    ...['echo', 'array', 'uncompilable', 'untitled', 'contents', 'touch', 'fail'].map(
      (name): [string, string, Json] => ['tools/call', 'CallToolResult', tool(name)],
    ),
    ...['ask-name', 'ask-page', 'ask-model', 'ask-roots', 'ask-two', 'ask-later'].map(
      (name): [string, string, Json] => ['tools/call', 'InputRequiredResult', tool(name)],
    ),
  ]
  for (const [method, definition, params] of requests) {
    const { status, message } = await call(modern.url, method, params, able(ALL))
    t.equal(status, 200, JSON.stringify(params))
    t.same(problems('2026-07-28', definition, message.result), [], `${method} ${JSON.stringify(params)}`)
  }
  const missing = await call(modern.url, 'resources/read', { uri: 'test://missing' })
  t.match(missing, { status: 200, message: { error: { code: -32602, data: { uri: 'test://missing' } } } })
  t.equal((await call(modern.url, 'no/such')).status, 404)
  t.same(modern.violations(), [])
})

t.test('returns arguments and vendor keys of _meta unchanged', async (t) => {
  const modern = await ModernHttp.start(t)
  const args = '{"n":12345678901234567890,"x":1.0,"b":1,"2":2,"e":"\\u00e9"}'
  const meta = JSON.stringify(envelope({ 'com.example/trace': { deep: [1] } }))
  const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":${args},"_meta":${meta}}}`
  const { text, message } = await post(modern.url, body, headersFor('tools/call', { name: 'echo' }))
  t.ok(text.includes(`"structuredContent":${args}`))
  t.match(message, { result: { content: [{ text: args }], _meta: { 'com.example/trace': { deep: [1] } } } })
  t.equal(modern.received[0]?.bytes.toString(), body)
})

t.test('decodes and checks headers of mirrored parameters', async (t) => {
  const modern = await ModernHttp.start(t)
  const refused = await call(modern.url, 'tools/call', mirrored)
  t.match(refused, { status: 400, message: { error: { code: -32020 } } })
  t.same(modern.violations(), [], 'who has not listed the tools cannot know')
  await listAll(modern)
  t.equal((await call(modern.url, 'tools/call', mirrored, { headers: mirroring })).status, 200)
  t.same(modern.violations(), [])
})

t.test('answers questions in any number of rounds, only as they were asked', async (t) => {
  const modern = await ModernHttp.start(t)
  const name = { action: 'accept', content: { name: 'Ada' } }
  const model = { role: 'assistant', model: 'm', content: { type: 'text', text: 'Paris' } }
  const roots = { roots: [{ uri: 'file:///a' }] }
  const given: Json = { name, model, roots }
  for (const asking of ['ask-name', 'ask-model', 'ask-roots', 'ask-two', 'ask-thrice', 'ask-later', 'ask-stateless']) {
    let answer = await call(modern.url, 'tools/call', tool(asking), able(ALL))
    for (let id = 2; answer.message.result?.['resultType'] === 'input_required'; id++) {
      const { inputRequests, requestState } = answer.message.result as { inputRequests?: Json; requestState?: string }
      const keys = Object.keys(inputRequests ?? {})
      const answers = { inputResponses: Object.fromEntries(keys.map((key) => [key, given[key]])) }
      const retry = { ...tool(asking), ...(inputRequests && answers), ...(requestState && { requestState }) }
      answer = await call(modern.url, 'tools/call', retry, { ...able(ALL), id })
    }
    t.match(answer.message.result, { resultType: 'complete' }, asking)
  }
  t.same(modern.violations(), [])

  const first = await call(modern.url, 'tools/call', tool('ask-name'), able(ALL))
  const again = { ...tool('ask-name'), requestState: state(first), inputResponses: { name } }
  const wrong: [string, Json, unknown, number | undefined][] = [
    ['the same id', again, 1, undefined],
    ['another state', { ...again, requestState: 'x' }, 2, -32602],
    ['no state', { ...again, requestState: undefined }, 3, -32602],
    ['another call', { ...again, arguments: { other: 1 } }, 4, -32602],
    ['no answer', { ...again, inputResponses: {} }, 5, undefined],
    ['an answer to nothing', { ...again, inputResponses: { name, other: name } }, 6, undefined],
    ['an answer of another kind', { ...again, inputResponses: { name: roots } }, 7, -32602],
  ]
  for (const [what, params, id, code] of wrong) {
    const before = modern.violations().length
    const { message } = await call(modern.url, 'tools/call', params, { ...able(ALL), id })
    t.equal(message.error?.code, code, what)
    t.equal(modern.violations().length, before + 1, what)
  }
  const incapable = await call(modern.url, 'tools/call', tool('ask-model'), able({ elicitation: {} }))
  t.match(incapable, {
    status: 400,
    message: { error: { code: -32021, data: { requiredCapabilities: { sampling: {} } } } },
  })
})

t.test('tasks progress when they are polled, for clients that know them', async (t) => {
  const modern = await ModernHttp.start(t)
  const refused = await call(modern.url, 'tools/call', tool('task'))
  t.match(refused, { status: 400, message: { error: { code: -32021, data: { requiredCapabilities: TASKS } } } })
  const question = { method: 'elicitation/create', params: { message: '?', requestedSchema: { type: 'object' } } }
  const made = await call(modern.url, 'tools/call', tool('task', { ask: { q: question }, say: 'well' }), able(TASKS))
  t.match(made.message.result, { resultType: 'task', status: 'working', ttlMs: 60_000, pollIntervalMs: 10 })
  const { taskId } = made.message.result as { taskId: string }
  const status = async () => (await call(modern.url, 'tasks/get', { taskId }, able(TASKS))).message.result
  t.match(await status(), { status: 'working' })
  t.match(await status(), { status: 'input_required', inputRequests: { q: question } })
  await call(modern.url, 'tasks/update', { taskId, inputResponses: { q: { action: 'cancel' } } }, able(TASKS))
  t.match(await status(), { status: 'completed', result: { content: [{ text: 'well' }] } })
  const unknown = await call(modern.url, 'tasks/cancel', { taskId: 'none' }, able(TASKS))
  t.match(unknown.message.error, { code: -32602 })
  t.same(modern.violations(), [])
})

t.test('sends logs of the requested level, and progress with a token', async (t) => {
  const modern = await ModernHttp.start(t)
  const levels = async (meta: Json) => {
    const { messages } = await call(modern.url, 'tools/call', tool('log'), { meta })
    return messages.flatMap(({ params }) => (params as { level?: string } | undefined)?.level ?? [])
  }
  t.same(await levels({}), [])
  t.same(await levels({ [LOG_LEVEL]: 'warning' }), ['warning', 'error'])
  const { messages } = await call(modern.url, 'tools/call', tool('progress'), { meta: { progressToken: 'p' } })
  t.match(
    messages.slice(0, -1),
    [1, 2, 3, 4, 5].map((progress) => ({ params: { progressToken: 'p', progress } })),
  )
  t.equal((await call(modern.url, 'tools/call', tool('progress'))).messages.length, 1)
})

t.test('sends subscriptions what they requested, until they end', async (t) => {
  const modern = await ModernHttp.start(t, {
    capabilities: { tools: { listChanged: true }, resources: { subscribe: true } },
  })
  const notifications = { toolsListChanged: true, promptsListChanged: true, resourceSubscriptions: ['test://static'] }
  const listening = call(modern.url, 'subscriptions/listen', { notifications }, { id: 'l' })
  await until(() => modern.subscriptions === 1)
  await call(
    modern.url,
    'tools/call',
    tool('touch', { tools: true, prompts: true, uris: ['test://static', 'test://ask'] }),
  )
  modern.touch({ end: true })
  const _meta = { 'io.modelcontextprotocol/subscriptionId': 'l' }
  const { toolsListChanged, resourceSubscriptions } = notifications
  const { messages } = await listening
  t.match(messages, [
    {
      method: 'notifications/subscriptions/acknowledged',
      params: { _meta, notifications: { toolsListChanged, resourceSubscriptions } },
    },
    { method: 'notifications/tools/list_changed', params: { _meta } },
    { method: 'notifications/resources/updated', params: { _meta, uri: 'test://static' } },
    { id: 'l', result: { resultType: 'complete', _meta } },
  ])
  t.equal(messages.length, 4)
  t.equal(modern.subscriptions, 0)
  t.same(modern.violations(), [])
})

t.test('records mistakes in lines, too', async (t) => {
  const modern = modernStdio(t)
  const child = spawn(modern.server.command, modern.server.args)
  t.teardown(() => child.kill())
  let said = ''
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    said += chunk
  })
  const line = (message: unknown) =>
    child.stdin.write(`${typeof message === 'string' ? message : JSON.stringify(message)}\n`)
  const request = (id: unknown, params: object, meta: Json = {}) =>
    line({ jsonrpc: '2.0', id, method: 'tools/call', params: { ...params, _meta: envelope(meta) } })
  const cancel = (requestId: unknown) =>
    line({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId } })
  request(1, tool('wait', { ms: 60_000 }), { progressToken: 'p' })
  request(1, tool('echo'))
  request(2, tool('echo'), { progressToken: 'p' })
  cancel(1)
  cancel(9)
  line({ jsonrpc: '2.0', id: 3, result: {} })
  line('{')
  line({ jsonrpc: '2.0', method: 'notifications/initialized' })
  line({ jsonrpc: '2.0', id: 4, method: 'initialize', params: { protocolVersion: '2025-11-25' } })
  await until(() => said.includes('"id":4'), 'an answer to the last line')
  t.same(
    modern.violations().map(({ rule }) => rule),
    ['id', 'progress-token', 'notification', 'message', 'json', 'notification', 'handshake'],
  )
  t.same(modern.cancelled(), [1, 9])
})

t.test('a request whose stream is closed is cancelled, and gets nothing more', async (t) => {
  const modern = await ModernHttp.start(t)
  const stop = new AbortController()
  const gone = call(modern.url, 'tools/call', tool('wait', { ms: 60_000 }), { signal: stop.signal })
  await until(() => modern.received.length === 1)
  stop.abort()
  await t.rejects(gone)
  await until(() => modern.cancelled.length === 1)
})

t.test('plans change how the server answers', async (t) => {
  const discovered = async (plan: HttpPlan) => {
    const modern = await ModernHttp.start(t, plan)
    return call(modern.url, 'server/discover')
  }
  t.match((await discovered({ serverInfo: 'body' })).message.result, { serverInfo: { name: 'scripted' } })
  t.match((await discovered({ capabilities: { tools: {} } })).message.result, { capabilities: { tools: {} } })
  t.match((await discovered({ answers: 'sse' })).headers, { 'content-type': 'text/event-stream' })
  const [quiet, refusing, empty, changed] = await Promise.all([
    ModernHttp.start(t, { silentDiscovers: 1 }),
    ModernHttp.start(t, { listen: 'refused' }),
    ModernHttp.start(t, { listen: 'empty' }),
    ModernHttp.start(t, { refuseUntilListed: true }),
  ])
  const leaving = new AbortController()
  const unanswered = call(quiet.url, 'server/discover', {}, { signal: leaving.signal })
  await until(() => quiet.received.length === 1, 'the request at the server')
  leaving.abort()
  await t.rejects(unanswered)
  t.equal((await call(quiet.url, 'server/discover')).status, 200)
  const filter = { notifications: { toolsListChanged: true } }
  t.equal((await call(refusing.url, 'subscriptions/listen', filter)).status, 404)
  t.match((await call(empty.url, 'subscriptions/listen', filter)).messages, [
    { method: 'notifications/subscriptions/acknowledged', params: { notifications: {} } },
    { id: 1, result: { resultType: 'complete' } },
  ])
  t.equal((await call(changed.url, 'tools/call', mirrored, { headers: mirroring })).status, 400)
  await listAll(changed)
  t.equal((await call(changed.url, 'tools/call', mirrored, { headers: mirroring })).status, 200)
  for (const modern of [quiet, refusing, empty, changed]) t.same(modern.violations(), [])
})

for (const dual of ['session', 'sessionless'] as const) {
  t.test(`a server of both eras answers legacy clients, ${dual}`, async (t) => {
    const modern = await ModernHttp.start(t, { dual })
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'old', version: '1' } }
    const handshake = { jsonrpc: '2.0', id: 1, method: 'initialize', params }
    const opened = await post(modern.url, JSON.stringify(handshake), {})
    t.match(opened.message.result, { protocolVersion: '2025-11-25' })
    const session = opened.headers['mcp-session-id']
    t.equal(session !== undefined, dual === 'session')
    const list = JSON.stringify({ jsonrpc: '2.0', id: 2, method: 'tools/list' })
    t.equal((await post(modern.url, list, { 'mcp-session-id': session })).status, 200)
    t.equal((await post(modern.url, list, {})).status, dual === 'session' ? 400 : 200)
    t.equal((await call(modern.url, 'tools/list')).status, 200)
    t.same(
      modern.received.map(({ era }) => era),
      ['legacy', 'legacy', 'legacy', 'modern'],
    )
    t.same(modern.violations(), [])
  })
}

const transports = {
  HTTP: async (t: Test) => {
    const modern = await ModernHttp.start(t)
    const transport = new StreamableHTTPClientTransport(new URL(modern.url))
    const messages = () => modern.received.map(({ message }) => message ?? {})
    return { transport, messages, violations: () => modern.violations(), cancelled: () => modern.cancelled.length }
  },
  stdio: async (t: Test) => {
    const modern = modernStdio(t)
    const transport = new StdioClientTransport(modern.server)
    const { messages, violations } = modern
    return { transport, messages, violations, cancelled: () => modern.cancelled().length }
  },
}

for (const [name, start] of Object.entries(transports)) {
  t.test(`the client of the SDK makes no mistakes over ${name}`, async (t) => {
    const { transport, messages, violations, cancelled } = await start(t)
    const options: ClientOptions = { capabilities: ALL, versionNegotiation: { mode: 'auto' } }
    const client = new Client({ name: 'test', version: '1' }, options)
    client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { name: 'Ada' } }))
    client.setRequestHandler('sampling/createMessage', () => ({
      role: 'assistant',
      model: 'm',
      content: { type: 'text', text: 'Paris' },
    }))
    client.setRequestHandler('roots/list', () => ({ roots: [{ uri: 'file:///a' }] }))
    await client.connect(transport)
    t.teardown(() => client.close())

    await client.listPrompts()
    await client.getPrompt({ name: 'ask' })
    await client.readResource({ uri: 'test://ask' })
    for (const asking of ['ask-thrice', 'ask-two', 'ask-later', 'ask-stateless']) {
      t.match(await client.callTool({ name: asking, arguments: {} }), { content: [{ type: 'text' }] }, asking)
    }
    await client.callTool({ name: 'progress', arguments: {} }, { onprogress: () => {} })
    const stop = new AbortController()
    const waiting = client.callTool({ name: 'wait', arguments: { ms: 60_000 } }, { signal: stop.signal })
    const called = () => messages().some(({ params }) => (params as { name?: string } | undefined)?.name === 'wait')
    await until(called, 'the call at the server')
    stop.abort()
    await t.rejects(waiting)
    await until(() => cancelled() === 1, 'the cancellation')
    t.same(violations(), [])
  })
}

/** Walks through the list of tools, so that whoever asks next is known to have seen it. */
async function listAll(modern: ModernHttp): Promise<void> {
  await call(modern.url, 'tools/list')
  await call(modern.url, 'tools/list', { cursor: 'page 2' })
}
