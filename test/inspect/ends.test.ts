/** What the inspector says when a call is cancelled, and when its client goes away and comes back. */
import t, { type Test } from 'tap'
import { awaysOf } from '../../src/inspector/phases.js'
import { EventRecorder } from '../../src/inspector/recorder/recorder.js'
import { Ring } from '../../src/inspector/ring.js'
import type { CallView } from '../../src/inspector/views.js'
import { statusOf } from '../../src/inspector/words.js'
import { until } from '../support/eventually.js'
import { messages } from '../support/inspected.js'
import { LegacyClient } from '../support/legacy-client.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { envelope, send } from '../support/modern.js'
import { ModernHttp } from '../support/modern-http.js'
import { modernStdio } from '../support/modern-stdio.js'
import { openPipe } from '../support/pipe.js'
import { eventsIn } from '../support/sights.js'
import { SseClient } from '../support/sse-client.js'
import { rowsIn, startWatched, viewsOf } from '../support/watched.js'

/** Longer than the test. */
const LONG = 600_000

async function start(t: Test, entry: object, settings: object = {}) {
  const { url, views, calls } = await startWatched(t, entry, settings)
  /** The call of a tool that is looked at. */
  const call = () => calls().find(({ method, name }) => method === 'tools/call' && name !== 'echo') as CallView
  const is = (status: CallView['status']) => until(() => call()?.status === status, `the call is ${status}`)
  return { url, views, call, is }
}

t.test('a modern client that closes its connection cancels its call, and is shown as away', async (t) => {
  const { url, call, is } = await start(t, legacyStdio(t).server)
  const leaving = new AbortController()
  const body = messages.call('wait', { ms: LONG })
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': 'tools/call',
    'mcp-name': 'wait',
  }
  const sent = t.rejects(send('POST', url, body, headers, leaving.signal))
  await is('open')
  leaving.abort()
  await sent
  await is('cancelled')
  t.match(call(), { cancelled: 'disconnected', away: true })
  t.match(awaysOf(call()), [{ ms: undefined }])
  t.equal(statusOf(call()).words, 'cancelled by the client, which closed its connection')
})

t.test(
  'a call of a modern client that closes its connection is cancelled, also one that passes unchanged',
  async (t) => {
    const modern = await ModernHttp.start(t)
    const { url, call, is } = await start(t, { url: modern.url })
    // Nothing passes unchanged before the era of the server is known.
    await (await messages.post(url, messages.call('echo', {}))).text()
    const leaving = new AbortController()
    const sent = t.rejects(
      fetch(url, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          'mcp-protocol-version': '2026-07-28',
          'mcp-method': 'tools/call',
          'mcp-name': 'wait',
        },
        body: messages.call('wait', { ms: LONG }),
        signal: leaving.signal,
      }),
    )
    await until(() => modern.of('tools/call').length === 2)
    leaving.abort()
    await sent
    await is('cancelled')
    t.match(call(), { cancelled: 'disconnected', away: true })
  },
)

t.test('a legacy client cancels by a notification, or by ending its session', async (t) => {
  const modern = await ModernHttp.start(t)
  const { url, views } = await start(t, { url: modern.url })
  const cancelled = () =>
    [...views().calls.values()].flatMap(({ status, cancelled }) => (status === 'cancelled' ? [cancelled] : []))
  const client = await LegacyClient.open(url)
  const waiting = client.call('wait', { ms: LONG }, { id: 'a' })
  await until(() => modern.of('tools/call').length === 1)
  await client.notify('notifications/cancelled', { requestId: 'a', reason: 'CANARY' })
  await waiting
  await until(() => cancelled().length === 1)
  const sse = await SseClient.open(url, '2024-11-05')
  await sse.post({ jsonrpc: '2.0', id: 'b', method: 'tools/call', params: { name: 'wait', arguments: { ms: LONG } } })
  await until(() => modern.of('tools/call').length === 2)
  t.match(views().sessions.at(-1), { state: 'open', transport: 'sse' })
  sse.stream.leave()
  await until(() => cancelled().length === 2)
  t.same(cancelled(), ['notification', 'session'])
  t.notMatch(JSON.stringify([...views().calls.values()]), 'CANARY')
})

const SERVERS = {
  'a modern server over HTTP': async (t: Test) => ({ url: (await ModernHttp.start(t)).url }),
  'a modern program': async (t: Test) => modernStdio(t).server,
  'a legacy program': async (t: Test) => legacyStdio(t).server,
}
const CANCELLATION = 'in notifications/cancelled'

