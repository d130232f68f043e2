/** What the inspector shows of calls that pass unchanged: large answers, those that are refused or break off, and lists of tools. */
import type { ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { EventRecorder } from '../../src/inspector/recorder/recorder.js'
import { redactor } from '../../src/inspector/redact.js'
import { Ring } from '../../src/inspector/ring.js'
import { httpStatus, type MessageRow, rowsOf } from '../../src/inspector/rows.js'
import { type CallView, Views } from '../../src/inspector/views.js'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { messages } from '../support/inspected.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { ModernHttp } from '../support/modern-http.js'
import { eventsIn } from '../support/sights.js'

type Answer = (response: ServerResponse, id: unknown) => void
const JSON_TYPE = { 'content-type': 'application/json' }
const EVENTS = { 'content-type': 'text/event-stream' }
const LARGE = 'é'.repeat(600_000)

/** A bridge whose server answers a method in this way, once its era is known. */
async function start(t: Test, method: string, answer: Answer, settings: object = {}) {
  const ring = new Ring({ payloads: 'all' })
  const server = await ModernHttp.start(t, {
    override: ({ message }, response) => {
      const asked = message as { id: unknown; method: string; params?: { name?: string } }
      if (asked.method !== method || asked.params?.name === 'warm') return false
      answer(response, asked.id)
      return true
    },
  })
  const { url } = await startBridge(t, { url: server.url }, settings, { recorder: new EventRecorder(ring.record) })
  await (await messages.post(url, messages.call('warm', {}))).text()
  const calls = () => {
    const views = new Views()
    for (const seen of eventsIn(ring)) views.add(seen)
    return [...views.calls.values()]
  }
  /** The call, once it has ended. */
  const call = async (text: string): Promise<CallView> => {
    const before = calls().length
    await messages.post(url, text).then(
      (response) => response.text().catch(() => ''),
      () => '',
    )
    await until(() => calls()[before] !== undefined && calls()[before]?.status !== 'open', 'the call has ended')
    return calls()[before] as CallView
  }
  return { ring, call, url }
}

function shown(call: CallView) {
  const one = (message: MessageRow | undefined) =>
    message && [message.dir, message.form, message.id, httpStatus(message, call)].filter((value) => value !== undefined)
  return rowsOf(call).map(({ client, server }) => [one(client), one(server)])
}

const textOf = (id: unknown) => JSON.stringify({ jsonrpc: '2.0', id, result: { content: [], text: LARGE } })

t.test('records size, id and the start of the text of an answer of a megabyte', async (t) => {
  const { call } = await start(t, 'tools/call', (response, id) => {
    // Without a length, and in several chunks.
    response.writeHead(200, JSON_TYPE)
    for (const part of textOf(id).match(/.{1,100000}/gs) ?? []) response.write(part)
    response.end()
  })
  const seen = await call(messages.call('large', {}))
  t.match(seen, { status: 'ok' })
  t.same(shown(seen), [
    [
      ['in', 'request', 1],
      ['out', 'request', 1],
    ],
    [
      ['out', 'result', 1, 200],
      ['in', 'result', 1, 200],
    ],
  ])
  const answer = seen.events.findLast((event) => event.kind === 'message') as MessageRow
  t.equal(answer.bytes, Buffer.byteLength(textOf(1)))
  t.ok(textOf(1).startsWith(answer.payload?.text.slice(0, -1) ?? 'none'))
  t.ok((answer.payload?.cut ?? 0) > 500_000)
})

t.test('records the events of a stream after a large one', async (t) => {
  const { call } = await start(t, 'tools/call', (response, id) => {
    const progress = (text: string) =>
      `data: ${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 1, progress: 1, text } })}\n\n`
    response.writeHead(200, EVENTS)
    response.write(progress('a'))
    response.write(progress(LARGE))
    response.write(progress('b'))
    response.end(`data: ${textOf(id)}\n\n`)
  })
  const seen = await call(messages.call('stream', {}, { meta: { progressToken: 1 } }))
  t.equal(seen.status, 'ok')
  const arrived = seen.events.filter(
    (event): event is MessageRow => event.kind === 'message' && event.hop === 'server' && event.dir === 'in',
  )
  t.same(
    arrived.map(({ form, method, id }) => [form, method, id]),
    [
      ['notification', 'notifications/progress', undefined],
      ['notification', 'notifications/progress', undefined],
      ['notification', 'notifications/progress', undefined],
      ['result', undefined, 1],
    ],
  )
  t.equal(arrived.at(-1)?.bytes, Buffer.byteLength(textOf(1)))
})

t.test('records refusals of the server, and the answers that replace them for the client', async (t) => {
  for (const [status, body, fault] of [
    [500, 'it broke', 'upstreamProtocol'],
    [503, '', 'upstreamUnavailable'],
  ] as const) {
    const { call } = await start(t, 'tools/call', (response) => response.writeHead(status).end(body))
    const seen = await call(messages.call('broken', {}))
    t.equal(seen.status, 'fault', `${status} ${seen.fault} ${fault}`)
    t.match(shown(seen), [
      [
        ['in', 'request', 1],
        ['out', 'request', 1],
      ],
      [
        ['out', 'error', 1, Number],
        ['in', 'error', status],
      ],
    ])
  }
})

t.test('shows the refusal of a translated call', async (t) => {
  const ring = new Ring({ payloads: 'all' })
  const legacy = await LegacyHttp.start(t, {
    override: ({ message }, response) => {
      if (message['method'] !== 'tools/call') return false
      response.writeHead(503, { 'content-type': 'text/plain' }).end('it rests')
      return true
    },
  })
  const { url } = await startBridge(t, { url: legacy.url }, {}, { recorder: new EventRecorder(ring.record) })
  await (await messages.post(url, messages.call('echo', {}))).text()
  const refused = eventsIn(ring).find(
    (seen): seen is MessageRow => seen.kind === 'message' && seen.hop === 'server' && seen.http?.status === 503,
  )
  t.match(refused, {
    call: String,
    form: 'error',
    bytes: 8,
    http: { headers: { 'content-type': 'text/plain' } },
    payload: { text: 'it rests' },
  })
})

t.test('records a stream that breaks off, and an answer that is not a message', async (t) => {
  const broken = await start(t, 'tools/call', (response) => {
    response.writeHead(200, EVENTS)
    response.end(
      'data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}\n\n',
    )
  })
  const seen = await broken.call(messages.call('broken', {}))
  t.equal(seen.status, 'fault')
  t.match(shown(seen).at(-1), [['out', 'error', 1, 200], undefined])
  const html = await start(t, 'tools/call', (response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).end('<p>Hello</p>')
  })
  const other = await html.call(messages.call('broken', {}))
  t.equal(other.status, 'fault')
  t.match(shown(other).at(-1)?.[0], ['out', 'error', 1])
})

