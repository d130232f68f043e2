/** Calls in flight while their session ends: the client waits for an answer to each of them, or for an error. */
import type { ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { startBridge } from '../support/bridge.js'
import { type Caller, callers } from '../support/callers.js'
import { until } from '../support/eventually.js'
import { TRANSLATED } from '../support/lanes.js'
import { LegacyClient } from '../support/legacy-client.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { LegacySse, PATHS } from '../support/legacy-sse.js'
import { legacyStdio } from '../support/legacy-stdio.js'

type Json = Record<string, unknown>

/** Longer than the test. */
const LONG = 600_000
const SLOW = { name: 'slow', arguments: {} }
const UNKNOWN = { error: { code: -32603, message: /may have executed the call/, data: { outcome: 'unknown' } } }

const EVENTS = { 'content-type': 'text/event-stream' }

/** How a server answers a request in a session that it has lost. */
type Refuse = (message: Json, response: ServerResponse) => void
const REFUSALS: Record<string, Refuse> = {
  '404': (_message, response) => response.writeHead(404).end(),
  '-32602 at 200': ({ id }, response) => {
    const error = { code: -32602, message: 'Invalid request parameters' }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, error }))
  },
  '400 with a text': (_message, response) => response.writeHead(400).end('Bad Request: No valid session ID provided'),
}

/** A server over HTTP that answers calls of the tool `slow` when it is told to, and loses its first session. */
class Losing {
  readonly http: LegacyHttp
  /** Calls of the tool without an answer yet. */
  readonly calls: { message: Json; response: ServerResponse }[]
  /** Refuses what comes in the lost session; undefined before it is lost. */
  readonly lost: { refuse?: Refuse | undefined }
  readonly #streams: boolean

  private constructor(http: LegacyHttp, calls: Losing['calls'], lost: Losing['lost'], streams: boolean) {
    this.http = http
    this.calls = calls
    this.lost = lost
    this.#streams = streams
  }

  /** `streams`: slow calls are answered by events, after one of progress. */
  static async start(t: Test, streams = false): Promise<Losing> {
    const calls: Losing['calls'] = []
    const lost: Losing['lost'] = {}
    const http = await LegacyHttp.start(t, {
      override: ({ message, method, headers }, response) => {
        if (lost.refuse && headers['mcp-session-id'] === 'session-1') {
          if (method === 'GET') response.writeHead(404).end()
          else lost.refuse(message, response)
          return true
        }
        const slow = [message].flat().filter(({ params }) => (params as Json | undefined)?.['name'] === 'slow')
        for (const one of slow) calls.push({ message: one, response })
        if (slow.length > 0 && streams) emit(response.writeHead(200, EVENTS), progressOf(slow[0]))
        return slow.length > 0
      },
    })
    return new Losing(http, calls, lost, streams)
  }

