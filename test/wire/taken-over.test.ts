/** What a client leaves behind is for the next equal client of the same principal, if nothing of the client is left in it. */
import t, { type Test } from 'tap'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { ended } from '../support/idle.js'
import { LANES } from '../support/lanes.js'
import { LegacyClient, type OpenOptions } from '../support/legacy-client.js'
import { LegacySse } from '../support/legacy-sse.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { SseClient } from '../support/sse-client.js'

type Json = Record<string, unknown>
type Program = ReturnType<typeof legacyStdio>

const ECHO = { name: 'echo', arguments: { x: 1 } }
const TOKENS = { alice: 'token-of-alice-0123456789', bob: 'token-of-bob-0123456789' }
const asked = { capabilities: { elicitation: {}, roots: {} } }

async function visit(url: string, options: OpenOptions = {}, use = (client: LegacyClient) => client.call('echo')) {
  const client = await LegacyClient.open(url, options)
  const { message } = await use(client)
  await client.end()
  return message
}

const requests = (program: Program, method: string) =>
  program.messages().filter((message) => message['method'] === method)

for (const [lane, entry] of Object.entries(LANES)) {
  t.test(`${lane}: the next equal client gets the program of one that has gone`, async (t) => {
    const program = legacyStdio(t)
    const { url } = await startBridge(t, { ...program.server, ...entry })
    for (let n = 0; n < 3; n++) {
      const message = await visit(url, {}, (client) => client.call('echo', { n }))
      t.match(message, { result: { structuredContent: { n } } })
    }
    t.equal(program.pids().length, 1)
    t.equal(requests(program, 'initialize').length, 1)
    t.equal(requests(program, 'notifications/initialized').length, 1)
  })

  t.test(`${lane}: another principal, and a client that says something else, get other programs`, async (t) => {
    const program = legacyStdio(t)
    const { url } = await startBridge(t, { ...program.server, ...entry }, { auth: { tokens: TOKENS } })
    const as = (who: keyof typeof TOKENS, options: OpenOptions = {}) =>
      visit(url, { headers: { authorization: `Bearer ${TOKENS[who]}` }, ...options })
    await as('alice')
    await as('bob')
    t.equal(program.pids().length, 2)
    await as('alice', { capabilities: { sampling: {} } })
    t.equal(program.pids().length, 3)
    await as('bob')
    t.equal(program.pids().length, 3, 'that of bob is still there')
  })

  t.test(`${lane}: one program of each principal is kept, that of the last client`, async (t) => {
    const program = legacyStdio(t)
    const { url } = await startBridge(t, { ...program.server, ...entry })
    for (const name of ['a', 'b', 'c']) await visit(url, { clientInfo: { name, version: '1' } })
    const [, , last] = program.pids()
    await until(() => ended(program).length === 2, 'the end of two programs')
    await visit(url, { clientInfo: { name: 'c', version: '1' } })
    t.equal(program.pids().length, 3)
    t.notOk(ended(program).includes(String(last)))
  })

  t.test(`${lane}: a program that waits for equal clients ends when another one needs its own`, async (t) => {
    const program = legacyStdio(t)
    const { url } = await startBridge(t, { ...program.server, ...entry })
    await visit(url, { clientInfo: { name: 'a', version: '1' } })
    const other = await LegacyClient.open(url, { clientInfo: { name: 'b', version: '1' } })
    t.match((await other.call('echo', { n: 1 })).message, { result: { structuredContent: { n: 1 } } })
    const [first] = program.pids()
    await until(() => ended(program).length === 1, 'the end of a program')
    t.same(ended(program), [first])
    t.match((await other.call('echo', { n: 2 })).message, { result: { structuredContent: { n: 2 } } })
  })

  t.test(`${lane}: a program that is killed, or hangs, is nobody's any more`, async (t) => {
    for (const signal of ['SIGKILL', 'SIGSTOP'] as const) {
      const program = legacyStdio(t)
      const { url } = await startBridge(t, { ...program.server, ...entry })
      await visit(url)
      process.kill(Number(program.pids()[0]), signal)
      t.match(await visit(url), { result: {} })
      t.equal(program.pids().length, 2, signal)
    }
  })

  t.test(`${lane}: a program that knows the roots of its client ends with it`, async (t) => {
    const program = legacyStdio(t, { asks: true })
    const { url } = await startBridge(t, { ...program.server, ...entry })
    const steps = [{ ask: [{ method: 'roots/list' }] }]
    const stream = async (client: LegacyClient) => {
      const call = await client.stream('tools/call', { name: 'steps', arguments: { steps } })
      await until(() => call.text.includes('roots/list'), 'the question')
      const question = call.messages.find(({ method }) => method === 'roots/list')
      await client.post({ jsonrpc: '2.0', id: question?.['id'], result: { roots: [] } })
      await call.ended()
    }
    const client = await LegacyClient.open(url, asked)
    await stream(client)
    await client.end()
    await until(() => ended(program).length === 1, 'the end of the program')
    await visit(url, asked)
    t.equal(program.pids().length, 2)
  })

  t.test(`${lane}: "process": "own" ends each program with its client`, async (t) => {
    const program = legacyStdio(t)
    const { url } = await startBridge(t, { ...program.server, ...entry, process: 'own' })
    for (let n = 1; n <= 2; n++) {
      await visit(url)
      await until(() => ended(program).length === n, 'the end of the program')
      t.equal(program.pids().length, n)
    }
  })

  t.test(`${lane}: the program ends when no client comes in time`, async (t) => {
    const program = legacyStdio(t)
    const { url } = await startBridge(t, { ...program.server, ...entry }, { timeouts: { reuse: 100 } })
    await visit(url)
    await until(() => ended(program).length === 1, 'the end of the program')
  })

  t.test(`${lane}: what a client has set is undone before another one gets its program`, async (t) => {
    const program = legacyStdio(t)
    const { url } = await startBridge(t, { ...program.server, ...entry })
    const first = await LegacyClient.open(url)
    const stream = await first.listen()
    await first.request('resources/subscribe', { uri: 'test://x' })
    await first.request('logging/setLevel', { level: 'error' })
    await first.call('log')
    await first.stream('tools/call', { name: 'wait', arguments: { ms: 60_000 } })
    await until(() => program.messages().some(({ params }) => (params as Json)?.['name'] === 'wait'), 'the call')
    await first.end()
    stream.leave()
    const second = await LegacyClient.open(url)
    t.match((await second.call('echo', { n: 2 })).message, { result: { structuredContent: { n: 2 } } })
    t.equal(program.pids().length, 1)
    t.equal(requests(program, 'notifications/cancelled').length, 1)
    await until(() => requests(program, 'resources/unsubscribe').length === 1, 'the end of the subscription')
    t.match(requests(program, 'logging/setLevel').at(-1), { params: { level: 'debug' } })
  })
}

