/**
 * Event streams of a legacy client's own session with a legacy server, both over Streamable HTTP: their events are the server's,
 * which resumes its streams itself, whatever looks at the calls.
 */
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { startBridge } from '../support/bridge.js'
import { openStream } from '../support/events.js'
import { pause, until } from '../support/eventually.js'
import { temporaryFolder } from '../support/folder.js'
import { LegacyClient } from '../support/legacy-client.js'
import { send } from '../support/modern.js'
import { type Arrival, PlainHttp, sendText } from '../support/plain-http.js'

type Json = Record<string, unknown>

const SESSION = 'a_session_of_the_server'
const ODD = '{"n":12345678901234567890,"one":1.0,"dup":1,"dup":2,"e":"\\u00e9"}'
const PRIMING = 'id: 1_a/0\nretry: 500\ndata: \n\n'
const HIDES = { tools: { deny: ['hidden'] } }
const TOOLS = ['hidden', 'shown'].map((name) => ({ name, inputSchema: { type: 'object' } }))

const LANES: Record<string, (t: Test) => { entry?: Json; settings?: Json }> = {
  'an audit log': (t) => ({ settings: { audit: { file: join(temporaryFolder(t), 'audit.log') } } }),
  'a choice of tools': () => ({ entry: HIDES }),
  'scopes that nobody lacks': () => ({ entry: { scopes: { other: ['unused'] } } }),
}

/** A bridge before a server that answers so in a session, and a client of the session. */
async function start(
  t: Test,
  answer: (arrival: Arrival, response: ServerResponse) => void,
  { entry = {}, settings = {} }: { entry?: Json; settings?: Json } = {},
) {
  const server = await PlainHttp.start(t, (arrival, response) => {
    const { message, method, headers } = arrival
    const id = JSON.stringify(message?.['id'])
    if (message?.['method'] === 'initialize') {
      const result = {
        protocolVersion: '2025-11-25',
        capabilities: { tools: {} },
        serverInfo: { name: 's', version: '1' },
      }
      return sendText(response, `{"jsonrpc":"2.0","id":${id},"result":${JSON.stringify(result)}}`, {
        'mcp-session-id': SESSION,
      })
    }
    if (headers['mcp-session-id'] === undefined)
      return sendText(response, '{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}', {}, 404)
    if (method === 'POST' && message?.['id'] === undefined) return response.writeHead(202).end()
    if (method === 'DELETE') return response.writeHead(200).end()
    // A choice of tools knows the list.
    if (message?.['method'] === 'tools/list' && message['id'] !== 'list')
      return sendText(response, resultOf(message['id'], { tools: TOOLS }))
    answer(arrival, response)
  })
  const { url, bridge } = await startBridge(t, { url: server.url, ...entry }, settings)
  await bridge.server.warmUp()
  const client = await LegacyClient.open(url)
  return { server, url, client }
}

const events = (response: ServerResponse) => response.writeHead(200, { 'content-type': 'text/event-stream' })
const resultOf = (id: unknown, result: unknown) =>
  `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${JSON.stringify(result)}}`

for (const [lane, of] of Object.entries(LANES))
  t.test(
    `events pass byte for byte with ${lane}: ids, retry times, comments, none with data, all line ends`,
    async (t) => {
      const text = `${PRIMING}: ping\r\n\r\nevent: message\rdata: {"jsonrpc":"2.0","method":"x","params":${ODD}}\r\rid:1_a/1\ndata: {"jsonrpc":"2.0",\ndata: "id":"c","result":{"content":[]}}\n\n`
      const resumed = `id: 2\ndata: {"jsonrpc":"2.0","method":"notifications/message","params":${ODD}}\n\n: end\n\n`
      const { server, client } = await start(
        t,
        ({ method, headers }, response) => {
          events(response)
          if (method === 'POST') for (const byte of Buffer.from(text)) response.write(Buffer.of(byte))
          if (method === 'POST') response.end()
          else response.write(headers['last-event-id'] === undefined ? PRIMING : resumed)
        },
        of(t),
      )
      const posted = await client.stream('tools/call', { name: 'shown' }, { id: 'c' })
      await posted.ended()
      t.equal(posted.text, text)
      const listening = await client.listen()
      await until(() => listening.text === PRIMING, 'the first event')
      const resuming = await client.listen('1_a/0', { 'x-vendor': 'v' })
      await until(() => resuming.text === resumed, 'the events after it')
      t.match(server.received.at(-1), {
        method: 'GET',
        headers: { 'last-event-id': '1_a/0', 'x-vendor': 'v', 'mcp-session-id': SESSION },
      })
      listening.leave()
      resuming.leave()
      await until(() => server.abandoned.length === 2, 'the end of both streams at the server')
    },
  )

