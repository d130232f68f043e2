/** The inspector over HTTP: what it serves, to whom, and what a slow or hostile viewer gets. */
import { request as httpRequest } from 'node:http'
import t from 'tap'
import type { RecordedEvent } from '../../src/inspector/recorder/events.js'
import { Ring } from '../../src/inspector/ring.js'
import type { CallView } from '../../src/inspector/views.js'
import { until } from '../support/eventually.js'
import { bridgeOf, follow, startInspector, TOKEN } from '../support/inspector.js'
import { eventsIn, tellCall, tellQuestion, tickingRing } from '../support/sights.js'

const authorization = `Bearer ${TOKEN}`
const read = async <T>(url: string) => {
  const response = await fetch(url, { headers: { authorization } })
  return { status: response.status, headers: response.headers, body: (await response.json()) as T }
}

t.test('streams events as they happen, from the start or from any number', async (t) => {
  const ring = tickingRing()
  const base = await startInspector(t, ring)
  tellCall(ring.record, { id: 1 })
  const all = follow(t, `${base}/inspect/events`)
  const later = follow(t, `${base}/inspect/events?after=6`)
  const resumed = follow(t, `${base}/inspect/events`, { 'last-event-id': '7' })
  await until(() => all.events.length === 8 && later.events.length === 2 && resumed.events.length === 1)
  tellCall(ring.record, { id: 2 })
  await until(() => all.events.length === 16 && later.events.length === 10 && resumed.events.length === 9)
  t.same(all.events, JSON.parse(JSON.stringify(eventsIn(ring))))
  t.same(all.named, ['hello'])
  const stranger = follow(t, `${base}/inspect/events?after=999999`)
  await until(() => stranger.events.length === 16, 'a viewer of another bridge begins again')
})

t.test('lists, filters and details calls', async (t) => {
  const ring = tickingRing({ payloads: 'all' })
  const base = await startInspector(t, ring)
  const texts = { request: '{"params":{"arguments":{"password":"CANARY","note":"shown"}}}', result: '{}' }
  tellCall(ring.record, { id: 1, texts })
  tellQuestion(ring.record, { id: 2, answer: 3 })
  const { body } = await read<{ calls: { id: string }[]; last: number }>(`${base}/inspect/calls`)
  t.same(
    body.calls.map(({ id }) => id),
    ['c1', 'c2'],
  )
  t.equal(body.last, ring.last)
  const some = await read<{ calls: { id: string }[] }>(`${base}/inspect/calls?filter=id:c2&limit=5`)
  t.same(
    some.body.calls.map(({ id }) => id),
    ['c2'],
  )
  t.match((await read(`${base}/inspect/calls?filter=ms%3Ex`)).body, { problem: /ms>500/ })
  const detail = await read<{ events: RecordedEvent[] }>(`${base}/inspect/calls/c1`)
  t.equal(detail.body.events.length, 8)
  t.match(JSON.stringify(detail.body), /shown/)
  t.notMatch(JSON.stringify(detail.body), /CANARY/)
  t.match((await read(`${base}/inspect/calls/c3`)).body, { id: 'c2', rounds: 1 })
  t.equal((await read(`${base}/inspect/calls/c99`)).status, 404)
})

t.test('finds and exports a running call by its duration so far', async (t) => {
  const ring = tickingRing()
  const base = await startInspector(t, ring)
  const call = { kind: 'call', what: 'begun', principal: 'a', client: { era: 'legacy' } } as const
  ring.record({ ...call, call: 1, method: 'ping' })
  for (let i = 0; i < 9; i++) ring.record({ kind: 'config', text: 'a millisecond passes' })
  const { body } = await read<{ calls: { id: string }[] }>(`${base}/inspect/calls?filter=ms>5`)
  t.same(
    body.calls.map(({ id }) => id),
    ['c1'],
  )
  t.equal((await read<RecordedEvent>(`${base}/inspect/export?filter=ms>5`)).body.call, 'c1')
})

t.test('lists the current servers of the bridge, with their recorded facts', async (t) => {
  const ring = tickingRing()
  const now = { name: 'orders', state: 'ready', era: 'legacy', calls: 3, parked: 1 }
  const base = await startInspector(t, ring, { bridge: bridgeOf([now]) })
  ring.record({ kind: 'child', server: 'orders', what: 'started', pid: 812 })
  ring.record({ kind: 'verdict', server: 'gone', era: 'modern', why: 'discovered' })
  ring.record({ kind: 'session', server: 'orders', side: 'client', what: 'opened', session: 's1', principal: 'bob' })
  const { body } = await read<{ servers: object[] }>(`${base}/inspect/servers`)
  t.match(body.servers, [
    { ...now, pids: [812], sessions: { client: 1, server: 0 } },
    { name: 'gone', era: 'modern' },
  ])
  t.match((await read(`${base}/inspect/sessions`)).body, { sessions: [{ principal: 'bob', state: 'open' }] })
})