  /** Answers all slow calls, those of an array in an array. */
  answer(): void {
    const responses = new Map<ServerResponse, object[]>()
    for (const { message, response } of this.calls.splice(0)) {
      const result = { jsonrpc: '2.0', id: message['id'], result: { content: [], answered: true } }
      responses.set(response, [...(responses.get(response) ?? []), result])
    }
    for (const [response, results] of responses) {
      if (this.#streams) for (const result of results) emit(response, result)
      else response.writeHead(200, { 'content-type': 'application/json' })
      response.end(this.#streams ? undefined : JSON.stringify(results.length > 1 ? results : results[0]))
    }
  }
}

function emit(response: ServerResponse, message: object): void {
  response.write(`data: ${JSON.stringify(message)}\n\n`)
}

function progressOf(call: Json | undefined): object {
  const { _meta: { progressToken = 'p' } = {} } = call?.['params'] as { _meta?: Json }
  return { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken, progress: 1 } }
}

for (const streams of [false, true])
  for (const [refusal, refuse] of Object.entries(REFUSALS))
    t.test(`a call in flight is answered after another one has heard ${refusal}, streams: ${streams}`, async (t) => {
      const server = await Losing.start(t, streams)
      const { url } = await startBridge(t, { url: server.http.url })
      const client = await LegacyClient.open(url)
      t.match((await client.call('act')).message, { result: {} })
      const listening = await client.listen()
      const slow = client.request('tools/call', SLOW)
      await until(() => server.calls.length === 1, 'the slow call is in flight')
      server.lost.refuse = refuse
      t.match(await client.call('act'), { status: 404, message: { error: { code: -32600 } } })
      const before = server.http.received.length
      t.match(await client.call('act'), { status: 404, message: { error: { code: -32600 } } })
      t.equal(server.http.received.length, before, 'nothing more is sent in the lost session')
      server.answer()
      t.match(await slow, { status: 200, message: { result: { answered: true } } })
      await listening.ended()
      await until(async () => (await client.request('ping')).status === 404, 'the session is over')
      const other = await LegacyClient.open(url)
      t.match((await other.call('act')).message, { result: {} })
    })

t.test('a call in flight is answered after the stream of a server that lost the session has ended', async (t) => {
  const server = await Losing.start(t)
  const { url } = await startBridge(t, { url: server.http.url })
  const client = await LegacyClient.open(url)
  t.match((await client.call('act')).message, { result: {} })
  await until(() => server.http.streams === 1, 'the stream for the messages of the server')
  const slow = client.request('tools/call', SLOW)
  await until(() => server.calls.length === 1, 'the slow call is in flight')
  server.lost.refuse = REFUSALS['404']
  server.http.endStreams()
  await until(async () => (await client.request('ping')).status === 404, 'the session is lost')
  server.answer()
  t.match(await slow, { status: 200, message: { result: { answered: true } } })
})

t.test('a batch in flight is answered after another call has heard that the session is lost', async (t) => {
  const server = await Losing.start(t)
  const { url } = await startBridge(t, { url: server.http.url })
  const client = await LegacyClient.open(url, { revision: '2025-03-26' })
  t.match((await client.call('act')).message, { result: {} })
  const request = (id: string) => ({ jsonrpc: '2.0', id, method: 'tools/call', params: SLOW })
  const slow = client.post([request('a'), request('b')])
  await until(() => server.calls.length === 2, 'the batch is in flight')
  server.lost.refuse = REFUSALS['404']
  t.match(await client.call('act'), { status: 404 })
  server.answer()
  const { messages } = await slow
  t.match(messages.flat(), [
    { id: 'a', result: { answered: true } },
    { id: 'b', result: { answered: true } },
  ])
})

t.test('an answer of the client still reaches a server that has lost the session of the call', async (t) => {
  const server = await Losing.start(t, true)
  const { url } = await startBridge(t, { url: server.http.url })
  const client = await LegacyClient.open(url, { capabilities: { elicitation: {} } })
  t.match((await client.call('act')).message, { result: {} })
  const slow = await client.stream('tools/call', SLOW)
  await until(() => server.calls.length === 1, 'the slow call is in flight')
  const question = { jsonrpc: '2.0', id: 'q', method: 'elicitation/create', params: { message: 'Yes?' } }
  emit(server.calls[0]?.response as ServerResponse, question)
  await slow.has(2)
  server.lost.refuse = REFUSALS['404']
  t.match(await client.call('act'), { status: 404 })
  server.lost.refuse = undefined
  t.match(await client.post({ jsonrpc: '2.0', id: 'q', result: { action: 'accept' } }), { status: 202 })
  await until(() => server.http.received.some(({ message: { id } }) => id === 'q'), 'the server has the answer')
  server.answer()
  await slow.ended()
  t.match(slow.messages.at(-1), { result: { answered: true } })
})

const REOPENED: Record<string, Caller> = {
  'a modern client': callers.modern,
  'a legacy client on stdio': callers['legacy, on stdio'],
  'a legacy client over HTTP+SSE': callers['legacy, over HTTP+SSE'],
}

for (const [name, connect] of Object.entries(REOPENED))
  t.test(`${name} gets the answer to its call in flight, and goes on in another session`, async (t) => {
    const server = await Losing.start(t)
    const ask = await connect(t, server.http.url)
    t.match(await ask({ name: 'act' }), { result: {} })
    const slow = ask(SLOW)
    await until(() => server.calls.length === 1, 'the slow call is in flight')
    server.lost.refuse = REFUSALS['404']
    t.match(await ask({ name: 'act' }), { result: {} })
    server.answer()
    t.match(await slow, { result: { answered: true } })
  })

t.test('calls in flight of a server that is killed get an error that says that their outcome is unknown', async (t) => {
  const server = await Losing.start(t)
  const { url } = await startBridge(t, { url: server.http.url })
  const client = await LegacyClient.open(url)
  t.match((await client.call('act')).message, { result: {} })
  const slow = [client.request('tools/call', SLOW), client.request('tools/call', SLOW)]
  await until(() => server.calls.length === 2, 'the slow calls are in flight')
  server.lost.refuse = REFUSALS['404']
  server.http.cut()
  for (const answer of await Promise.all(slow)) t.match(answer, { status: 200, message: UNKNOWN })
  await until(async () => (await client.request('ping')).status === 404, 'the session is lost')
})

t.test('calls in flight of a program get an error when it is killed, or forgets its session', async (t) => {
  const killed = legacyStdio(t)
  const forgetful = legacyStdio(t, { forgets: { code: -32002, message: 'Server not initialized' } })
  for (const program of [killed, forgetful]) {
    const { url } = await startBridge(t, program.server)
    const client = await LegacyClient.open(url)
    await client.request('tools/list')
    const calls = () => program.messages().filter(({ method }) => method === 'tools/call').length
    const slow = client.call('wait', { ms: LONG })
    await until(() => calls() === 1, 'the slow call is in flight')
    const other = client.call(program === killed ? 'crash' : 'act')
    t.match(await slow, { status: 200, message: UNKNOWN })
    await other
    t.match(await client.request('ping'), { status: 404 })
  }
})

t.test('calls in flight of an HTTP+SSE server get an error when their stream is lost', async (t) => {
  let isLost = false
  const sse = await LegacySse.start(t, {
    override: ({ path }, response) => {
      if (!isLost || !path.startsWith(PATHS.messages)) return false
      response.writeHead(404).end()
      return true
    },
  })
  const { url } = await startBridge(t, { url: sse.url, transport: 'sse' })
  const client = await LegacyClient.open(url)
  t.match((await client.call('act')).message, { result: {} })
  const slow = client.call('wait', { ms: LONG })
  await until(() => sse.received.filter(({ message: { method } }) => method === 'tools/call').length === 2)
  isLost = true
  t.match(await client.call('act'), { status: 404 })
  t.match(await slow, { status: 200, message: UNKNOWN })
})

/** Entries of the server, by whose session a client has with it. */
const SESSIONS = { 'of the server': {}, 'of the bridge': TRANSLATED }

for (const [whose, entry] of Object.entries(SESSIONS))
  t.test(
    `a client that ends a session ${whose} hears that the outcome of its calls in flight is unknown`,
    async (t) => {
      for (const streams of [false, true]) {
        const server = await Losing.start(t, streams)
        const { url } = await startBridge(t, { url: server.http.url, ...entry })
        const client = await LegacyClient.open(url)
        const slow = client.request('tools/call', SLOW, { meta: { progressToken: 'p' } })
        await until(() => server.calls.length === 1, 'the slow call is in flight')
        t.match(await client.end(), { status: 200 })
        t.match(await slow, { status: 200, message: UNKNOWN })
      }
    },
  )
