/** What a modern server sees of the requests of legacy clients. Numbers are those of test/invariants.md. */
import t, { type Test } from 'tap'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { besideTheQuestion, LegacyClient, type OpenOptions } from '../support/legacy-client.js'
import { CAPABILITIES, CLIENT_INFO, LOG_LEVEL, VERSION } from '../support/modern.js'
import { type Arrived, type HttpPlan, ModernHttp } from '../support/modern-http.js'
import { modernStdio } from '../support/modern-stdio.js'

type Json = Record<string, unknown>

async function start(t: Test, plan: HttpPlan = {}, options: OpenOptions = {}) {
  const modern = await ModernHttp.start(t, plan)
  const { url } = await startBridge(t, { url: modern.url })
  const client = await LegacyClient.open(url, options)
  const violations = () => besideTheQuestion(modern.violations())
  return { modern, client, violations }
}

const metaOf = (message: Json | undefined) => (message?.['params'] as { _meta: Json })._meta
const paramHeaders = ({ headers }: Arrived) =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith('mcp-param-')))

/** Everything that a client of a session asks of a server. */
const REQUESTS: [method: string, params: Json][] = [
  ['tools/list', {}],
  ['tools/call', { name: 'echo', arguments: { x: 1 } }],
  ['prompts/list', {}],
  ['prompts/get', { name: 'greet', arguments: { who: 'Ada' } }],
  ['resources/list', {}],
  ['resources/list', { cursor: 'page 2' }],
  ['resources/templates/list', {}],
  ['resources/read', { uri: 'test://item/ü' }],
  ['completion/complete', { ref: { type: 'ref/prompt', name: 'greet' }, argument: { name: 'who', value: 'A' } }],
  ['vendor/echo', { name: 'not a name' }],
]

t.test('every request has its envelope, and matching headers', async (t) => {
  for (const revision of ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25']) {
    const { modern, client, violations } = await start(t, {}, { revision })
    const listening = await client.listen()
    await until(() => modern.subscriptions === 1)
    for (const [method, params] of REQUESTS) {
      const { status, message } = await client.request(method, params)
      t.equal(status, 200, `${revision} ${method}`)
      t.ok(message.result, `${revision} ${method}`)
    }
    const sent = modern.received.filter(({ message }) => message && message['method'] !== 'initialize')
    t.equal(sent.length, REQUESTS.length + 2 + 1, 'the probe, the discovery, the subscription, and what was asked')
    for (const { method, headers, message } of sent) {
      const { [VERSION]: version, [CAPABILITIES]: capabilities, [CLIENT_INFO]: info } = metaOf(message)
      const name = `${revision} ${message?.['method']}`
      t.equal(method, 'POST', name)
      t.equal(version, '2026-07-28', name)
      t.match(headers, { 'mcp-protocol-version': '2026-07-28', 'mcp-method': message?.['method'] }, name)
      t.same(capabilities, {}, name)
      t.match(info, { name: message === sent[0]?.message ? 'mcp-bridge' : 'old' }, name)
      t.notOk('mcp-session-id' in headers || 'last-event-id' in headers, name)
      t.match(headers, { 'content-type': 'application/json', accept: /application\/json.*text\/event-stream/ }, name)
    }
    t.same(violations(), [], revision)
    listening.leave()
  }
})

t.test('the name in the header is the name in the body, in a form that survives', async (t) => {
  const { modern, client, violations } = await start(t)
  const names = [
    'greet',
    'größe',
    ' padded',
    'padded ',
    '=?base64?Z3JlZXQ=?=',
    '',
    'a\tb',
    '日本',
    'a\nb',
    'x'.repeat(500),
  ]
  for (const name of names) await client.request('prompts/get', { name })
  t.same(
    modern.of('prompts/get').map(({ headers }) => headers['mcp-name']),
    [
      'greet',
      '=?base64?Z3LDtsOfZQ==?=',
      '=?base64?IHBhZGRlZA==?=',
      '=?base64?cGFkZGVkIA==?=',
      '=?base64?PT9iYXNlNjQ/WjNKbFpYUT0/PQ==?=',
      '=?base64??=',
      'a\tb',
      '=?base64?5pel5pys?=',
      '=?base64?YQpi?=',
      'x'.repeat(500),
    ],
  )
  t.same(violations(), [])
})

