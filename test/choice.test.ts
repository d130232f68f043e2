/**
 * Somebody who wants through: a client that knows of tools, prompts and resources which the configuration hides, between
 * each client and a server (support/choice-pairs.ts). Nothing that it sends may name them at the server.
 */
import t from 'tap'
import { parseSettings } from '../src/config/settings.js'
import { CLIENTS, connect } from './matrix/clients.js'
import { nameOf } from './matrix/run.js'
import { SERVERS } from './matrix/servers.js'
import type { Json } from './matrix/wire.js'
import { startBridge } from './support/bridge.js'
import { testChoice } from './support/choice-pairs.js'
import { until } from './support/eventually.js'
import { initialize, LegacyClient } from './support/legacy-client.js'
import { LegacyHttp } from './support/legacy-http.js'
import { call, envelope, headersFor, post } from './support/modern.js'
import { ModernHttp } from './support/modern-http.js'
import { openPipe } from './support/pipe.js'
import { SseClient } from './support/sse-client.js'

testChoice(t, 'some')

t.test('a list that the bridge reads for itself has an id of its own in the session of a client', async (t) => {
  for (const [i, serverKind] of SERVERS.entries()) {
    const server = await serverKind.start(t)
    const bridge = await startBridge(t, { ...server.entry, scopes: { act: ['x'] } })
    for (const clientKind of CLIENTS) {
      const client = connect(clientKind, bridge)
      await client.open()
      t.ok((await client.call('tools/call', { name: 'mirrored', arguments: {} })).message['result'], `${i}`)
      await client.close()
    }
    t.same(server.complaints(), [], nameOf(serverKind))
  }
})

const SHOWN = { tools: { allow: ['echo', 'mirrored', 'task', 'touch'], deny: ['act'], override: {} } }

t.test('a header that differs from the body bypasses no choice', async (t) => {
  const server = await ModernHttp.start(t)
  const { url } = await startBridge(t, { url: server.url, ...SHOWN })
  const body = (name: string) =>
    JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: {}, _meta: envelope() } })
  const tried: [name: string, header: string | string[] | undefined][] = [
    ['act', 'echo'],
    ['act', '=?base64?ZWNobw==?='],
    ['act', ['echo', 'act']],
    ['act', 'act'],
    ['act', '=?base64?YWN0?='],
    ['act', undefined],
    ['echo', 'act'],
  ]
  for (const [name, header] of tried) {
    const answer = await post(url, body(name), { ...headersFor('tools/call', { name }), 'mcp-name': header })
    t.ok(answer.message.error, `${name} ${String(header)}`)
  }
  for (const method of ['tools/list', 'Tools/Call', 'resources/read']) {
    const headers = { ...headersFor('tools/call', { name: 'act' }), 'mcp-method': method }
    t.ok((await post(url, body('act'), headers)).message.error, method)
  }
  t.same(server.of('tools/call'), [])
})

t.test('a header cannot change a fixed argument', async (t) => {
  const server = await ModernHttp.start(t)
  const override = { mirrored: { name: 'here', set: { region: 'eu' } } }
  const { url } = await startBridge(t, { url: server.url, tools: { override } })
  const args = { name: 'here', arguments: { count: 2 } }
  const evil = { 'mcp-param-region': 'us', 'mcp-param-count': '2' }
  t.match((await call(url, 'tools/call', args, { headers: evil })).message, { result: {} })
  t.match((await call(url, 'tools/call', args, { headers: { 'mcp-param-count': '2' } })).message, { result: {} })
  t.match((await call(url, 'tools/call', args)).message, { error: {} }, 'the others still have to be mirrored')
  const legacy = await LegacyClient.open(url)
  t.match((await legacy.call('here', { count: 2 })).message, { result: {} })
  const sent = server.of('tools/call').map(({ headers }) => [headers['mcp-name'], headers['mcp-param-region']])
  t.ok(
    sent.every(([name, region]) => name === 'mirrored' && region === 'eu'),
    JSON.stringify(sent),
  )
  t.notMatch(JSON.stringify(server.violations()), /region/i)
})

const callText = (id: number, name: string, meta?: Json) =>
  JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: {}, _meta: meta } })
const BATCH = `[${[callText(1, 'echo'), callText(2, 'act'), callText(3, 'ACT')].join(',')}]`
const codes = (answers: Json[]) =>
  answers.map(({ id, error }) => [id, (error as Json | undefined)?.['code']]).sort(([a], [b]) => Number(a) - Number(b))
const CHECKED = [
  [1, undefined],
  [2, -32602],
  [3, -32602],
]

