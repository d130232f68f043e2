/** Streams of events towards legacy clients: what is on them, what becomes of those that break, and who takes a call back. */
import type { ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { besideTheQuestion, LegacyClient, type OpenOptions } from '../support/legacy-client.js'
import { send } from '../support/modern.js'
import { type Arrived, ModernHttp } from '../support/modern-http.js'
import { modernStdio } from '../support/modern-stdio.js'

const RESUMABLE = ['2025-03-26', '2025-06-18', '2025-11-25']
const REVISIONS = ['2024-11-05', ...RESUMABLE]
const progressing = (ms: number | 'held') => ({ name: 'progress', arguments: { ms }, _meta: { progressToken: 'p' } })

/** No response becomes a stream because the machine is busy. */
const PATIENT = { timeouts: { commitAfter: 3_600_000 } }

async function start(t: Test, settings: object = PATIENT) {
  const modern = await ModernHttp.start(t)
  const { url, log } = await startBridge(t, { url: modern.url }, settings)
  /** Calls of tools that are over, and how. */
  const over = () => log.filter(({ event, method }) => event === 'call' && method === 'tools/call')
  return { modern, url, over, open: (options?: OpenOptions) => LegacyClient.open(url, options) }
}

const calls = (modern: ModernHttp) => modern.cancelled.filter(({ message }) => message?.['method'] === 'tools/call')

t.test('the first event of a stream has an id and no data in 2025-11-25, and never before', async (t) => {
  const { open } = await start(t)
  for (const revision of REVISIONS) {
    const client = await open({ revision })
    const listening = await client.listen()
    const posted = await client.stream('tools/call', progressing(1))
    await posted.ended()
    await until(() => listening.text !== '')
    for (const stream of [posted, listening]) {
      t.match(
        stream.headers,
        { 'content-type': 'text/event-stream', 'cache-control': 'no-store, no-transform' },
        revision,
      )
      t.equal(stream.headers['x-accel-buffering'], 'no')
      const primed = stream.events.filter(({ data }) => data === '')
      if (revision === '2025-11-25') {
        t.same(primed, stream.events.slice(0, 1), revision)
        t.match(stream.events[0], { id: /^[pg]\d+-0$/, retry: '1000', data: '' })
      } else {
        t.same(primed, [], revision)
        t.notMatch(stream.text, /^retry:/m, revision)
      }
    }
    t.equal(posted.messages.length, 6)
    const ids = posted.events.filter(({ data }) => data).map(({ id }) => id)
    if (revision === '2024-11-05') t.notMatch(posted.text, /^id:/m)
    else t.equal(new Set(ids).size, 6, 'every event has an id of its own')
    listening.leave()
  }
})

t.test('a replay is of the same stream, and starts after the named event', async (t) => {
  const { open } = await start(t)
  for (const revision of RESUMABLE) {
    const client = await open({ revision })
    const [first, second] = await Promise.all([
      client.stream('tools/call', progressing(150), { id: 'first' }),
      client.stream('tools/call', progressing(150), { id: 'second' }),
    ])
    await Promise.all([first.ended(), second.ended()])
    for (const stream of [first, second]) {
      const events = stream.events.filter(({ data }) => data)
      for (const [at, { id }] of events.slice(0, -1).entries()) {
        const again = await client.listen(id)
        t.equal(again.status, 200)
        await again.ended()
        t.same(
          again.events.filter(({ data }) => data),
          events.slice(at + 1),
          `${revision}, after ${id}`,
        )
      }
      t.equal((await client.listen(events.at(-1)?.id)).status, 405, 'nothing follows the last one')
    }
    if (revision === '2025-11-25') {
      const again = await client.listen(first.events[0]?.id)
      await again.ended()
      t.same(again.messages, first.messages, 'from the event without data on')
      t.notOk(again.events.some(({ data }) => data === ''))
    }
  }
})

t.test('of two open streams each notification comes on exactly one, the newest', async (t) => {
  const { open, modern } = await start(t)
  const client = await open()
  const older = await client.listen()
  const newer = await client.listen()
  await until(() => modern.subscriptions === 1)
  for (let n = 1; n <= 3; n++) {
    modern.touch({ tools: true })
    await newer.has(n)
  }
  modern.touch({ prompts: true, resources: true })
  await newer.has(5)
  t.same(older.messages, [])
  t.notOk(older.over, 'and the older one stays open')
  t.same(
    newer.messages.map(({ method }) => method),
    [
      ...Array.from({ length: 3 }, () => 'notifications/tools/list_changed'),
      'notifications/prompts/list_changed',
      'notifications/resources/list_changed',
    ],
  )
  newer.leave()
  await until(() => {
    modern.touch({ tools: true })
    return older.messages.length > 0
  }, 'a notification on the stream that is left')
})

t.test('a stream for notifications is resumed where it broke, without loss or repetition', async (t) => {
  const { open, modern } = await start(t)
  const client = await open()
  const first = await client.listen()
  await until(() => modern.subscriptions === 1)
  modern.touch({ tools: true })
  await first.has(1)
  const last = first.ids.at(-1)
  first.leave()
  modern.touch({ prompts: true })
  const second = await client.listen(last)
  t.equal(second.status, 200)
  await second.has(1)
  modern.touch({ resources: true })
  await second.has(2)
  t.same(
    second.messages.map(({ method }) => method),
    ['notifications/prompts/list_changed', 'notifications/resources/list_changed'],
  )
  for (const id of second.ids) t.equal(id.split('-')[0], last?.split('-')[0], 'it is the same stream')
  t.equal(modern.of('subscriptions/listen').length, 1, 'the server has noticed nothing')
})

t.test('a session may have four streams open, and no more', async (t) => {
  const { open } = await start(t)
  const client = await open()
  const streams = await Promise.all(Array.from({ length: 4 }, () => client.listen()))
  for (const { status } of streams) t.equal(status, 200)
  t.match(await client.listen(), { status: 429, headers: { 'retry-after': '1' } })
})

t.test('an unknown event cannot be resumed', async (t) => {
  const { open } = await start(t)
  const client = await open()
  const other = await open()
  const stream = await other.stream('tools/call', progressing(1))
  await stream.ended()
  const foreign = String(stream.ids[1])
  const ids = ['made-up', '', 'p1', 'p1-', '-1', 'p0-0', 'g9-1', 'p1-99', `p${'9'.repeat(400)}-1`, foreign]
  for (const id of ids) {
    const again = await client.listen(id)
    t.equal(again.status, 405, id)
    t.match(again.headers.allow, /POST/)
  }
  t.equal((await client.request('ping')).status, 200)
})

t.test('a client that disconnects has not cancelled: what it missed waits for it', async (t) => {
  const { open, modern, over } = await start(t)
  for (const revision of RESUMABLE) {
    const client = await open({ revision })
    const done = over().length
    const stream = await client.stream('tools/call', progressing('held'), { id: 'the call' })
    await stream.has(2)
    const seen = stream.messages.length
    const last = stream.ids.at(-1)
    stream.leave()
    modern.letGo()
    await until(() => over().length > done, 'the end of the call')
    t.match(over().at(-1), { outcome: 'ok' }, revision)
    const again = await client.listen(last)
    t.equal(again.status, 200)
    await again.ended()
    t.equal(seen + again.messages.length, 6, revision)
    t.match(again.answer('the call'), { result: { content: [] } })
    t.equal((await client.listen(again.ids.at(-1))).status, 405)
  }
  t.same(calls(modern), [])
})

t.test('a client that returns before the answer gets it when it arrives', async (t) => {
  const { open, modern } = await start(t)
  const client = await open()
  const stream = await client.stream('tools/call', progressing('held'), { id: 'the call' })
  await stream.has(5)
  stream.leave()
  const again = await client.listen(stream.ids.at(-1))
  t.equal(again.answer('the call'), undefined, 'it has not come yet')
  modern.letGo()
  await again.ended()
  t.match(again.answer('the call'), { result: { content: [] } })
  const twice = await client.listen(stream.ids.at(2))
  await twice.ended()
  t.equal(twice.messages.length, 6 - 2)
  t.same(calls(modern), [])
})

t.test('a resumption ends the earlier connection', async (t) => {
  const { open } = await start(t)
  const client = await open()
  const stream = await client.stream('tools/call', progressing(60_000))
  await stream.has(5)
  const again = await client.listen(stream.ids.at(1))
  await again.has(4)
  await stream.ended()
  t.notOk(again.over)
  t.equal(stream.messages.length, 5)
  await client.end()
})

t.test('without event ids the call continues, and its answer is lost', async (t) => {
  const { open, modern, over } = await start(t)
  const client = await open({ revision: '2024-11-05' })
  const stream = await client.stream('tools/call', progressing('held'))
  await stream.has(2)
  stream.leave()
  modern.letGo()
  await until(() => over().length === 1)
  t.match(over()[0], { outcome: 'ok' })
  t.same(calls(modern), [])
})

t.test('disconnecting before anything was sent is no cancellation, either', async (t) => {
  const { open, modern, over } = await start(t)
  const client = await open()
  const leaving = new AbortController()
  const body = client.text('tools/call', { name: 'act', arguments: { key: 'k', ms: 'held' } }, {})
  const sent = t.rejects(send('POST', client.url, body, client.headers, leaving.signal))
  await until(() => modern.of('tools/call').length === 1)
  leaving.abort()
  await sent
  // What comes after it is answered when the bridge has noticed.
  await client.request('ping')
  modern.letGo()
  await until(() => over().length === 1, 'the end of the call')
  t.match(over()[0], { outcome: 'ok' })
  t.equal(modern.executed, 1)
  t.same(calls(modern), [])
})

t.test('a cancelled call is cancelled at the server, and not answered', async (t) => {
  const { open, modern } = await start(t)
  const client = await open()
  const waiting = client.call('wait', { ms: 60_000 }, { id: 'a' })
  await until(() => modern.of('tools/call').length === 1)
  t.equal((await client.notify('notifications/cancelled', { requestId: 'b' })).status, 202)
  t.equal((await client.notify('notifications/cancelled', { requestId: 'a', reason: 'Enough' })).status, 202)
  const answer = await waiting
  t.equal(answer.status, 202)
  t.equal(answer.text, '')
  await until(() => calls(modern).length === 1)
  t.equal(modern.of('notifications/cancelled').length, 0)
  t.same(besideTheQuestion(modern.violations()), [])
})

t.test('a stream whose call is cancelled ends with an error if it has ids, otherwise without', async (t) => {
  const { open, modern } = await start(t)
  for (const revision of REVISIONS) {
    const client = await open({ revision })
    const before = calls(modern).length
    const stream = await client.stream('tools/call', progressing(60_000), { id: 'a' })
    await stream.has(5)
    await client.notify('notifications/cancelled', { requestId: 'a' })
    await stream.ended()
    await until(() => calls(modern).length > before)
    const answer = stream.answer('a')
    if (revision === '2024-11-05') {
      t.equal(answer, undefined)
    } else {
      t.match(answer, { error: { code: -32603, message: 'Request cancelled' } }, revision)
      t.equal((await client.listen(stream.ids.at(-1))).status, 405)
    }
  }
})

t.test('on a pipe the server gets one cancellation, with the id that it knows', async (t) => {
  const modern = modernStdio(t)
  const { url } = await startBridge(t, modern.server, PATIENT)
  const client = await LegacyClient.open(url)
  const sent = () => modern.messages().filter(({ method }) => method === 'tools/call')
  const waiting = client.call('wait', { ms: 60_000 }, { id: 0 })
  await until(() => sent().length === 1)
  const vanishing = await client.stream('tools/call', progressing(60_000))
  await vanishing.has(5)
  vanishing.leave()
  await client.notify('notifications/cancelled', { requestId: 0 })
  t.equal((await waiting).status, 202)
  await until(() => modern.cancelled().length === 1)
  t.same(modern.cancelled(), [sent()[0]?.['id']])
  t.ok(Number(sent()[0]?.['id']) >= 1)
  await client.end()
  await until(() => modern.cancelled().length === 2, 'the end of the session')
  t.same(besideTheQuestion(modern.violations()), [])
})

t.test('cancels neither of two requests with one id', async (t) => {
  const { open, modern } = await start(t)
  const client = await open()
  const both = [1, 2].map((n) => client.call('wait', { ms: 'held', say: `say ${n}` }, { id: 1 }))
  await until(() => modern.of('tools/call').length === 2)
  await client.notify('notifications/cancelled', { requestId: 1 })
  modern.letGo()
  const answers = await Promise.all(both)
  answers.forEach(({ text }, n) => t.match(text, `"say ${n + 1}"`))
})

t.test('nothing follows the error that a stream ended with', async (t) => {
  const modern = await ModernHttp.start(t, { override: failLate })
  const { url } = await startBridge(t, { url: modern.url })
  for (const revision of RESUMABLE) {
    const client = await LegacyClient.open(url, { revision })
    const stream = await client.stream('tools/call', { name: 'fail late', _meta: { progressToken: 'p' } }, { id: 'f' })
    await stream.ended()
    t.match(stream.messages, [{ params: { progressToken: 'p', progress: 1 } }, { id: 'f', error: { code: 4711 } }])
    const again = await client.listen(stream.ids.at(-1))
    t.equal(again.status, 405, revision)
    t.match(again.headers.allow, /POST/)
    const before = await client.listen(stream.ids.at(-2))
    await before.ended()
    t.same(before.messages, stream.messages.slice(-1), 'who has not seen the error can have it')
  }
})

t.test('reports a server that is cut off in mid-answer, and the stream ends', async (t) => {
  const { open, modern } = await start(t)
  const client = await open()
  const stream = await client.stream('tools/call', progressing(60_000), { id: 'cut' })
  await stream.has(5)
  modern.cut()
  await stream.ended()
  t.match(stream.answer('cut'), { error: { code: -32603, data: { outcome: 'unknown' } } })
  t.equal((await client.listen(stream.ids.at(-1))).status, 405)
  t.equal(modern.of('tools/call').length, 1, 'it was not asked twice')
})

t.test('a slow answer becomes a stream with keep-alive comments', async (t) => {
  const { open } = await start(t, { timeouts: { commitAfter: 50, keepAlive: 50 } })
  const patient = await start(t)
  for (const revision of REVISIONS) {
    const client = await open({ revision })
    const stream = await client.stream('tools/call', { name: 'wait', arguments: { ms: 1_500 } }, { id: 'late' })
    t.match(stream.headers['content-type'], 'text/event-stream', revision)
    await stream.ended()
    t.ok(stream.events.filter(({ comment }) => comment === 'keep-alive').length >= 2, revision)
    t.match(stream.answer('late'), { result: { content: [{ text: 'waited' }] } })
    const quick = await (await patient.open({ revision })).call('echo', { x: 1 })
    t.match(quick.headers['content-type'], 'application/json', revision)
  }
})

t.test('ten requests with one id in one session each get their own answer and progress', async (t) => {
  const { open } = await start(t)
  const client = await open()
  const answers = await Promise.all(
    Array.from({ length: 10 }, (_, n) =>
      client.call('progress', { values: [n + 1, n + 100], ms: 20 * (10 - n) }, { id: 1, meta: { progressToken: 't' } }),
    ),
  )
  for (const [n, { messages }] of answers.entries()) {
    t.match(messages, [
      { method: 'notifications/progress', params: { progressToken: 't', progress: n + 1 } },
      { method: 'notifications/progress', params: { progressToken: 't', progress: n + 100 } },
      { id: 1, result: {} },
    ])
  }
})

t.test("progress has the client's token, and is not sent without one", async (t) => {
  const { open, modern } = await start(t)
  const client = await open()
  for (const token of ['t', '', 0, -7, 'ü']) {
    const { messages } = await client.call('progress', { values: [1, 1, 3, 2] }, { meta: { progressToken: token } })
    t.same(
      messages.slice(0, -1).map(({ params }) => params),
      [1, 3].map((progress) => ({ progressToken: token, progress, total: 5 })),
      String(token),
    )
  }
  const silent = await client.call('progress')
  t.match(silent.headers['content-type'], 'application/json')
  const bad = await client.call('progress', {}, { meta: { progressToken: 1.5 } })
  t.match(bad, { status: 200, message: { error: { code: -32602 } } })
  t.same(besideTheQuestion(modern.violations()), [])
})

/** Answers a call with progress first, and then with an error. */
function failLate({ message }: Arrived, response: ServerResponse): boolean {
  const params = message?.['params'] as { name?: string; _meta: { progressToken: unknown } } | undefined
  if (params?.name !== 'fail late') return false
  const { progressToken } = params._meta
  const progress = { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken, progress: 1 } }
  const failure = { jsonrpc: '2.0', id: message?.['id'], error: { code: 4711, message: 'Too late' } }
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.end([progress, failure].map((each) => `data: ${JSON.stringify(each)}\n\n`).join(''))
  return true
}