t.test('a client resumes a stream that the server closes before the answer, and policies see the answer', async (t) => {
  const { server, client } = await start(
    t,
    ({ method, headers }, response) => {
      events(response)
      if (method === 'POST') return response.end(PRIMING)
      if (headers['last-event-id'] === undefined) return response.flushHeaders()
      t.equal(headers['last-event-id'], '1_a/0')
      const told = '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":1.0}}'
      response.end(`id: 1\ndata: ${told}\n\nid: 2\ndata: ${resultOf('list', { tools: TOOLS })}\n\n`)
    },
    { entry: HIDES },
  )
  const posted = await client.stream('tools/list', {}, { id: 'list' })
  await posted.ended()
  t.equal(posted.text, PRIMING, 'no error ends it')
  const resumed = await client.listen('1_a/0')
  await resumed.ended()
  t.same(resumed.ids, ['1', '2'])
  t.match(resumed.messages[0], { method: 'notifications/progress', params: { progressToken: 'p' } })
  t.match(resumed.answer('list'), { result: { tools: [{ name: 'shown' }] } })
  t.equal((resumed.answer('list') as { result: { tools: Json[] } }).result.tools.length, 1)
  t.equal(server.of('tools/list').length, 1, 'nothing is sent twice')
  const resumptions = server.received.filter(({ headers }) => headers['last-event-id'] !== undefined)
  t.equal(resumptions.length, 1, 'and the bridge resumes nothing')
})

t.test('a client that left a stream with ids gets the answer where it resumes', async (t) => {
  let waiting: ServerResponse | undefined
  const { server, client } = await start(
    t,
    ({ method, headers }, response) => {
      events(response)
      if (method === 'GET' && headers['last-event-id'] === undefined) return response.flushHeaders()
      if (method === 'GET') return response.end(`id: 2\ndata: ${resultOf('list', { tools: TOOLS })}\n\n`)
      waiting = response
      response.write(PRIMING)
    },
    { entry: HIDES },
  )
  const posted = await client.stream('tools/list', {}, { id: 'list' })
  await until(() => posted.text === PRIMING, 'the first event')
  posted.leave()
  await until(() => server.abandoned.length === 1, 'the end of the stream at the server')
  t.ok(waiting?.destroyed)
  const resumed = await client.listen('1_a/0')
  await resumed.ended()
  t.match(resumed.answer('list'), { result: { tools: [{ name: 'shown' }] } })
  t.equal((resumed.answer('list') as { result: { tools: Json[] } }).result.tools.length, 1)
  t.equal(server.of('notifications/cancelled').length, 0, 'who leaves has not cancelled')
})

t.test('an answer that nobody waits for reaches the client, unless it might have what is hidden', async (t) => {
  for (const [lane, passes] of [
    ['an audit log', true],
    ['a choice of tools', false],
  ] as const) {
    const stray = `data: ${resultOf('before', { tools: TOOLS })}\n\n`
    const odd = 'data: {"odd":1}\n\n'
    const { client } = await start(
      t,
      (_arrival, response) => events(response).end(`${PRIMING}${stray}${odd}: end\n\n`),
      LANES[lane]?.(t),
    )
    const stream = await client.listen('1_a/0')
    await stream.ended()
    t.equal(stream.text, passes ? `${PRIMING}${stray}${odd}: end\n\n` : `${PRIMING}: end\n\n`)
  }
})

t.test('a client that leaves a stream without ids leaves the server, and has not cancelled', async (t) => {
  const { server, client } = await start(t, () => {}, { entry: HIDES })
  const leaving = new AbortController()
  const text = '{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"shown"}}'
  const gone = t.rejects(send('POST', client.url, text, client.headers, leaving.signal))
  await until(() => server.of('tools/call').length === 1, 'the call')
  leaving.abort()
  await gone
  await until(() => server.abandoned.length === 1, 'the end at the server')
  t.equal(server.of('notifications/cancelled').length, 0)
})