t.test('checks each message of a batch', async (t) => {
  const server = await LegacyHttp.start(t)
  const { url } = await startBridge(t, { url: server.url, ...SHOWN })
  const client = await LegacyClient.open(url, { revision: '2025-03-26' })
  t.same(codes(JSON.parse((await client.post(BATCH)).text) as Json[]), CHECKED)
  const stream = await SseClient.open(url, '2025-03-26')
  await stream.post(BATCH)
  const come = () => stream.messages.flat().filter(({ id }) => typeof id === 'number')
  await until(() => come().length === 3, 'the answers')
  t.same(codes(come()), CHECKED)
  const pipe = openPipe(t, { url: server.url, ...SHOWN })
  pipe.line(initialize('2025-03-26'))
  await until(() => pipe.messages().length === 1, 'the handshake')
  pipe.line(BATCH)
  const said = () => pipe.messages().slice(1).flat() as Json[]
  await until(() => said().length === 3, 'the answers')
  t.same(codes(said()), CHECKED)
  const modern = await post(url, `[${callText(1, 'echo', envelope())},${callText(2, 'act', envelope())}]`, {
    ...headersFor('tools/call', { name: 'echo' }),
  })
  t.ok(modern.message.error, 'modern clients have no batches')
  t.notMatch(server.received.map(({ body }) => body).join('\n'), /"act"/i)
})

