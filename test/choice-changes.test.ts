/** What is hidden is not heard of, and what a reload hides is hidden from clients in the middle of something. */
import t from 'tap'
import type { Bridge } from '../src/app/bridge.js'
// @ts-expect-error: plain JavaScript, because servers on stdio run it without any loader
import { QUESTIONS } from './fixtures/modern-questions.mjs'
import { createBridge, settingsOf } from './support/bridge.js'
import { repeatUntil, until } from './support/eventually.js'
import { initialize, LegacyClient } from './support/legacy-client.js'
import { LegacyHttp } from './support/legacy-http.js'
import { ACKNOWLEDGED, hears, listen, told } from './support/listening.js'
import { CAPABILITIES, call } from './support/modern.js'
import { ModernHttp } from './support/modern-http.js'
import { openPipe } from './support/pipe.js'
import { SseClient } from './support/sse-client.js'

type Json = Record<string, unknown>

const RESOURCES = { resources: { allow: ['test://static', 'test://item/*'], deny: ['test://x'] } }
const entries = (servers: { url: string }[], choice: object) => {
  const [modern, legacy] = servers
  return { new: { url: modern?.url, ...choice }, old: { url: legacy?.url, ...choice } }
}

/** A bridge in front of two servers, of both eras, at endpoints of their own and at one for both. */
async function setUp(t: Parameters<typeof createBridge>[0], choice: object) {
  const modern = await ModernHttp.start(t)
  const legacy = await LegacyHttp.start(t, { asks: true })
  const { bridge } = createBridge(t, {}, { mcpServers: entries([modern, legacy], choice) })
  const urls = await bridge.listen({ kind: 'http', host: '127.0.0.1', port: 0, path: '/mcp' })
  const at = (name: string) => urls.get(name) ?? [...bridge.groupUrls.values()][0] ?? ''
  const hide = (choice: object) => reload(bridge, entries([modern, legacy], choice))
  return { modern, legacy, at, hide }
}

function reload(bridge: Bridge, mcpServers: object) {
  return bridge.reload(settingsOf({ mcpServers }))
}

const HIDDEN = ['test://x', 'TEST://x', 'test://static/../x', 'test://part/1']

for (const [endpoint, prefixes] of Object.entries({ new: [''], old: [''], group: ['new+', 'old+'] }))
  t.test(`no client of ${endpoint} hears of updates of hidden resources`, async (t) => {
    const { modern, legacy, at } = await setUp(t, RESOURCES)
    const url = at(endpoint)
    const shown = prefixes.map((prefix) => `${prefix}test://static`)
    const hidden = prefixes.flatMap((prefix) => HIDDEN.map((uri) => prefix + uri))
    const listening = await listen(url, { resourceSubscriptions: [...hidden, ...shown, ...HIDDEN] })
    await listening.has(1)
    t.match(listening.messages[0], { method: ACKNOWLEDGED })
    const params = listening.messages[0]?.['params'] as { notifications: Json }
    t.same(params.notifications, { resourceSubscriptions: shown })
    const client = await LegacyClient.open(url)
    const stream = await client.listen()
    const old = await SseClient.open(url, '2025-06-18')
    for (const uri of [...hidden, ...HIDDEN]) {
      t.ok((await client.request('resources/subscribe', { uri })).message.error, uri)
      t.ok((await old.request('resources/subscribe', { uri }))['error'], uri)
    }
    for (const uri of shown) {
      t.match((await client.request('resources/subscribe', { uri })).message, { result: {} })
      t.match(await old.request('resources/subscribe', { uri }), { result: {} })
    }
    for (const uri of [...HIDDEN, 'test://static']) {
      modern.touch({ uris: [uri] })
      legacy.push({ jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri } })
    }
    const sorted = (changes: ReturnType<typeof told>) => changes.map(({ params }) => params?.['uri']).sort()
    t.same(sorted(await hears(listening, shown.length)), shown)
    t.same(sorted(await hears(stream, shown.length)), shown)
    const heard = () => told(old).map(({ params }) => params?.['uri'])
    await until(() => heard().length >= shown.length, 'the updates over HTTP+SSE')
    t.same(heard().sort(), shown)
    const subscribed = [...modern.received, ...legacy.received].map(({ body }) => body).join('\n')
    t.notMatch(subscribed, /test:\/+x|static\/\.\.|test:\/\/part/i)
  })

t.test('a client hears no more of what a reload hides', async (t) => {
  const { modern, legacy, at, hide } = await setUp(t, RESOURCES)
  const uris = ['test://static', 'test://item/1']
  const alone = await Promise.all(['new', 'old'].map((name) => listen(at(name), { resourceSubscriptions: uris })))
  const both = uris.flatMap((uri) => [`new+${uri}`, `old+${uri}`])
  const together = await listen(at('group'), { resourceSubscriptions: both })
  const client = await LegacyClient.open(at('group'))
  const stream = await client.listen()
  for (const uri of both) await client.request('resources/subscribe', { uri })
  for (const one of [...alone, together]) await one.has(1)
  await hide({ resources: { allow: ['test://item/*'] } })
  const push = () => {
    for (const uri of uris) {
      modern.touch({ uris: [uri] })
      legacy.push({ jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri } })
    }
  }
  const heard = (one: Parameters<typeof told>[0]) => new Set(told(one).map(({ params }) => params?.['uri']))
  const all = () =>
    [together, stream].every((one) => ['new+', 'old+'].every((p) => heard(one).has(`${p}test://item/1`)))
  await repeatUntil(push, all, 'updates of what is shown')
  for (const one of [...alone, together, stream])
    t.notMatch([...heard(one)].join(' '), 'static', 'an update of what is hidden')
  await until(() => alone.every(({ over }) => over), 'the ends of the streams of replaced servers')
})

