/** Clients that send all their messages at once, without waiting for the answer to `initialize`, as scripts do. */
import t from 'tap'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { initialize } from '../support/legacy-client.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { envelope } from '../support/modern.js'
import { ModernHttp } from '../support/modern-http.js'
import { modernStdio } from '../support/modern-stdio.js'
import { openPipe } from '../support/pipe.js'
import { SseClient } from '../support/sse-client.js'

type Json = Record<string, unknown>

const INITIALIZED = { jsonrpc: '2.0', method: 'notifications/initialized' }
const echo = (id: unknown, more: Json = {}) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name: 'echo', arguments: { id }, ...more },
})
const list = (id: unknown) => ({ jsonrpc: '2.0', id, method: 'tools/list' })
const lines = (messages: (object | string)[]) =>
  messages.map((message) => (typeof message === 'string' ? message : JSON.stringify(message))).join('\n')
const byId = (messages: Json[], id: unknown) => messages.find((message) => message['id'] === id)

t.test('answers what arrives during initialize, even if the input ends at once', async (t) => {
  const servers: [string, object][] = [
    // Longer than the 100 ms for requests in flight: those begin when the program has started.
    ['legacy on stdio', legacyStdio(t, { slowStart: 400 }).server],
    ['modern on stdio', modernStdio(t, { slowStart: 400 }).server],
    ['legacy over HTTP', { url: (await LegacyHttp.start(t)).url }],
    ['modern over HTTP', { url: (await ModernHttp.start(t)).url }],
  ]
  for (const [name, server] of servers) {
    const pipe = openPipe(t, server, { timeouts: { drainTimeout: 10_000 } })
    pipe.line(lines([initialize('2025-06-18'), INITIALIZED, echo(1), list(2)]))
    await pipe.end()
    const answers = pipe.messages().filter(({ method }) => method === undefined)
    t.equal(answers[0]?.['id'], 'hello', `${name}: initialize is answered first`)
    t.match(byId(answers, 1), { result: { content: [{ text: '{"id":1}' }] } }, name)
    t.match(byId(answers, 2), { result: { tools: Array } }, name)
    t.equal(answers.length, 3, name)
  }
})

t.test('the end of the input does not end initialize, however slowly the program starts', async (t) => {
  const pipe = openPipe(t, legacyStdio(t, { slowStart: 1_000 }).server, { timeouts: { drainTimeout: 1 } })
  pipe.line(initialize('2025-06-18'))
  await pipe.end()
  t.match(pipe.messages(), [{ id: 'hello', result: { protocolVersion: '2025-06-18' } }])
})

t.test('a program gets the waiting messages in the order in which they were sent', async (t) => {
  const stdio = legacyStdio(t)
  const pipe = openPipe(t, stdio.server)
  const cancelled = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'w' } }
  const wait = { ...echo('w'), params: { name: 'wait', arguments: { ms: 60_000 } } }
  pipe.line(lines([initialize('2025-06-18'), INITIALIZED, wait, cancelled, echo(1)]))
  await until(() => byId(pipe.messages(), 1) !== undefined)
  const methods = () => stdio.messages().map(({ method }) => method)
  t.same(methods().slice(-3), ['initialize', 'notifications/initialized', 'tools/call'])
  t.notOk(byId(pipe.messages(), 'w'), 'a request that is cancelled while it waits is not sent')
})

t.test('a batch waits, too, and is answered if the negotiated revision has batches', async (t) => {
  for (const [revision, taken] of [
    ['2025-03-26', true],
    ['2025-06-18', false],
  ] as const) {
    const pipe = openPipe(t, legacyStdio(t).server)
    pipe.line(lines([initialize(revision), INITIALIZED, JSON.stringify([echo(1), list(2)])]))
    await until(() => pipe.messages().length === 2, `two answers (${revision})`)
    const [, batch] = pipe.messages() as unknown as [Json, Json[] & Json]
    if (taken) t.same(batch.map(({ id }) => id).sort(), [1, 2])
    else t.match(batch, { error: { code: -32600, message: /no batches/ } })
    t.equal(pipe.messages()[0]?.['id'], 'hello', 'after the answer to initialize')
    await pipe.end()
  }
})