function withoutText(seen: RecordedEvent): RecordedEvent {
  return { ...seen, payload: undefined } as RecordedEvent
}

t.test('the export is a file without secrets', async (t) => {
  const ring = tickingRing({ payloads: 'all' })
  const base = await startInspector(t, ring, { hide: ['/params/arguments/iban'] })
  const texts = {
    request: '{"params":{"arguments":{"iban":"CANARY","token":"CANARY"}}}',
    result: '{"requestState":"CANARY"}',
  }
  tellCall(ring.record, { id: 1, texts })
  for (const format of ['jsonl', 'har']) {
    const response = await fetch(`${base}/inspect/export?format=${format}`, { headers: { authorization } })
    t.match(response.headers.get('content-disposition'), new RegExp(`mcp-bridge.${format}`))
    const text = await response.text()
    t.notMatch(text, /CANARY|a-secret-session-id/)
    t.match(text, /hidden/)
    if (format === 'jsonl') {
      const lines = text
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as RecordedEvent)
      t.same(lines.map(withoutText), eventsIn(ring).map(withoutText), 'the same events')
    } else t.equal((JSON.parse(text) as { log: { entries: object[] } }).log.entries.length, 2)
  }
  t.equal((await read(`${base}/inspect/export?format=exe`)).status, 400)
  const events = follow(t, `${base}/inspect/events`)
  const withPayloads = follow(t, `${base}/inspect/events?payloads`)
  await until(() => events.events.length === 8 && withPayloads.events.length === 8)
  t.notMatch(JSON.stringify(events.events), /payload/)
  t.match(JSON.stringify(withPayloads.events), /payload/)
  t.notMatch(JSON.stringify(withPayloads.events), /CANARY/)
})

t.test('serves everything else while a viewer reads all events', async (t) => {
  const ring = tickingRing({ payloads: 'all' })
  const base = await startInspector(t, ring)
  const value = JSON.stringify(Array.from({ length: 200 }, (_, i) => ({ name: `value ${i}`, text: 'a "quoted" text' })))
  const texts = { request: `{"params":${value}}`, result: `{"result":${value}}` }
  for (let id = 1; id <= 2_000; id++) tellCall(ring.record, { id, texts })
  /** The longest time without a turn of the event loop, as a share of the time until all of the answer has come. */
  const longestGap = async (path: string) => {
    const began = performance.now()
    let last = began
    let gap = 0
    let isOver = false
    const turn = () => {
      const now = performance.now()
      gap = Math.max(gap, now - last)
      last = now
      if (!isOver) setImmediate(turn)
    }
    turn()
    const response = await fetch(`${base}/inspect/${path}`, { headers: { authorization } })
    await response.arrayBuffer()
    isOver = true
    turn()
    return gap / (last - began)
  }
  // A busy machine may stop this process at any time.
  for (const path of ['calls', 'calls/c2000', 'servers', 'export?format=jsonl', 'export?format=har'])
    await until(async () => (await longestGap(path)) < 1 / 3, `${path} is made in several turns`)
})

t.test('exports all events of a long call that asks its client, including those not shown', async (t) => {
  const ring = tickingRing()
  const progress = {
    kind: 'message',
    server: 'orders',
    hop: 'server',
    dir: 'in',
    form: 'notification',
    bytes: 9,
  } as const
  tellCall(ring.record, { id: 1, name: 'long', outcome: 'asks' })
  const call = {
    kind: 'call',
    call: 2,
    principal: 'alice',
    client: { era: 'modern' },
    method: 'tools/call',
  } as const
  ring.record({ ...call, what: 'begun', continues: 1 })
  for (let i = 0; i < 600; i++) ring.record({ ...progress, call: 2, method: 'notifications/progress' })
  const stream = { kind: 'stream', server: 'orders', stream: 'p1', id: 7, session: 'a-secret-session-id' } as const
  ring.record({ ...stream, what: 'left' })
  ring.record({ ...call, what: 'ended', outcome: 'ok', ms: 600 })
  tellCall(ring.record, { id: 3, name: 'another' })
  const base = await startInspector(t, ring)
  const text = await (await fetch(`${base}/inspect/export?filter=long`, { headers: { authorization } })).text()
  const numbers = text
    .trim()
    .split('\n')
    .map((line) => (JSON.parse(line) as RecordedEvent).seq)
  t.same(
    numbers,
    Array.from({ length: 8 + 603 }, (_, i) => i + 1),
  )
  const shown = (await read<CallView>(`${base}/inspect/calls/c1`)).body
  t.match(shown, { status: 'ok', more: 111, parts: ['c2'] })
  t.equal(shown.events.length, 500)
  t.same(
    shown.events.slice(-2).map(({ kind, seq }) => [kind, seq]),
    [
      ['stream', 610],
      ['call', 611],
    ],
    'its end is shown',
  )
})