t.test('refuses a request without the member that its header needs, without the server', async (t) => {
  const { modern, client } = await start(t)
  const before = modern.received.length
  const rows: [method: string, params: Json | undefined][] = [
    ['tools/call', undefined],
    ['tools/call', { arguments: {} }],
    ['tools/call', { name: 7 }],
    ['prompts/get', {}],
    ['resources/read', { name: 'x' }],
  ]
  for (const [method, params] of rows) {
    const answer = await client.request(method, params)
    t.match(answer, { status: 200, message: { error: { code: -32602 } } }, `${method} ${JSON.stringify(params)}`)
  }
  t.equal(modern.received.length, before)
})

t.test('the envelope describes the client as its initialize did, in terms of the modern era', async (t) => {
  const capabilities = {
    elicitation: {},
    sampling: { tools: {}, context: {} },
    roots: { listChanged: true },
    experimental: { x: { y: 1 } },
    tasks: { list: {} },
    extensions: { 'io.modelcontextprotocol/tasks': {}, 'com.example/z': { w: 1 } },
    unheardOf: {},
  }
  const clientInfo = { name: 'Ada', version: '2', title: 'T', icons: [{ src: 'https://x.example/i.png' }] }
  const { modern, client, violations } = await start(t, {}, { capabilities, clientInfo })
  await client.call('echo')
  const meta = metaOf(modern.of('tools/call')[0]?.message)
  t.same(meta[CLIENT_INFO], clientInfo)
  t.same(meta[CAPABILITIES], {
    elicitation: {},
    sampling: { tools: {}, context: {} },
    roots: {},
    experimental: { x: { y: 1 } },
    extensions: { 'com.example/z': { w: 1 } },
  })
  t.same(violations(), [])
})

t.test('ignores envelope members and headers of a client, and forwards vendor keys', async (t) => {
  const { modern, client, violations } = await start(t)
  const meta = {
    [VERSION]: '2099-01-01',
    [CAPABILITIES]: { sampling: {} },
    [CLIENT_INFO]: { name: 'somebody else', version: '0' },
    'io.modelcontextprotocol/related-task': { taskId: 't' },
    'io.modelcontextprotocol/model-immediate-response': 'soon',
    'io.modelcontextprotocol/ui': { x: 1 },
    'com.example/k': [1],
    traceparent: '00-1-2-03',
  }
  // The claim would make it a request of the other era: on Streamable HTTP the body decides.
  const { [VERSION]: _, ...rest } = meta
  const headers = { 'mcp-method': 'x', 'mcp-name': 'y', 'mcp-param-region': 'z', 'mcp-anything': 'w' }
  const params = { name: 'echo', arguments: {}, task: { ttl: 1 } }
  t.equal((await client.request('tools/call', params, { meta: rest, headers })).status, 200)
  const [sent] = modern.of('tools/call')
  t.same(metaOf(sent?.message), {
    'io.modelcontextprotocol/ui': { x: 1 },
    'com.example/k': [1],
    traceparent: '00-1-2-03',
    [VERSION]: '2026-07-28',
    [CLIENT_INFO]: { name: 'old', version: '1' },
    [CAPABILITIES]: {},
  })
  t.match(sent?.headers, { 'mcp-method': 'tools/call', 'mcp-name': 'echo' })
  t.notOk(sent && ('mcp-anything' in sent.headers || 'mcp-param-region' in sent.headers))
  t.notOk('task' in (sent?.message?.['params'] as Json))
  t.same(violations(), [])
})