t.test('does not show a request at the server that the bridge did not send', async (t) => {
  const waiting: ServerResponse[] = []
  const { call, url } = await start(t, 'tools/call', (response) => waiting.push(response), {
    limits: { callsPerServer: 1 },
  })
  const first = messages.post(url, messages.call('waits', {})).catch(() => undefined)
  await until(() => waiting.length === 1, 'the first is at the server')
  const seen = await call(messages.call('second', {}, { id: 2 })).catch(() => undefined)
  t.match(seen, { status: 'fault' })
  if (seen) t.same(shown(seen)[0]?.[1], undefined)
  for (const response of waiting)
    response.writeHead(200, JSON_TYPE).end('{"jsonrpc":"2.0","id":1,"result":{"content":[]}}')
  await (await first)?.text()
})

t.test('learns secret arguments from lists of tools in any form', async (t) => {
  const described = (pad: number) => {
    const secret = { name: 'open', inputSchema: { properties: { pin: { type: 'string', writeOnly: true } } } }
    return {
      tools: [...Array.from({ length: pad }, (_, i) => ({ name: `t${i}`, description: 'x'.repeat(1_000) })), secret],
    }
  }
  for (const [about, pad, isEvents] of [
    ['small', 0, false],
    ['of 100 KiB', 100, false],
    ['of 100 KiB, as an event', 100, true],
    ['of 2 MiB', 2_000, false],
    ['of 2 MiB, as an event', 2_000, true],
  ] as const) {
    const { ring, call } = await start(t, 'tools/list', (response, id) => {
      const text = JSON.stringify({
        jsonrpc: '2.0',
        id,
        result: { resultType: 'complete', ttlMs: 0, ...described(pad) },
      })
      response.writeHead(200, isEvents ? EVENTS : JSON_TYPE).end(isEvents ? `data: ${text}\n\n` : text)
    })
    const listing = messages.call('', {}).replace('tools/call', 'tools/list').replace('"name":"","arguments":{},', '')
    t.match(await call(listing), { status: 'ok' }, about)
    const seen = await call(messages.call('warm', { pin: 'CANARY', city: 'Oslo' }))
    const texts = seen.events.flatMap((event) => (event.kind === 'message' ? [event.payload?.text ?? ''] : []))
    const redact = redactor([])
    for (const text of texts.map((one) => redact(one, (path) => ring.secretArguments.has(seen.server, path)).text)) {
      if (text.includes('"method"')) t.notMatch(text, /CANARY/, about)
      if (text.includes('"method"') && pad < 2_000) t.match(text, /Oslo/, 'others are shown')
    }
  }
})