t.test('exports the matching calls with all their events', async (t) => {
  const ring = tickingRing()
  const base = await startInspector(t, ring)
  tellCall(ring.record, { id: 1, name: 'echo' })
  tellQuestion(ring.record, { id: 2, answer: 3 })
  ring.record({ kind: 'stream', stream: 'p1', id: 7, server: 'orders', session: 'a-secret-session-id', what: 'left' })
  ring.record({ kind: 'refused', status: 403, why: 'foreignHost' })
  const text = async (query: string) =>
    (await fetch(`${base}/inspect/export?${query}`, { headers: { authorization } })).text()
  const events = (await text('filter=id:c2'))
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as RecordedEvent)
  t.same([...new Set(events.map(({ call }) => call))], ['c2', 'c3', undefined])
  t.equal(events.at(-1)?.kind, 'stream', 'the client has left while it waited for the answer')
  const har = JSON.parse(await text('format=har&filter=tool:echo')) as { log: { entries: { _call: string }[] } }
  t.same([...new Set(har.log.entries.map(({ _call }) => _call))], ['c1'])
  t.match(await read(`${base}/inspect/export?filter=ms>x`), {
    status: 400,
    body: { error: { message: /^The filter is wrong/ } },
  })
})

const DATA = [
  '/inspect/events',
  '/inspect/calls',
  '/inspect/calls/c1',
  '/inspect/servers',
  '/inspect/sessions',
  '/inspect/export',
]
const PAGE = ['/inspect', '/inspect/page.js', '/inspect/page.css', '/inspect/icon.svg']
const page = { html: '<p>page</p>', script: '1', style: 'p {}', icon: '<svg/>' }

t.test('refuses every request without the token', async (t) => {
  const ring = tickingRing()
  tellCall(ring.record, { id: 1, name: 'CANARY' })
  const base = await startInspector(t, ring, { page })
  for (const path of DATA)
    for (const given of [
      undefined,
      'Bearer',
      'Bearer wrong',
      `Basic ${TOKEN}`,
      TOKEN,
      `Bearer ${TOKEN}x`,
      `Bearer ${TOKEN.slice(1)}`,
    ]) {
      const response = await fetch(
        `${base}${path}?token=${TOKEN}`,
        given === undefined ? {} : { headers: { authorization: given } },
      )
      t.equal(response.status, 401, `${path} ${given}`)
      t.notMatch(await response.text(), /CANARY/)
    }
  for (const path of PAGE) t.equal((await fetch(base + path)).status, 200, 'the page itself has nothing secret')
})

t.test('refuses pages under another name, or from another site', async (t) => {
  const ring = tickingRing()
  const base = await startInspector(t, ring, { page })
  const statusOf = (path: string, headers: Record<string, string>) =>
    new Promise<number | undefined>((resolve, reject) => {
      const request = httpRequest(base + path, { headers: { authorization, ...headers } }, (response) => {
        resolve(response.statusCode)
        response.destroy()
      })
      request.on('error', reject).end()
    })
  for (const path of [...DATA, ...PAGE]) {
    t.equal(await statusOf(path, { host: 'evil.example' }), 403, path)
    t.equal(await statusOf(path, { origin: 'https://evil.example' }), 403, path)
    t.equal(await statusOf(path, { origin: 'null' }), 403, path)
  }
})

