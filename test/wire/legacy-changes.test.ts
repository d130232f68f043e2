/** How legacy clients hear of what changes at a modern server. Numbers are those of test/invariants.md. */
import t, { type Test } from 'tap'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { besideTheQuestion, LegacyClient, type OpenOptions } from '../support/legacy-client.js'
import { type Arrived, type HttpPlan, ModernHttp } from '../support/modern-http.js'
import { modernStdio } from '../support/modern-stdio.js'

type Filter = Record<string, unknown>

const LISTS = { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true }
const A = 'test://item/a'
const B = 'test://item/b'

async function start(t: Test, plan: HttpPlan = {}, options: OpenOptions = {}) {
  const modern = await ModernHttp.start(t, plan)
  const { url } = await startBridge(t, { url: modern.url })
  return { modern, url, client: await LegacyClient.open(url, options) }
}

/** What the server was asked to tell of, one subscription after the other. */
const filters = (modern: ModernHttp) => modern.of('subscriptions/listen').map(filterOf)
const filterOf = ({ message }: Arrived) => (message?.['params'] as { notifications: Filter }).notifications
/** Subscriptions that were closed from this side. */
const closed = (modern: ModernHttp) =>
  modern.cancelled.filter(({ message }) => message?.['method'] === 'subscriptions/listen').map(filterOf)

t.test('subscribes at the server once the client is ready and listens itself', async (t) => {
  const { modern, client } = await start(t, {}, { ready: false })
  const listening = await client.listen()
  t.equal(modern.of('subscriptions/listen').length, 0, 'the client is not ready')
  await client.notify('notifications/initialized')
  await until(() => modern.subscriptions === 1)
  t.same(filters(modern), [LISTS])
  await client.notify('notifications/initialized')
  await client.listen()
  await client.request('ping')
  t.equal(modern.of('subscriptions/listen').length, 1, 'once is enough')
  listening.leave()
})

t.test('opens no subscription for a client that does not listen', async (t) => {
  const { modern, client } = await start(t)
  await client.call('echo')
  t.equal(modern.of('subscriptions/listen').length, 0)
})

t.test('subscribes to what the client was offered', async (t) => {
  const rows: [capabilities: object, filter: Filter | undefined][] = [
    [{ tools: { listChanged: true }, prompts: {}, resources: { subscribe: true } }, { toolsListChanged: true }],
    [{ tools: { listChanged: false }, resources: { listChanged: true } }, { resourcesListChanged: true }],
    [{ tools: {}, prompts: {}, resources: {} }, undefined],
  ]
  for (const [capabilities, filter] of rows) {
    const { modern, client } = await start(t, { capabilities })
    const listening = await client.listen()
    if (filter) await until(() => modern.subscriptions === 1)
    else await client.request('ping')
    t.same(filters(modern), filter ? [filter] : [])
    listening.leave()
  }
})

t.test('subscribes to a resource by a second subscription, opened before the first is ended', async (t) => {
  const { modern, client } = await start(t)
  const listening = await client.listen()
  await until(() => modern.subscriptions === 1)
  t.same((await client.request('resources/subscribe', { uri: A })).message.result, {})
  t.same(filters(modern), [LISTS, { ...LISTS, resourceSubscriptions: [A] }])
  await until(() => modern.subscriptions === 1, 'the end of the first subscription')
  t.same(closed(modern), [LISTS])
  t.same((await client.request('resources/subscribe', { uri: B })).message.result, {})
  t.same(filters(modern).at(-1), { ...LISTS, resourceSubscriptions: [A, B] })
  await client.request('resources/subscribe', { uri: B })
  t.equal(filters(modern).length, 3, 'what is subscribed to already needs no other')

  modern.touch({ uris: [A, B, 'test://item/c'], tools: true })
  await listening.has(3)
  t.same(
    new Set(listening.messages.map((message) => JSON.stringify(message))),
    new Set([
      '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}',
      `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"${A}"}}`,
      `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"${B}"}}`,
    ]),
    'and nothing says by which subscription they came',
  )

  t.same((await client.request('resources/unsubscribe', { uri: A })).message.result, {})
  t.same(filters(modern).at(-1), { ...LISTS, resourceSubscriptions: [B] })
  await until(() => modern.subscriptions === 1)
  modern.touch({ uris: [A] })
  modern.touch({ uris: [B] })
  await listening.has(4)
  t.match(listening.messages.at(-1), { params: { uri: B } })
  t.same(besideTheQuestion(modern.violations()), [])
})

t.test('hears the first subscription until the second is acknowledged', async (t) => {
  const held: (() => void)[] = []
  const hold: HttpPlan['override'] = (arrived, response) => {
    const { message } = arrived
    if (message?.['method'] !== 'subscriptions/listen') return false
    const { resourceSubscriptions: uris } = filterOf(arrived)
    if (uris === undefined) return false
    const _meta = { 'io.modelcontextprotocol/subscriptionId': message['id'] }
    const say = (method: string, params: object) =>
      response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', method, params: { ...params, _meta } })}\n\n`)
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
    held.push(() => {
      say('notifications/subscriptions/acknowledged', { notifications: filterOf(arrived) })
      say('notifications/resources/updated', { uri: A })
    })
    return true
  }
  const { modern, client } = await start(t, { override: hold })
  const listening = await client.listen()
  await until(() => modern.subscriptions === 1)
  const subscribing = client.request('resources/subscribe', { uri: A })
  await until(() => held.length === 1)
  modern.touch({ tools: true })
  await listening.has(1)
  t.equal(modern.subscriptions, 1, 'the first is still open')
  held[0]?.()
  t.same((await subscribing).message.result, {})
  await until(() => modern.subscriptions === 0)
  await listening.has(2)
  t.same(
    listening.messages.map(({ method }) => method),
    ['notifications/tools/list_changed', 'notifications/resources/updated'],
  )
})