t.test('an ambiguous or malformed message bypasses no choice', async (t) => {
  const servers = [await ModernHttp.start(t), await LegacyHttp.start(t)]
  const act = (meta?: Json) => JSON.stringify({ name: 'act', arguments: {}, _meta: meta })
  const say = (meta?: Json) => JSON.stringify({ name: 'echo', arguments: {}, _meta: meta })
  const bodies = (meta?: Json) => [
    `"method":"tools/call","params":${say(meta)},"params":${act(meta)}`,
    `"method":"tools/call","params":${act(meta)},"params":${say(meta)}`,
    `"method":"tools/call","params":${say(meta)},"Params":${act(meta)}`,
    `"method":"tools/call","PARAMS":${act(meta)},"params":${say(meta)}`,
    `"method":"tools/call","params":${say(meta)},"\\u0070arams":${act(meta)}`,
    `"method":"tools/list","method":"tools/call","params":${act(meta)}`,
    `"method":"tools/call","method":"tools/list","params":${act(meta)}`,
    `"method":"tools/list","Method":"tools/call","params":${act(meta)}`,
    `"method":"tools\\/call","params":${act(meta)}`,
    `"method":"tools/call","params":[${act(meta)}]`,
    `"method":"tools/call","params":${act(meta)},"result":{}`,
    `"id":null,"method":"tools/call","params":${act(meta)}`,
  ]
  for (const { url: at } of servers) {
    const { url } = await startBridge(t, { url: at, ...SHOWN })
    const legacy = await LegacyClient.open(url)
    const text = (body: string) => `{"jsonrpc":"2.0","id":1,${body}}`
    for (const body of bodies()) await legacy.post(text(body))
    for (const body of bodies(envelope()))
      for (const name of ['act', 'echo']) await post(url, text(body), headersFor('tools/call', { name }))
    const pipe = openPipe(t, { url: at, ...SHOWN })
    for (const body of bodies(envelope())) pipe.line(text(body))
    t.match(await pipe.call('tools/call', { name: 'echo', arguments: {} }, { id: 'last' }), { result: {} })
  }
  const called = servers.flatMap(({ received }) =>
    received.map(({ body }) => body).filter((body) => /call/i.test(body)),
  )
  t.ok(called.length > 0)
  t.notMatch(called.join('\n'), /act"/)
})

t.test('a reload hides items from clients that know them, in sessions of any kind', async (t) => {
  const server = await LegacyHttp.start(t)
  const modern = await ModernHttp.start(t)
  const entries = (choice: object) => ({ old: { url: server.url, ...choice }, new: { url: modern.url, ...choice } })
  const { url, bridge } = await startBridge(t, {}, { mcpServers: entries({}) })
  const at = (name: string) => new URL(`/${name}/mcp`, url).href
  const direct = await LegacyClient.open(at('old'))
  const translated = await LegacyClient.open(at('new'))
  t.match((await direct.call('act')).message, { result: {} })
  t.match((await translated.call('act')).message, { result: {} })
  t.match((await call(at('new'), 'tools/call', { name: 'act', arguments: {} })).message, { result: {} })
  const streams = [await SseClient.open(at('old'), '2025-06-18'), await SseClient.open(at('new'), '2025-06-18')]
  const act = (name = 'act') => ({ name, arguments: {} })
  for (const stream of streams) t.match(await stream.request('tools/call', act()), { result: {} })
  const grouped = await LegacyClient.open(url.replace('/old', ''))
  for (const name of ['old__act', 'new__act']) t.match((await grouped.call(name)).message, { result: {} })
  const settings = { mcpServers: entries(SHOWN), listen: 'http://127.0.0.1:0/mcp' }
  await bridge.reload(parseSettings(settings, { env: {}, read: () => '' }))
  const before = [server.of('tools/call').length, modern.of('tools/call').length]
  for (const client of [direct, translated]) t.ok((await client.call('act')).message.error)
  for (const stream of streams)
    t.equal((await stream.post({ jsonrpc: '2.0', id: 9, method: 'tools/call', params: act() })).status, 404)
  for (const name of ['old__act', 'new__act'])
    t.match((await grouped.call(name)).message, { error: { code: -32602, message: `Unknown tool: ${name}` } })
  for (const name of ['old', 'new']) {
    t.match((await call(at(name), 'tools/call', act())).message, { error: { message: 'Unknown tool: act' } })
    t.match((await (await LegacyClient.open(at(name))).call('act')).message, { error: { code: -32602 } })
  }
  t.same([server.of('tools/call').length, modern.of('tools/call').length], before)
})

t.test('a cached list stays filtered, also after it has changed', async (t) => {
  const server = await ModernHttp.start(t, { pages: 1, ttlMs: 60_000, cacheScope: 'public' })
  const { url } = await startBridge(t, { url: server.url, ...SHOWN, cache: 'hints' })
  const names = async () => {
    const { message } = await call(url, 'tools/list')
    return (message.result?.['tools'] as Json[]).map(({ name }) => name).sort()
  }
  const chosen = await names()
  t.same(chosen, ['echo', 'mirrored', 'task', 'touch'].sort())
  t.same(await names(), chosen)
  t.equal(server.of('tools/list').length, 1, 'it was kept')
  await until(() => server.subscriptions > 0, 'the cache hears of changes')
  server.touch({ tools: true })
  await until(async () => {
    t.same(await names(), chosen)
    return server.of('tools/list').length > 1
  }, 'the list is fetched again')
})

t.test('refuses a task of a hidden tool like a call', async (t) => {
  const tasks = { extensions: { 'io.modelcontextprotocol/tasks': {} } }
  const meta = { 'io.modelcontextprotocol/clientCapabilities': tasks }
  const server = await ModernHttp.start(t)
  const { url } = await startBridge(
    t,
    { url: server.url, tools: { deny: ['task'] } },
    { compat: { emulateTasks: true } },
  )
  const refused = await call(url, 'tools/call', { name: 'task', arguments: {} }, { meta })
  t.match(refused.message, { error: { code: -32602, message: 'Unknown tool: task' } })
  const legacy = await LegacyClient.open(url)
  const created = await legacy.request('tools/call', { name: 'task', arguments: {}, task: {} })
  const { taskId } = created.message.result?.['task'] as { taskId: string }
  const ended = await legacy.request('tasks/result', { taskId })
  t.match(ended.message, { error: { code: -32602, message: 'Unknown tool: task' } })
  t.same(server.of('tools/call'), [])
})

t.test('refuses other paths at which the server answers, with choice and with scopes', async (t) => {
  const url = 'https://x.example/api/mcp/'
  const refused = [
    '/api/mcp',
    '/api/*',
    '/api/MCP',
    '/api//mcp',
    '/api/%6dcp',
    '/api/mcp/*',
    '/api/./mcp',
    '/api/mcp/.',
    '/x/../api/mcp',
  ]
  const restricted = [{ tools: {} }, { prompts: {} }, { resources: {} }, { scopes: { a: ['b'] } }]
  const parse = (entry: object) => parseSettings({ mcpServers: { a: entry } }, { env: {}, read: () => '' })
  for (const paths of refused)
    for (const one of restricted)
      t.throws(() => parse({ url, paths: [paths], ...one }), { message: /mcpServers\.a\.paths/ }, paths)
  for (const paths of ['/files/*', '/api', '/apis/*', '/ap/*'])
    t.doesNotThrow(() => parse({ url, paths: [paths], tools: {} }), paths)
  t.doesNotThrow(() => parse({ url, paths: ['/api/*'] }))
  t.throws(() => parse({ url, tools: { override: { a: { name: 'x' }, b: { name: 'x' } } } }), {
    message: /mcpServers\.a\.tools\.override\.b\.name: is also the name of "a"/,
  })
})