t.test('every answer restricts the page, and every change is refused', async (t) => {
  const ring = tickingRing()
  tellCall(ring.record, { id: 1 })
  const base = await startInspector(t, ring, { page })
  for (const path of [...DATA, ...PAGE, '/inspect/calls/c99']) {
    for (const headers of [{ authorization }, {}] as Record<string, string>[]) {
      const abort = new AbortController()
      const response = await fetch(base + path, { headers, signal: abort.signal })
      t.match(
        response.headers.get('content-security-policy'),
        /^default-src 'none'; script-src 'self';.*require-trusted-types-for/,
      )
      const isStream = response.headers.get('content-type')?.startsWith('text/event-stream')
      t.equal(response.headers.get('cache-control'), isStream ? 'no-store, no-transform' : 'no-store', path)
      t.equal(response.headers.get('x-content-type-options'), 'nosniff')
      t.equal(response.headers.get('referrer-policy'), 'no-referrer')
      t.equal(response.headers.get('cross-origin-opener-policy'), 'same-origin')
      t.equal(response.headers.get('cross-origin-resource-policy'), 'same-origin')
      t.equal(response.headers.get('access-control-allow-origin'), null)
      t.equal(response.headers.get('set-cookie'), null)
      abort.abort()
    }
    for (const method of ['POST', 'PUT', 'DELETE', 'PATCH'])
      t.equal(
        (await fetch(base + path, { method, headers: { authorization } })).status >= 400,
        true,
        `${method} ${path}`,
      )
  }
})

t.test('serves markup and invisible characters in names as plain text', async (t) => {
  const ring = tickingRing()
  const name = '<img src=x onerror=alert(1)>\u202e\u0000\u001b[31m</script>\n\ndata: {"seq":1}\n\n'
  tellCall(ring.record, { id: 1, name })
  const base = await startInspector(t, ring)
  const { events } = follow(t, `${base}/inspect/events`)
  await until(() => events.length === 8)
  t.match(events[0], { name })
  const { headers, body } = await read<{ calls: { name: string }[] }>(`${base}/inspect/calls`)
  t.match(headers.get('content-type'), /^application\/json/)
  t.equal(body.calls[0]?.name, name)
})

t.test('stores the texts of all calls for five minutes on request', async (t) => {
  let now = 1_000
  const ring = new Ring({ origin: 0, now: () => now })
  const told: object[] = []
  const base = await startInspector(t, ring, { log: { info: (line: object) => told.push(line) } })
  const put = async (keep: string, headers: Record<string, string> = { authorization }) =>
    await fetch(`${base}/inspect/payloads?keep=${keep}`, { method: 'POST', headers })
  const texts = { request: '{"a":1}', result: '{"b":2}' }
  const isKept = async (id: number) => {
    tellCall(ring.record, { id, texts })
    const { body } = await read<CallView>(`${base}/inspect/calls/c${id}`)
    return body.events.some((seen) => seen.kind === 'message' && seen.payload?.text === texts.request)
  }
  t.equal(await isKept(1), false, 'nothing is kept by default')
  t.equal((await put('all', {})).status, 401)
  t.equal((await put('all', { authorization, origin: 'https://evil.example' })).status, 403)
  t.equal((await put('everything')).status, 400)
  const none = { payloads: 'off', hasTexts: false }
  t.same((await read(`${base}/inspect/payloads?keep=all`)).body, none, 'reading changes nothing')
  t.equal(await isKept(2), false)
  t.same(told, [])

  t.same(await (await put('all')).json(), { payloads: 'all', until: 301_000, hasTexts: false })
  t.equal(await isKept(3), true)
  now = 300_999
  t.equal(await isKept(4), true)
  now = 301_000
  t.equal(await isKept(5), false, 'it ends by itself')
  const old = { payloads: 'off', hasTexts: true }
  t.same((await read(`${base}/inspect/payloads`)).body, old, 'what was kept by then stays')
  await put('all')
  t.equal(await isKept(6), true)
  t.same(await (await put('configured')).json(), old)
  t.equal(await isKept(7), false, 'or when somebody ends it')
  const line = { event: 'inspector_payloads', from: '127.0.0.1' }
  t.same(told, [
    { ...line, payloads: 'all', until: new Date(301_000).toISOString() },
    { ...line, payloads: 'all', until: new Date(601_000).toISOString() },
    { ...line, payloads: 'off' },
  ])
})

t.test('bounds the number of viewers', async (t) => {
  const ring = tickingRing()
  const base = await startInspector(t, ring)
  const viewers = Array.from({ length: 16 }, () => follow(t, `${base}/inspect/events`))
  await until(() => viewers.every(({ named }) => named.length === 1))
  t.equal((await fetch(`${base}/inspect/events`, { headers: { authorization } })).status, 503)
  viewers[0]?.stop()
  await until(async () => {
    const abort = new AbortController()
    const { status } = await fetch(`${base}/inspect/events`, { headers: { authorization }, signal: abort.signal })
    abort.abort()
    return status === 200
  }, 'there is room again')
})
