/** What the inspector says of HTTP towards clients: the status that they got, and the headers that they sent. */
import t, { type Test } from 'tap'
import type { RecordedEvent } from '../../src/inspector/recorder/events.js'
import { EventRecorder } from '../../src/inspector/recorder/recorder.js'
import { clientOf, httpStatus } from '../../src/inspector/rows.js'
import { type CallView, Views } from '../../src/inspector/views.js'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { messages } from '../support/inspected.js'
import { LegacyClient } from '../support/legacy-client.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { ModernHttp } from '../support/modern-http.js'
import { eventsIn, tickingRing } from '../support/sights.js'
import { SseClient } from '../support/sse-client.js'

async function start(t: Test, entry: object, payloads: 'off' | 'all' = 'off', settings: object = {}) {
  const ring = tickingRing({ payloads })
  const { url } = await startBridge(t, entry, settings, { recorder: new EventRecorder(ring.record) })
  const calls = () => {
    const views = new Views()
    for (const seen of eventsIn(ring)) views.add(seen)
    return [...views.calls.values()]
  }
  /** The status of the answer of the newest call, when it has ended. */
  const status = async () => {
    await until(() => calls().at(-1)?.status !== 'open', 'the call has ended')
    return statusIn(calls().at(-1) as CallView)
  }
  return { url, calls, status }
}

function statusIn(call: CallView): number | undefined {
  const answer = call.events.findLast((seen) => seen.kind === 'message' && seen.hop === 'client' && seen.dir === 'out')
  return answer && httpStatus(answer as Extract<RecordedEvent, { kind: 'message' }>, call)
}

/** The heads of the requests of clients, by method. */
function headsIn(calls: readonly CallView[]): [method: string, head: object | undefined][] {
  return calls
    .flatMap(({ events }) => events)
    .flatMap((seen) =>
      seen.kind === 'message' && seen.hop === 'client' && seen.dir === 'in' && seen.form === 'request'
        ? [[seen.method ?? '', seen.http?.headers]]
        : [],
    )
}

t.test('shows the HTTP status that a modern client received', async (t) => {
  const { url, status } = await start(t, legacyStdio(t).server)
  const bodies = [
    messages.call('echo', {}),
    messages.call('nope', {}),
    messages.call('echo', {}).replace('tools/call', 'no/such'),
    messages.call('echo', {}).replace('tools/call', 'logging/setLevel'),
    messages.call('progress', {}, { meta: { progressToken: 'p' } }),
  ]
  const seen = new Set<number>()
  for (const body of bodies) {
    const response = await messages.post(url, body)
    await response.text()
    t.equal(await status(), response.status, body)
    seen.add(response.status)
  }
  t.same([...seen], [200, 404])
})

t.test('shows the status of a server that is down, and of an answer that has become an event stream', async (t) => {
  const { url, status } = await start(t, { command: 'no-such-program' })
  const response = await messages.post(url, messages.call('echo', {}))
  await response.text()
  t.equal(response.status, 502)
  t.equal(await status(), 502)

  const slow = await start(t, legacyStdio(t).server, 'off', { timeouts: { call: 500, commitAfter: 10 } })
  const late = await messages.post(slow.url, messages.call('wait', { ms: 600_000 }))
  t.match(await late.text(), /upstream_timeout/)
  t.equal(late.status, 200)
  t.equal(await slow.status(), 200)
})

t.test('shows headers of an answer that passes unchanged', async (t) => {
  const modern = await ModernHttp.start(t)
  const { url, status } = await start(t, { url: modern.url })
  await (await messages.post(url, messages.call('echo', {}))).text()
  for (const body of [messages.call('echo', {}), messages.call('echo', {}).replace('tools/call', 'no/such')]) {
    const response = await messages.post(url, body)
    await response.text()
    t.equal(await status(), response.status, body)
  }
})

t.test('shows headers of legacy clients, except those that may be secret', async (t) => {
  const modern = await ModernHttp.start(t)
  const { url, calls, status } = await start(t, { url: modern.url })
  const headers = { authorization: 'Bearer CANARY-token', cookie: 'CANARY-cookie' }
  const client = await LegacyClient.open(url, { headers })
  await client.call('echo', {})
  t.equal(await status(), 200)
  const sse = await SseClient.open(url, '2024-11-05', {}, headers)
  await sse.request('tools/call', { name: 'echo', arguments: {} })
  t.equal(await status(), undefined, 'an answer on the stream of HTTP+SSE has no status')
  const json = { 'content-type': 'application/json' }
  const both = { ...json, accept: 'application/json, text/event-stream' }
  t.match(headsIn(calls()), [
    ['initialize', both],
    ['tools/call', { ...both, 'mcp-protocol-version': '2025-11-25' }],
    ['initialize', json],
    ['tools/call', json],
  ])
  t.notMatch(JSON.stringify(calls()), /CANARY/)
  t.notOk(JSON.stringify(calls()).includes(client.session))
})

t.test('shows the headers of initialize for a direct session', async (t) => {
  const legacy = await LegacyHttp.start(t)
  const { url, calls } = await start(t, { url: legacy.url })
  const client = await LegacyClient.open(url, { headers: { authorization: 'Bearer CANARY-token' } })
  await client.call('echo', {})
  await until(() => calls().some(({ method, status }) => method === 'tools/call' && status === 'ok'))
  const called = calls().find(({ method }) => method === 'tools/call')
  t.match(called, { client: { name: 'old' } }, 'its name, too')
  const heads = new Map(headsIn(calls()))
  t.match(heads.get('initialize'), { accept: 'application/json, text/event-stream' })
  t.notMatch(JSON.stringify(calls()), /CANARY/)
})

t.test(
  'finds the name of a modern client whose calls pass unchanged, and of another in the stored texts',
  async (t) => {
    const modern = await ModernHttp.start(t)
    const { url, calls } = await start(t, { url: modern.url }, 'all')
    await (await messages.post(url, messages.call('echo', {}))).text()
    await (await messages.post(url, messages.call('echo', {}))).text()
    await until(() => calls().length === 2 && calls().every(({ status }) => status === 'ok'))
    const [, passed] = calls()
    t.match(passed, { client: { name: 'test' } })
    const unnamed = passed && { ...passed, client: { era: 'modern' } as const }
    t.match(unnamed && clientOf(unnamed), { era: 'modern', name: 'test' })
    const cut = { text: '{"params":{"_meta":{"io.modelcontextprotocol/clientInfo":{"name":"te', cut: 9, hidden: 0 }
    const message = {
      v: 1,
      seq: 1,
      at: 1,
      kind: 'message',
      hop: 'client',
      dir: 'in',
      form: 'request',
      bytes: 1,
    } as const
    const client = { era: 'modern' } as const
    t.equal(clientOf({ client, events: [{ ...message, payload: cut }] }), client)
  },
)