t.test('a stream that the server refuses is refused to the client', async (t) => {
  let status = 200
  const { client } = await start(
    t,
    ({ method }, response) => {
      if (method === 'GET') return sendText(response, '{"ok":true}', {}, status)
      events(response).end('data: {"jsonrpc":"2.0","id":"c","result":{}}\n\n')
    },
    { entry: HIDES },
  )
  for (const [said, seen] of [
    [200, 405],
    [405, 405],
    [409, 409],
    [503, 503],
    [404, 404],
  ] as const) {
    status = said
    const stream = await client.listen()
    t.equal(stream.status, seen)
    if (seen === 405) t.match(stream.headers.allow, 'POST')
  }
})

t.test('a session has no more than four streams, and each gets its own events', async (t) => {
  let count = 0
  const { client, url } = await start(
    t,
    (_arrival, response) => {
      events(response).write(`data: {"jsonrpc":"2.0","method":"notifications/message","params":{"n":${++count}}}\n\n`)
    },
    { entry: HIDES },
  )
  const streams = []
  for (let n = 0; n < 4; n++) streams.push(await client.listen())
  await Promise.all(streams.map((stream) => stream.has(1)))
  t.same(
    streams.map(({ messages }) => (messages[0] as { params: Json }).params['n']),
    [1, 2, 3, 4],
  )
  const headers = { ...client.headers, 'content-type': undefined }
  const more = await openStream('GET', url, { ...headers, accept: 'text/event-stream' })
  t.equal(more.status, 429)
  for (const stream of streams) stream.leave()
})

/** Questions are numbered from 0. */
const LAST = 20
const QUESTION = '{"jsonrpc":"2.0","id":"q","method":"roots/list"}'

t.test('what a server asks while its client has no stream waits for the next one', async (t) => {
  let own: ServerResponse | undefined
  const { client } = await start(t, ({ method }, response) => {
    events(response).flushHeaders()
    if (method === 'GET') own ??= response
  })
  const left = await client.listen()
  left.leave()
  // The first ones may still be sent on the connection that has just ended.
  for (let n = 0; n <= LAST; n++) {
    own?.write(`data: {"jsonrpc":"2.0","id":${n},"method":"roots/list"}\n\n`)
    await pause(50)
  }
  const next = await client.listen()
  await until(() => next.messages.some(({ id }) => id === LAST), 'the last question')
  t.notOk(own?.destroyed)
})

/** A server that has one stream at a time in a session, which begins with this text, or with a question where it is resumed. */
async function startWithOneStream(t: Test, beginning: string) {
  const open = new Set<ServerResponse>()
  const { client } = await start(t, ({ method, headers }, response) => {
    if (method !== 'GET') return events(response).flushHeaders()
    if (open.size > 0) return sendText(response, '{"error":"Only one stream"}', {}, 409)
    open.add(response)
    response.on('close', () => open.delete(response))
    events(response).flushHeaders()
    response.write(headers['last-event-id'] === undefined ? beginning : `id: 2\ndata: ${QUESTION}\n\n`)
  })
  return { client, open }
}

t.test('a stream with ids that its client has left is resumed at a server that has only one', async (t) => {
  const { client, open } = await startWithOneStream(t, PRIMING)
  const first = await client.listen()
  await until(() => first.text === PRIMING, 'the first event')
  first.leave()
  await until(() => open.size === 0, 'the end of the stream at the server')
  const resumed = await client.listen('1_a/0')
  await until(() => resumed.messages.some(({ id }) => id === 'q'), 'what it has missed')
})

t.test('the stream of the bridge gives way to one that the client resumes from before', async (t) => {
  const { client, open } = await startWithOneStream(t, '')
  const resumed = await client.listen('of-another-replica')
  t.equal(resumed.status, 200)
  await until(() => resumed.messages.some(({ id }) => id === 'q'), 'what it has missed')
  t.equal(open.size, 1)
})

t.test('a server that knows no streams keeps its session, and answers the calls in flight', async (t) => {
  let waiting: ServerResponse | undefined
  const { client } = await start(t, ({ method }, response) => {
    if (method === 'GET') return sendText(response, '{"error":"Not found"}', {}, 404)
    waiting = response
  })
  const calling = client.request('tools/call', { name: 'shown' }, { id: 'c' })
  await until(() => waiting !== undefined, 'the call')
  t.equal((await client.listen()).status, 404)
  sendText(waiting as ServerResponse, resultOf('c', { content: [] }))
  t.match((await calling).message, { id: 'c', result: { content: [] } })
  t.match((await client.request('tools/list')).message, { result: { tools: TOOLS } })
})