for (const [name, entryOf] of Object.entries(SERVERS))
  t.test(`the cancellation of a legacy client belongs to the call that it cancels: ${name}`, async (t) => {
    const { url, call, is } = await start(t, await entryOf(t))
    const client = await LegacyClient.open(url)
    const waiting = client.call('wait', { ms: LONG }, { id: 'a' })
    await until(() => call()?.upstream !== undefined, 'the server has the call')
    await client.notify('notifications/cancelled', { requestId: 'a' })
    await waiting
    await is('cancelled')
    t.same(rowsIn(call()), [
      ['in tools/call', 'out tools/call'],
      // A call over HTTP is cancelled by closing its connection.
      [CANCELLATION, name.endsWith('HTTP') ? undefined : 'out notifications/cancelled'],
    ])
  })

t.test('shows a cancellation of a modern client on a pipe', async (t) => {
  const ring = new Ring()
  const pipe = openPipe(t, legacyStdio(t).server, {}, { recorder: new EventRecorder(ring.record) })
  const call = () => [...viewsOf(eventsIn(ring)).calls.values()].find(({ name }) => name === 'wait') as CallView
  const say = (message: object) => pipe.line(JSON.stringify({ jsonrpc: '2.0', ...message }))
  const params = { name: 'wait', arguments: { ms: LONG }, _meta: envelope() }
  say({ id: 'a', method: 'tools/call', params })
  await until(() => call()?.upstream !== undefined, 'the server has the call')
  say({ method: 'notifications/cancelled', params: { requestId: 'a' } })
  await until(() => call().status === 'cancelled', 'the call has ended')
  t.same(rowsIn(call()), [
    ['in tools/call', 'out tools/call'],
    [CANCELLATION, 'out notifications/cancelled'],
  ])
})

t.test('a call that took too long names its limit', async (t) => {
  const { url, call, is } = await start(t, legacyStdio(t).server, { timeouts: { call: 100 } })
  await messages.post(url, messages.call('wait', { ms: LONG }))
  await is('fault')
  t.match(statusOf(call()), { sign: '✕', words: 'fault, timed out' })
})

t.test(
  'a legacy client that leaves the stream of a call is away until it returns, and the call continues',
  async (t) => {
    const modern = await ModernHttp.start(t)
    const { url, call, is } = await start(t, { url: modern.url })
    const client = await LegacyClient.open(url)
    const progressing = { name: 'progress', arguments: { ms: 'held' }, _meta: { progressToken: 'p' } }
    const stream = await client.stream('tools/call', progressing, { id: 'the call' })
    await stream.has(5)
    stream.leave()
    await until(() => call().away, 'the client is away')
    t.equal(statusOf(call()).words, 'open, client away')
    const again = await client.listen(stream.ids.at(1))
    await until(() => !call().away, 'the client is back')
    modern.letGo()
    await again.ended()
    await is('ok')
    t.match(awaysOf(call()), [{ ms: Number }])
    t.equal(statusOf(call()).words, 'ok')
    t.same(
      call().events.flatMap((seen) => (seen.kind === 'stream' ? [seen.what] : [])),
      ['left', 'resumed'],
    )
  },
)

t.test('a legacy client that leaves before its stream began does not get its answer', async (t) => {
  const modern = await ModernHttp.start(t)
  const { url, call, is } = await start(t, { url: modern.url })
  const client = await LegacyClient.open(url)
  const leaving = new AbortController()
  const body = client.text('tools/call', { name: 'act', arguments: { key: 'k', ms: 'held' } }, {})
  const sent = t.rejects(send('POST', client.url, body, client.headers, leaving.signal))
  await until(() => modern.of('tools/call').length === 1)
  leaving.abort()
  await sent
  // What comes after it is answered when the bridge has noticed.
  await client.request('ping')
  modern.letGo()
  await is('ok')
  await until(() => call().away, 'the client is away')
  t.equal(statusOf(call()).words, 'ok, client away')
})

t.test('a client whose server is down has no session', async (t) => {
  const { url, views } = await start(t, { url: 'http://127.0.0.1:9/mcp' })
  const { opened } = await LegacyClient.open(url)
  t.ok(opened.message.error)
  await until(() => [...views().calls.values()].some(({ status }) => status === 'fault'), 'initialize has failed')
  t.same(views().sessions, [])
})

t.test('a session has the open streams of its client', async (t) => {
  const modern = await ModernHttp.start(t)
  const { url, views } = await start(t, { url: modern.url })
  const client = await LegacyClient.open(url)
  const streams = () => views().sessions.at(-1)?.streams ?? []
  t.same(streams(), [])
  const first = await client.listen()
  await client.listen()
  await until(() => streams().length === 2, 'both streams are open')
  const [one, other] = streams()
  t.ok(Number(one?.since) < Number(other?.since))
  first.leave()
  await until(() => streams().length === 1, 'one stream is left')
  t.same(streams(), [other])
  await client.end()
  await until(() => streams().length === 0, 'the session has ended')
})