t.test('refuses a resource that the server does not acknowledge, and keeps the others', async (t) => {
  const refuse: HttpPlan['override'] = (arrived, response) => {
    const { message } = arrived
    if (message?.['method'] !== 'subscriptions/listen') return false
    const { resourceSubscriptions: uris = [] } = filterOf(arrived) as { resourceSubscriptions?: string[] }
    if (!uris.includes(B)) return false
    const _meta = { 'io.modelcontextprotocol/subscriptionId': message['id'] }
    const method = 'notifications/subscriptions/acknowledged'
    const params = { notifications: { resourceSubscriptions: uris.filter((uri) => uri !== B) }, _meta }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', method, params })}\n\n`)
    return true
  }
  const { modern, client } = await start(t, { override: refuse })
  const listening = await client.listen()
  t.same((await client.request('resources/subscribe', { uri: A })).message.result, {})
  const refused = await client.request('resources/subscribe', { uri: B })
  t.match(refused, { status: 200, message: { error: { code: -32602 } } })
  await until(() => closed(modern).length > 0)
  modern.touch({ uris: [A] })
  await listening.has(1)
  t.match(listening.messages[0], { params: { uri: A } })
})

t.test('reopens a subscription that ends, and reports everything as changed if it broke', async (t) => {
  const { modern, client } = await start(t)
  const listening = await client.listen()
  await client.request('resources/subscribe', { uri: A })
  await until(() => modern.subscriptions === 1)
  const before = modern.of('subscriptions/listen').length
  modern.touch({ end: true })
  await until(() => modern.subscriptions === 1, 'another subscription')
  t.equal(modern.of('subscriptions/listen').length, before + 1)
  t.same(filters(modern).at(-1), { ...LISTS, resourceSubscriptions: [A] })
  t.same(listening.messages, [], 'nothing was missed')

  modern.cut()
  await until(() => modern.of('subscriptions/listen').length === before + 2, 'another subscription')
  await listening.has(4)
  t.same(
    new Set(
      listening.messages.map(({ method, params }) => `${method} ${(params as { uri?: string } | undefined)?.uri}`),
    ),
    new Set([
      'notifications/tools/list_changed undefined',
      'notifications/prompts/list_changed undefined',
      'notifications/resources/list_changed undefined',
      `notifications/resources/updated ${A}`,
    ]),
  )
})

/** Passes until a subscription that breaks off now is open again: another attempt would have come before. */
async function reopened(t: Test): Promise<void> {
  const { modern, client } = await start(t)
  await client.listen()
  await until(() => modern.subscriptions === 1)
  modern.cut()
  await until(() => modern.of('subscriptions/listen').length === 2, 'another attempt')
}

t.test('opens no subscription at a server without changes to report, or without subscriptions', async (t) => {
  for (const listen of ['empty', 'refused'] as const) {
    const { modern, client } = await start(t, { listen })
    const listening = await client.listen()
    await until(() => modern.of('subscriptions/listen').length === 1)
    await reopened(t)
    t.equal(modern.of('subscriptions/listen').length, 1, listen)
    t.notOk(listening.over, 'and the client may go on listening')
    const refused = await client.request('resources/subscribe', { uri: A })
    t.equal(refused.message.error?.code, listen === 'empty' ? -32602 : -32601, listen)
    t.same((await client.request('resources/unsubscribe', { uri: A })).message.result, {})
  }
})

t.test('reads the tools again when they change', async (t) => {
  let header = 'not a name'
  const list: HttpPlan['override'] = ({ message }, response) => {
    if (message?.['method'] !== 'tools/list') return false
    const properties = { region: { type: 'string', 'x-mcp-header': header } }
    const tools = [{ name: 'mirrored', inputSchema: { type: 'object', properties } }]
    const result = { resultType: 'complete', tools, ttlMs: 0, cacheScope: 'private' }
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ jsonrpc: '2.0', id: message['id'], result }))
    return true
  }
  const { modern, client } = await start(t, { override: list })
  const listening = await client.listen()
  await until(() => modern.subscriptions === 1)
  t.same((await client.request('tools/list')).message.result, { tools: [] })
  t.equal((await client.call('mirrored', { region: 'r' })).message.error?.code, -32602, 'it cannot be called')
  header = 'Region'
  modern.touch({ tools: true })
  await listening.has(1)
  t.match((await client.call('mirrored', { region: 'r' })).message, { result: {} })
})

t.test('on a pipe the subscriptions of several sessions are separate', async (t) => {
  const modern = modernStdio(t)
  const { url } = await startBridge(t, modern.server)
  const [first, second] = [await LegacyClient.open(url), await LegacyClient.open(url)]
  const streams = [await first.listen(), await second.listen()] as const
  t.same((await first.request('resources/subscribe', { uri: A })).message.result, {})
  t.same((await second.request('resources/subscribe', { uri: B })).message.result, {})
  await first.call('touch', { uris: [A, B] })
  await Promise.all(streams.map((stream) => stream.has(1)))
  t.match(streams[0].messages, [{ params: { uri: A } }])
  t.match(streams[1].messages, [{ params: { uri: B } }])
  t.notMatch(streams[0].text, /subscriptionId/)
  await first.end()
  await second.call('touch', { uris: [B] })
  await streams[1].has(2)
  t.equal(streams[0].messages.length, 1)
  t.same(besideTheQuestion(modern.violations()), [])
})