t.test('reads messages beyond the bound of waiting ones later, and in order', async (t) => {
  const stdio = legacyStdio(t)
  const pipe = openPipe(t, stdio.server)
  const ids = Array.from({ length: 600 }, (_, n) => n)
  pipe.line(lines([initialize('2025-06-18'), INITIALIZED, ...ids.map((id) => echo(id))]))
  await until(() => pipe.messages().length === 601, 'all answers')
  const called = stdio.messages().filter(({ method }) => method === 'tools/call')
  t.same(
    called.map(({ params }) => (params as { arguments: { id: number } }).arguments.id),
    ids,
  )
})

t.test('a request with the envelope, and a ping, do not wait', async (t) => {
  const pipe = openPipe(t, legacyStdio(t, { initialize: 'silent' }).server)
  pipe.line(
    lines([
      initialize('2025-06-18'),
      list(1),
      { jsonrpc: '2.0', id: 'p', method: 'ping' },
      initialize('2025-06-18', {}, 'again'),
    ]),
  )
  await until(() => pipe.messages().length === 2, 'the answers to ping and the second initialize')
  t.match(byId(pipe.messages(), 'p'), { result: {} })
  t.match(byId(pipe.messages(), 'again'), { error: { code: -32600, message: /in progress/ } })

  const modern = openPipe(t, { url: (await ModernHttp.start(t)).url }, { timeouts: { drainTimeout: 60_000 } })
  modern.line(lines([echo(1, { _meta: envelope() }), { ...list(2), params: { _meta: envelope() } }]))
  await modern.end()
  t.match(byId(modern.messages(), 1), { result: { resultType: 'complete' } })
  t.match(byId(modern.messages(), 2), { result: { resultType: 'complete' } })
})

t.test('refuses only requests without initialize, or after one that failed', async (t) => {
  const pipe = openPipe(t, { url: (await ModernHttp.start(t)).url })
  pipe.line(lines([INITIALIZED, list(1), initialize('2025-06-18'), list(2)]))
  await until(() => byId(pipe.messages(), 2) !== undefined)
  t.match(byId(pipe.messages(), 1), { error: { code: -32600, message: /Session required/ } })
  t.match(byId(pipe.messages(), 2), { result: { tools: Array } })

  const broken = openPipe(t, { command: '/does/not/exist' })
  broken.line(lines([initialize('2025-06-18'), INITIALIZED, list(1)]))
  await until(() => broken.messages().length === 2, 'two refusals')
  t.match(broken.messages(), [
    { id: 'hello', error: { code: -32603 } },
    { id: 1, error: { code: -32603 } },
  ])
})

t.test('over HTTP+SSE, answers what is posted during initialize', async (t) => {
  const stdio = legacyStdio(t, { slowStart: 400 })
  const { url } = await startBridge(t, stdio.server)
  const client = await SseClient.connect(url)
  const first = await client.post(initialize('2025-03-26'))
  t.equal(first.status, 202)
  const posted = await Promise.all([
    client.post(INITIALIZED),
    client.post(echo(1)),
    client.post([echo(2), list(3)]),
    client.post({ jsonrpc: '2.0', id: 'p', method: 'ping' }),
  ])
  t.same(
    posted.map(({ status }) => status),
    [202, 202, 202, 202],
  )
  const messages = () => client.messages.flat() as Json[]
  await until(() => [1, 2, 3, 'p'].every((id) => byId(messages(), id) !== undefined), 'all answers')
  t.match(byId(messages(), 1), { result: { content: [{ text: '{"id":1}' }] } })
  t.ok(stdio.messages().some(({ method }) => method === 'notifications/initialized'))
})

t.test('over HTTP+SSE, refuses too many waiting messages', async (t) => {
  const { url } = await startBridge(t, legacyStdio(t, { initialize: 'silent' }).server)
  const client = await SseClient.connect(url)
  await client.post(initialize('2025-03-26'))
  const statuses: number[] = []
  for (let id = 0; id < 300; id++)
    client.post(list(id)).then(
      ({ status }) => statuses.push(status),
      () => {},
    )
  await until(() => statuses.length === 300 - 256, 'the refusal of the last ones')
  t.ok(statuses.every((status) => status === 503))
})

t.test('refuses a request without initialize on each HTTP front', async (t) => {
  const { url } = await startBridge(t, legacyStdio(t).server)
  const client = await SseClient.connect(url)
  t.match(await client.request('tools/list', {}, 1), { error: { code: -32600, message: /Session required/ } })
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
  const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(list(1)) })
  t.equal(answer.status, 400)
  t.match(await answer.json(), { id: 1, error: { code: -32600, message: /Session required/ } })
})