t.test('refuses an answer for a tool that was hidden meanwhile, without sending it to a server', async (t) => {
  const { modern, legacy, at, hide } = await setUp(t, {})
  const meta = { [CAPABILITIES]: { elicitation: { form: {} } } }
  const args = { rounds: [{ name: (QUESTIONS as Json)['name'] }] }
  const tools: [endpoint: string, name: string, shown: string][] = [
    ['new', 'ask', 'echo'],
    ['old', 'ask', 'echo'],
    ['group', 'new__ask', 'new__echo'],
    ['group', 'old__ask', 'old__echo'],
  ]
  const asked = await Promise.all(
    tools.map(async ([endpoint, name]) => {
      const { message } = await call(at(endpoint), 'tools/call', { name, arguments: args }, { meta })
      t.match(message, { result: { resultType: 'input_required', requestState: String } }, `${endpoint} ${name}`)
      return message.result as Json
    }),
  )
  await hide({ tools: { deny: ['ask'] } })
  const before = modern.of('tools/call').length
  for (const [i, [endpoint, name, shown]] of tools.entries()) {
    const { inputRequests, requestState } = asked[i] as { inputRequests: Json; requestState: string }
    const answer = { action: 'accept', content: { name: 'Zoë' } }
    const inputResponses = Object.fromEntries(Object.keys(inputRequests).map((key) => [key, answer]))
    const again = { arguments: args, inputResponses, requestState }
    const refused = await call(at(endpoint), 'tools/call', { name, ...again }, { meta })
    t.match(refused.message, { error: { code: -32602, message: `Unknown tool: ${name}` } }, `${endpoint} ${name}`)
    const other = await call(at(endpoint), 'tools/call', { name: shown, ...again }, { meta })
    // A modern server alone has sealed its state itself.
    if (endpoint !== 'new') t.ok(other.message.error, `${endpoint} ${shown}`)
  }
  t.notMatch(JSON.stringify(legacy.received.map(({ body }) => body)), 'Zoë')
  const sent = modern.of('tools/call').slice(before)
  t.notMatch(JSON.stringify(sent.map(({ body }) => body)), '"ask"')
})

t.test('a reload hides items from clients on stdio, of one server and of a group', async (t) => {
  const modern = await ModernHttp.start(t)
  const legacy = await LegacyHttp.start(t)
  const act = (id: number, name: string) => ({
    jsonrpc: '2.0',
    id,
    method: 'tools/call',
    params: { name, arguments: {} },
  })
  const together = openPipe(t, {}, { mcpServers: entries([modern, legacy], {}) })
  const pipes = [
    { ...openPipe(t, {}, { mcpServers: { old: { url: legacy.url } } }), names: ['act'], of: ['old'] },
    { ...openPipe(t, {}, { mcpServers: { new: { url: modern.url } } }), names: ['act'], of: ['new'] },
    { ...together, names: ['new__act', 'old__act'], of: ['new', 'old'] },
  ]
  const called = () => modern.of('tools/call').length + legacy.of('tools/call').length
  for (const { bridge, line, messages, names, of } of pipes) {
    line(initialize('2025-11-25'))
    await until(() => messages().length === 1, 'the handshake')
    line(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' }))
    const answerTo = (id: number) => messages().find((message) => message['id'] === id)
    for (const [id, name] of names.entries()) {
      line(JSON.stringify(act(id, name)))
      await until(() => answerTo(id) !== undefined, `the answer of ${name}`)
      t.match(answerTo(id), { result: {} })
    }
    const before = called()
    const all = Object.entries(entries([modern, legacy], { tools: { deny: ['act'] } }))
    await reload(bridge, Object.fromEntries(all.filter(([name]) => of.includes(name))))
    for (const [i, name] of names.entries()) {
      line(JSON.stringify(act(10 + i, name)))
      await until(() => answerTo(10 + i) !== undefined, `the refusal of ${name}`)
      t.ok(answerTo(10 + i)?.['error'], name)
    }
    t.equal(called(), before)
  }
})

for (const endpoint of ['new', 'group'])
  t.test(`a running task at ${endpoint} continues when its tool is hidden, and no new one starts`, async (t) => {
    const { modern, at, hide } = await setUp(t, {})
    const url = at(endpoint)
    const meta = { [CAPABILITIES]: { extensions: { 'io.modelcontextprotocol/tasks': {} } } }
    const name = endpoint === 'group' ? 'new__task' : 'task'
    const begin = () => call(url, 'tools/call', { name, arguments: { say: 'at last', polls: 2 } }, { meta })
    const [first, second] = await Promise.all([begin(), begin()])
    await hide({ tools: { deny: ['task'] } })
    t.match((await begin()).message, { error: { code: -32602, message: `Unknown tool: ${name}` } })

    const of = (method: string, { message }: typeof first) => {
      const { taskId } = message.result as { taskId: string }
      return call(url, method, { taskId }, { meta })
    }
    let last: Json = {}
    await until(async () => {
      last = (await of('tasks/get', first)).message.result as Json
      return last['status'] === 'completed'
    }, 'the end of the task')
    t.match(last, { result: { content: [{ text: 'at last' }] } })
    t.match(await of('tasks/cancel', second), { status: 200, message: { result: {} } })
    t.equal(modern.of('tools/call').length, 2)
  })