t.test('distinguishes two sessions by what they declare, and by nothing else', async (t) => {
  const { modern, client } = await start(t)
  const other = await LegacyClient.open(client.url, { clientInfo: { name: 'other', version: '1' } })
  await Promise.all([client.call('echo', { n: 1 }), other.call('echo', { n: 2 })])
  const who = modern.of('tools/call').map(({ message }) => {
    const { arguments: args } = message?.['params'] as { arguments: { n: number } }
    return [args.n, (metaOf(message)[CLIENT_INFO] as { name: string }).name]
  })
  t.same(
    new Map(who as [number, string][]),
    new Map([
      [1, 'old'],
      [2, 'other'],
    ]),
  )
})

const REGION: [value: unknown, header: string | undefined][] = [
  ['us-west', 'us-west'],
  ['', '=?base64??='],
  ['größe', '=?base64?Z3LDtsOfZQ==?='],
  [' x', '=?base64?IHg=?='],
  ['x\t', '=?base64?eAk=?='],
  ['a\tb', 'a\tb'],
  ['=?base64?eA==?=', '=?base64?PT9iYXNlNjQ/ZUE9PT89?='],
  ['a\r\nx: y', '=?base64?YQ0KeDogeQ==?='],
  [null, undefined],
  [undefined, undefined],
]

async function listAll(client: LegacyClient): Promise<Json[]> {
  const tools: Json[] = []
  let cursor: unknown
  do {
    const { result = {} } = (await client.request('tools/list', cursor === undefined ? {} : { cursor })).message
    tools.push(...(result['tools'] as Json[]))
    cursor = result['nextCursor']
  } while (cursor !== undefined)
  return tools
}

t.test('mirrors arguments into headers where the tool requires it, in a form that survives', async (t) => {
  const { modern, client, violations } = await start(t)
  await listAll(client)
  for (const [region, header] of REGION) {
    t.equal((await client.call('mirrored', { region })).status, 200)
    t.same(paramHeaders(modern.received.at(-1) as Arrived), header === undefined ? {} : { 'mcp-param-region': header })
  }
  const all = { region: 'r', count: -42, urgent: false, place: { zone: 'z' }, other: 1 }
  t.match((await client.call('mirrored', all)).message, { result: {} })
  t.same(paramHeaders(modern.received.at(-1) as Arrived), {
    'mcp-param-region': 'r',
    'mcp-param-count': '-42',
    'mcp-param-urgent': 'false',
    'mcp-param-zone': 'z',
  })
  t.equal(modern.of('tools/list').length, 2, 'the tools are known from what the client has listed')
  t.same(violations(), [])
})