for (const [lane, entry] of Object.entries(LANES))
  t.test(
    `${lane}: a question that a client has not answered is answered for it, and nobody else gets it`,
    async (t) => {
      const program = legacyStdio(t)
      const { url } = await startBridge(t, { ...program.server, ...entry })
      const client = await LegacyClient.open(url, asked)
      const call = await client.stream('tools/call', { name: 'ask', arguments: { method: 'elicitation/create' } })
      await until(() => call.text.includes('elicitation/create'), 'the question')
      await client.end()
      const next = await LegacyClient.open(url, asked)
      const stream = await next.listen()
      t.match((await next.call('echo', { n: 2 })).message, { result: { structuredContent: { n: 2 } } })
      await until(() => program.messages().some(({ error }) => error !== undefined), 'the answer')
      t.notMatch(stream.text, /elicitation/)
      t.equal(program.pids().length, 1)
    },
  )

const CAPABILITIES = { tools: {}, tasks: { requests: { tools: { call: {} } } } }

/** A server alone, which gets the messages of its clients, and in a group, where the bridge has its sessions. */
const PLACES: readonly [string, (t: Test, server: object) => Promise<string>][] = [
  ['alone', async (t, server) => (await startBridge(t, server)).url],
  [
    'in a group',
    async (t, server) => {
      const { bridge } = await startBridge(t, {}, { mcpServers: { test: server }, groups: { all: {} } })
      return bridge.groupUrls.get('all') as string
    },
  ],
]

for (const [place, serve] of PLACES)
  for (const [what, leave, only = place] of [
    ['what an unknown request has done', (client) => client.request('vendor/echo', {})],
    ['what an unknown notification has done', (client) => client.notify('notifications/vendor')],
    // In a group, the bridge makes no task of it.
    ['a task', (client) => client.request('tools/call', { ...ECHO, task: {} }), 'alone'],
  ] as readonly [string, (client: LegacyClient) => Promise<unknown>, only?: string][])
    if (only === place)
      t.test(`${place}: a program ends with a client that leaves ${what} behind`, async (t) => {
        const program = legacyStdio(t, { capabilities: CAPABILITIES })
        const url = await serve(t, program.server)
        const client = await LegacyClient.open(url)
        await leave(client)
        await until(() => program.messages().some(({ method }) => /vendor|call/.test(String(method))), 'its message')
        await client.end()
        await until(() => ended(program).length === 1, 'the end of the program')
        await visit(url)
        await visit(url)
        t.equal(program.pids().length, 2, 'that of a client that leaves nothing does not')
      })

t.test('a program of a client that has not begun its session ends with it', async (t) => {
  const program = legacyStdio(t)
  const { url } = await startBridge(t, program.server)
  await (await LegacyClient.open(url, { ready: false })).end()
  await until(() => ended(program).length === 1, 'the end of the program')
})

t.test('clients of HTTP+SSE take programs over, too', async (t) => {
  const program = legacyStdio(t)
  const { url } = await startBridge(t, program.server)
  for (let n = 0; n < 2; n++) {
    const client = await SseClient.open(url, '2025-03-26')
    t.match(await client.request('tools/call', ECHO), { result: {} })
    await client.request('resources/subscribe', { uri: 'test://x' })
    client.stream.leave()
    await until(() => requests(program, 'resources/unsubscribe').length > n, 'the end of the session')
  }
  t.equal(program.pids().length, 1)
})

t.test('the session with a server over HTTP+SSE is taken over', async (t) => {
  const server = await LegacySse.start(t)
  const { url } = await startBridge(t, { url: server.url, transport: 'sse' })
  for (let n = 0; n < 3; n++) t.match(await visit(url), { result: {} })
  const calls = server.received.filter(({ message }) => message['method'] === 'tools/call')
  t.equal(calls.length, 3)
  t.equal(new Set(calls.map(({ path }) => path)).size, 1)
})