t.test('writes numbers as digits, and omits those that no header can hold', async (t) => {
  const { modern, client, violations } = await start(t)
  await listAll(client)
  const rows: [json: string, header: string | undefined][] = [
    ['42', '42'],
    ['42.0', '42'],
    ['1e2', '100'],
    ['0', '0'],
    ['9007199254740991', '9007199254740991'],
    ['9007199254740993', undefined],
    ['12345678901234567890', undefined],
    ['1.5', undefined],
    ['1e400', undefined],
  ]
  for (const [json, header] of rows) {
    const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"mirrored","arguments":{"count":${json}}}}`
    t.equal((await client.post(body)).status, 200)
    const sent = modern.received.at(-1) as Arrived
    t.equal(sent.headers['mcp-param-count'], header, json)
    t.ok(sent.body.includes(`"arguments":{"count":${json}}`), 'and the body says what the client said')
  }
  t.same(violations(), [])
})

t.test('on a pipe there are no headers, and no tools are listed for them', async (t) => {
  const modern = modernStdio(t)
  const { url } = await startBridge(t, modern.server)
  const client = await LegacyClient.open(url)
  t.match((await client.call('mirrored', { region: 'r' })).message, {
    result: { content: [{ text: '{"region":"r"}' }] },
  })
  const tools = await listAll(client)
  t.ok(
    tools.some(({ name }) => name === 'badly-mirrored'),
    'nor is anything wrong with any of them',
  )
  t.match((await client.call('badly-mirrored')).message, { result: {} })
})

t.test('omits a tool with wrong annotations of headers, and keeps the others', async (t) => {
  const { modern, client, violations } = await start(t)
  const tools = await listAll(client)
  const names = tools.map(({ name }) => name)
  t.notOk(names.includes('badly-mirrored'))
  for (const name of ['echo', 'ask', 'mirrored', 'task', 'anything']) t.ok(names.includes(name), name)
  const called = await client.call('badly-mirrored', { share: 1.5 })
  t.match(called, { status: 200, message: { error: { code: -32602 } } })
  t.equal(modern.of('tools/call').length, 0, 'and cannot be called')
  t.same(violations(), [])
})

const WRONG: [name: string, schema: object][] = [
  ['an empty name', { type: 'object', properties: { a: { type: 'string', 'x-mcp-header': '' } } }],
  ['a name with a space', { type: 'object', properties: { a: { type: 'string', 'x-mcp-header': 'a b' } } }],
  ['a line break', { type: 'object', properties: { a: { type: 'string', 'x-mcp-header': 'a\r\nb' } } }],
  ['no string', { type: 'object', properties: { a: { type: 'string', 'x-mcp-header': true } } }],
  ['a number', { type: 'object', properties: { a: { type: 'number', 'x-mcp-header': 'A' } } }],
  ['several types', { type: 'object', properties: { a: { type: ['string', 'null'], 'x-mcp-header': 'A' } } }],
  ['an object', { type: 'object', properties: { a: { type: 'object', 'x-mcp-header': 'A' } } }],
  [
    'a name twice, in another case',
    {
      type: 'object',
      properties: { a: { type: 'string', 'x-mcp-header': 'A' }, b: { type: 'string', 'x-mcp-header': 'a' } },
    },
  ],
  [
    'something in a list',
    { type: 'object', properties: { a: { type: 'array', items: { type: 'string', 'x-mcp-header': 'A' } } } },
  ],
  [
    'something in a choice',
    { type: 'object', anyOf: [{ properties: { a: { type: 'string', 'x-mcp-header': 'A' } } }] },
  ],
]

t.test('omits a tool with any invalid annotation', async (t) => {
  const tools = [
    ...WRONG.map(([name, inputSchema]) => ({ name, inputSchema })),
    { name: 'sound', inputSchema: { type: 'object', properties: { a: { type: 'boolean', 'x-mcp-header': 'A-b.c' } } } },
  ]
  const { client } = await start(t, {
    override: ({ message }, response) => {
      if (message?.['method'] !== 'tools/list') return false
      const result = { resultType: 'complete', tools, ttlMs: 0, cacheScope: 'private' }
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ jsonrpc: '2.0', id: message['id'], result }))
      return true
    },
  })
  const listed = (await client.request('tools/list')).message.result?.['tools'] as Json[]
  t.same(
    listed.map(({ name }) => name),
    ['sound'],
  )
})

t.test('lists an unlisted tool before its first call, once', async (t) => {
  const { modern, client, violations } = await start(t, { pages: 1 })
  const answer = await client.call('mirrored', { region: 'r', count: 1 })
  t.match(answer, { status: 200, message: { result: { content: [{ text: '{"region":"r","count":1}' }] } } })
  const asked = modern.received.map(({ message }) => message?.['method']).slice(-2)
  t.same(asked, ['tools/list', 'tools/call'])
  const [only] = modern.of('tools/call') as [Arrived]
  t.same(paramHeaders(only), { 'mcp-param-region': 'r', 'mcp-param-count': '1' })
  await client.call('mirrored', { region: 'r' })
  t.equal(modern.of('tools/list').length, 1, 'from then on it is known')
  t.equal(modern.of('tools/call').length, 2)
  t.same(violations(), [])
})

t.test('reads all pages to find it', async (t) => {
  const { modern, client } = await start(t)
  t.match((await client.call('mirrored', { urgent: true })).message, { result: {} })
  t.equal(modern.of('tools/list').length, 2)
  t.match(modern.of('tools/list')[1]?.message, { params: { cursor: 'page 2' } })
})

t.test('lists a tool again that has changed since', async (t) => {
  const { modern, client } = await start(t, { refuseUntilListed: true, pages: 1 })
  await listAll(client)
  t.match((await client.call('mirrored', { region: 'r' })).message, { result: {} })
  modern.forgetLists()
  t.match((await client.call('mirrored', { region: 'r' })).message, { result: {} })
  t.equal(modern.of('tools/list').length, 2)
  t.equal(modern.of('tools/call').length, 3)
})

t.test('does not repeat a request a second time for a missing header', async (t) => {
  const override: HttpPlan['override'] = ({ message }, response) => {
    if (message?.['method'] !== 'tools/call') return false
    const error = { code: -32020, message: 'Header mismatch' }
    response.writeHead(400, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ jsonrpc: '2.0', id: message['id'], error }))
    return true
  }
  const { modern, client } = await start(t, { override, pages: 1 })
  t.match(await client.call('mirrored', { region: 'r' }), { status: 200, message: { error: { code: -32603 } } })
  t.equal(modern.of('tools/call').length, 2)
  t.equal(modern.of('tools/list').length, 2, 'before the first call, and after it')
})

t.test('sends no level until the client has set one, and then with every request', async (t) => {
  const { modern, client, violations } = await start(t)
  const levels = () => modern.of('tools/call').map(({ message }) => metaOf(message)[LOG_LEVEL])
  const said = async () =>
    (await client.call('log')).messages.flatMap(({ params }) => (params as { level?: string } | undefined)?.level ?? [])
  t.same(await said(), [])
  t.same(levels(), [undefined])
  t.equal((await client.request('logging/setLevel', { level: 'warning' })).status, 200)
  t.same(await said(), ['warning', 'error'])
  await client.request('logging/setLevel', { level: 'debug' })
  t.same(await said(), ['debug', 'warning', 'error'])
  await client.request('logging/setLevel', { level: 'loud' })
  await said()
  t.same(levels(), [undefined, 'warning', 'debug', 'debug'])
  await client.request('prompts/list')
  t.equal(metaOf(modern.of('prompts/list')[0]?.message)[LOG_LEVEL], 'debug')
  const other = await LegacyClient.open(client.url)
  await other.call('log')
  t.equal(levels().at(-1), undefined, 'and only in that session')
  t.equal(modern.of('logging/setLevel').length, 0)
  t.same(violations(), [])
})

t.test('messages that were not requested do not reach the client', async (t) => {
  const { client } = await start(t)
  const levels = async () =>
    (await client.call('log', { regardless: true })).messages.flatMap(
      ({ params }) => (params as { level?: string } | undefined)?.level ?? [],
    )
  t.same(await levels(), [])
  await client.request('logging/setLevel', { level: 'error' })
  t.same(await levels(), ['error'])
})

t.test('forwards notifications of an extension in an envelope, and none of the session', async (t) => {
  const { modern, client } = await start(t)
  for (const method of ['notifications/initialized', 'notifications/roots/list_changed', 'notifications/progress'])
    await client.notify(method)
  await client.notify('notifications/tasks/status', { taskId: 't', status: 'working' })
  await client.notify('notifications/vendor', { n: 1, _meta: { 'v/k': 2 } })
  await until(() => modern.of('notifications/vendor').length === 1)
  const [sent] = modern.of('notifications/vendor')
  t.match(sent?.headers, { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'notifications/vendor' })
  t.match(sent?.message?.['params'], { n: 1, _meta: { 'v/k': 2, [VERSION]: '2026-07-28' } })
  const others = modern.received.filter(({ message }) => String(message?.['method']).startsWith('notifications/'))
  t.equal(others.length, 1)
})
