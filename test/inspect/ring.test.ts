/** The ring of the inspector: what it keeps, what leaves it, and what it never has. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import type { RecordedEvent } from '../../src/inspector/recorder/events.js'
import { observing } from '../../src/inspector/recorder/observed.js'
import { Ring } from '../../src/inspector/ring.js'
import type { Outcome } from '../../src/mcp/ports/outcome.js'
import { until } from '../support/eventually.js'
import { eventsIn, tellCall, tickingRing } from '../support/sights.js'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

const bounds = { calls: 10, messages: 100, bytes: 1024 * 1024 }

t.test('numbers events without gaps, and reads them from any number', async (t) => {
  const ring = tickingRing()
  for (let i = 1; i <= 5; i++) tellCall(ring.record, { id: i })
  const all = eventsIn(ring)
  t.same(
    all.map(({ seq }) => seq),
    Array.from({ length: 40 }, (_, i) => i + 1),
  )
  t.equal(ring.last, 40)
  t.equal(eventsIn(ring, 38).length, 2)
  t.equal(ring.event(13).seq, 13)
  t.equal(ring.first, 1)
  t.same(eventsIn(ring, 40), [])
})

t.test('a reader gets events added while it reads, and skips those dropped meanwhile', async (t) => {
  const ring = tickingRing({ bounds })
  tellCall(ring.record, { id: 1 })
  const events = ring.after(0)
  t.match(events.next(), { value: { seq: 1 } })
  for (let i = 2; i <= 50; i++) tellCall(ring.record, { id: i })
  t.equal((events.next().value as RecordedEvent).seq, ring.first)
  t.ok(ring.first > 2)
  for (let next = ring.first + 1; next <= ring.last; next++) t.match(events.next(), { value: { seq: next } })
  t.match(events.next(), { done: true })
  t.equal(ring.text(1), undefined, 'its text has left, too')
})

t.test('each bound removes the oldest events', async (t) => {
  const byCalls = tickingRing({ bounds })
  for (let i = 1; i <= 50; i++) tellCall(byCalls.record, { id: i })
  const begun = eventsIn(byCalls).filter((seen) => seen.kind === 'call' && seen.what === 'begun')
  t.equal(begun.length, 10)
  t.equal(eventsIn(byCalls).at(-1)?.seq, 400)
  t.equal(eventsIn(byCalls, 3)[0]?.seq, eventsIn(byCalls)[0]?.seq, 'a reader who is late gets the next events')

  const byMessages = tickingRing({ bounds: { ...bounds, calls: 1_000 } })
  for (let i = 1; i <= 50; i++) tellCall(byMessages.record, { id: i })
  t.equal(eventsIn(byMessages).filter((seen) => !(seen.kind === 'call' && seen.what === 'begun')).length <= 100, true)

  const byBytes = tickingRing({ bounds: { calls: 1e6, messages: 1e6, bytes: 100_000 }, payloads: 'all' })
  const texts = { request: 'x'.repeat(5_000), result: 'y'.repeat(5_000) }
  for (let i = 1; i <= 50; i++) {
    tellCall(byBytes.record, { id: i, texts })
    t.ok(byBytes.bytes <= 100_000, `${byBytes.bytes} bytes`)
  }
  const kept = eventsIn(byBytes)
  t.ok(kept.length > 0 && JSON.stringify(kept).length < 200_000)
})

t.test('takes no more memory for many events than for few', async (t) => {
  const ring = tickingRing({ bounds })
  for (let i = 1; i <= 20_000; i++) tellCall(ring.record, { id: i })
  const kept = eventsIn(ring)
  t.equal(kept.at(-1)?.seq, 160_000)
  t.equal(kept.length, ring.last - (kept[0]?.seq ?? 0) + 1)
  t.ok(kept.length <= 110)
})

t.test('counts open sessions after their events were dropped', async (t) => {
  const ring = tickingRing({ bounds })
  const session = { kind: 'session', server: 'orders', principal: 'alice' } as const
  const ofClient = (what: 'opened' | 'ended' | 'lost', id: string) =>
    ring.record({ ...session, side: 'client', what, session: id })
  ring.record({ ...session, side: 'server', what: 'opened', session: 's1' })
  for (const id of ['c1', 'c2', 'c3']) ofClient('opened', id)
  for (let i = 1; i <= 50; i++) tellCall(ring.record, { id: i })
  for (let i = 0; i < 1_000; i++) ofClient('opened', 'again')
  t.notOk(
    eventsIn(ring).some(({ kind, session }) => kind === 'session' && session !== eventsIn(ring).at(-1)?.session),
    'their events have left',
  )
  ofClient('ended', 'again')
  t.same(ring.openSessions('orders'), { client: 3, server: 1 })
  ofClient('ended', 'c1')
  ofClient('lost', 'c2')
  ofClient('ended', 'c2')
  ofClient('ended', 'never-opened')
  t.same(ring.openSessions('orders'), { client: 1, server: 1 })
  t.same(ring.openSessions('billing'), { client: 0, server: 0 })
})

t.test('truncates a payload at 16 KiB, with the missing size, and keeps no large text in memory', async (t) => {
  const ring = tickingRing({ payloads: 'all' })
  const bytes = new TextEncoder().encode('é'.repeat(20_000))
  ring.record({ kind: 'message', hop: 'server', dir: 'in', form: 'result', bytes: 1 }, 'z'.repeat(1_000_000))
  ring.record({ kind: 'message', hop: 'server', dir: 'in', form: 'result', bytes: 1 }, ['{"a":"', bytes, '"}'])
  ring.record({ kind: 'message', hop: 'server', dir: 'in', form: 'result', bytes: 1 }, '{}')
  const payloads = eventsIn(ring).map((seen) => (seen.kind === 'message' ? seen.payload : undefined))
  t.equal(payloads[0]?.text.length, 16_384)
  t.equal(payloads[0]?.cut, 1_000_000 - 16_384)
  t.ok((payloads[1]?.text.length ?? 0) <= 16_384)
  t.same(payloads[2], { text: '{}', cut: 0, hidden: 0 })

  const before = process.memoryUsage().heapUsed
  for (let i = 0; i < 200; i++) {
    const large = `${'a'.repeat(1_000_000)}${i}`
    ring.record(
      { kind: 'message', hop: 'server', dir: 'in', form: 'result', bytes: large.length, method: large.slice(9, 90) },
      large,
    )
  }
  const grown = process.memoryUsage().heapUsed - before
  t.ok(grown < 100_000_000, `200 parts of texts of a megabyte: ${grown} bytes`)
})

t.test('counts the size of messages with many long changes, and drops them', async (t) => {
  const ring = tickingRing()
  collect()
  const before = process.memoryUsage().heapUsed
  const read = (number: number) => ring.json(number).length
  let largest = 0
  for (let i = 0; i < 2_000; i++) {
    const all = Array.from(
      { length: 100 },
      (_, k) => ({ at: `/${i}/${k}/${'n'.repeat(900)}`, op: 'add', rule: 'ids' }) as const,
    )
    const changed = { all, more: 0, weight: 115_000, size: 96_000 }
    const message = {
      kind: 'message',
      server: 'a',
      call: 1,
      hop: 'server',
      dir: 'out',
      form: 'request',
      bytes: 1,
    } as const
    largest = Math.max(largest, read(ring.record({ ...message, changed, method: `m${i % 600}` })))
  }
  t.ok(largest > 90_000)
  t.ok(ring.last - ring.first < 30, `${ring.last - ring.first} messages are kept`)
  collect()
  const grown = process.memoryUsage().heapUsed - before
  t.ok(grown < 8_000_000, `${grown} bytes`)
})

t.test('drops the oldest texts before their events, which do not change', async (t) => {
  const ring = tickingRing({ bounds: { calls: 1_000, messages: 1_000, bytes: 400_000 }, payloads: 'all' })
  const texts = { request: 'x'.repeat(10_000), result: 'y'.repeat(10_000) }
  for (let i = 1; i <= 20; i++) tellCall(ring.record, { id: i, texts })
  const told = eventsIn(ring).filter((seen) => seen.kind === 'message' && seen.form !== 'notification')
  const has = told.map((seen) => seen.kind === 'message' && seen.payload !== undefined)
  const oldest = has.indexOf(true)
  t.equal(told.length, 80)
  t.ok(oldest > 0 && has.slice(oldest).every(Boolean), `texts from the ${oldest}th message on`)
  t.ok(ring.bytes <= 400_000, `${ring.bytes} bytes`)
})

t.test('stores no payload unless configured', async (t) => {
  const ring = tickingRing()
  tellCall(ring.record, { id: 1, texts: { request: '{"a":"CANARY"}', result: '{}' } })
  t.notMatch(JSON.stringify(eventsIn(ring)), /CANARY|payload/)
})

t.test('with `errors`, stores payloads of failed calls only', async (t) => {
  const ring = tickingRing({ payloads: 'errors' })
  const texts = { request: '{"a":1}', result: '{"b":2}' }
  tellCall(ring.record, { id: 1, texts })
  tellCall(ring.record, { id: 2, texts, outcome: 'tool_error' })
  tellCall(ring.record, { id: 3, texts, outcome: 'asks' })
  tellCall(ring.record, { id: 4, texts, outcome: 'cancelled' })
  const withPayload = (id: string) =>
    eventsIn(ring).filter(
      (seen: RecordedEvent) => seen.kind === 'message' && seen.call === id && seen.payload !== undefined,
    )
  t.equal(withPayload('c1').length, 0)
  t.equal(withPayload('c2').length, 4)
  t.equal(withPayload('c3').length, 0)
  t.equal(withPayload('c4').length, 0, 'a call that its client has cancelled did not fail')
  const bytes = ring.bytes
  for (let i = 10; i < 2_000; i++)
    ring.record({ kind: 'message', hop: 'client', dir: 'in', form: 'request', bytes: 1, call: i }, 'x'.repeat(10_000))
  t.ok(ring.bytes <= 16 * 1024 * 1024, `${ring.bytes - bytes} bytes of calls that have not ended`)
})

t.test('keeps secrets out of events: header values, session ids, queries', async (t) => {
  const ring = tickingRing({ payloads: 'off' })
  tellCall(ring.record, { id: 1 })
  ring.record({
    kind: 'refused',
    status: 401,
    why: 'unauthorized',
    path: '/mcp?token=CANARY#CANARY',
    from: '127.0.0.1',
  })
  ring.record({ kind: 'session', side: 'client', what: 'opened', session: 'a-secret-session-id', principal: 'alice' })
  const text = JSON.stringify(eventsIn(ring))
  t.notMatch(text, /CANARY|a-secret-session-id/)
  t.match(text, /"content-type":"application\/json"/)
  const sessions = new Set(
    eventsIn(ring)
      .map(({ session }) => session)
      .filter((session) => session !== undefined),
  )
  t.equal(sessions.size, 1, 'one session has one digest')
  t.match([...sessions][0], /^[\da-f]{8}$/)
})

t.test('truncates foreign texts of any length', async (t) => {
  const ring = tickingRing()
  const long = 'n'.repeat(1_000_000)
  tellCall(ring.record, {
    id: 1,
    name: long,
    why: long,
    more: { client: { era: 'modern', name: long, revision: long } },
  })
  const headers = Object.fromEntries([['content-type', long]])
  ring.record({
    kind: 'message',
    hop: 'client',
    dir: 'in',
    form: 'request',
    bytes: 1,
    method: long,
    id: long,
    http: { headers },
  })
  t.ok(JSON.stringify(eventsIn(ring)).length < 100_000)
})

t.test('records the HTTP status and the headers that cannot be secret', (t) => {
  const ring = new Ring()
  const about = { kind: 'message', hop: 'client', dir: 'in', form: 'request', bytes: 1 } as const
  const headers = { 'content-type': 'application/json', authorization: 'Bearer secret', accept: ['a', 'b'] }
  for (const status of [200, 200, 202]) ring.record({ ...about, http: { status, headers: { ...headers } } })
  ring.record({ ...about, http: { headers: { 'content-type': 'text/plain' } } })
  const heads = eventsIn(ring).map((seen) => (seen.kind === 'message' ? seen.http : undefined))
  const shown = { 'content-type': 'application/json' }
  t.same(heads, [
    { status: 200, headers: shown },
    { status: 200, headers: shown },
    { status: 202, headers: shown },
    { headers: { 'content-type': 'text/plain' } },
  ])
  t.end()
})

t.test('shows calls and heads exactly, even after similar ones', (t) => {
  const ring = tickingRing({ bounds: { calls: 10_000, messages: 20_000, bytes: 64 * 1024 * 1024 } })
  const told: { name: string; outcome: Outcome; principal: string; client: string; length: string; status: number }[] =
    []
  const outcomes = ['ok', 'tool_error', 'asks'] as const
  for (let i = 0; i < 3_000; i++)
    told.push({
      name: `tool-${i % 701}`,
      outcome: outcomes[i % 3] as Outcome,
      principal: `principal-${i % 7}`,
      client: `client-${i % 23}`,
      length: String(100 + (i % 503)),
      status: 200 + (i % 2),
    })
  for (const [i, { name, outcome, principal, client, length, status }] of told.entries()) {
    const more = { principal, client: { era: 'modern', name: client } } as const
    const call = { kind: 'call', call: i + 1, method: 'tools/call', name, ...more } as const
    ring.record({ ...call, what: 'begun' })
    const http = { status, headers: { 'content-length': length, 'mcp-name': name } }
    ring.record({ kind: 'message', call: i + 1, hop: 'client', dir: 'out', form: 'result', bytes: 1, http })
    ring.record({ ...call, what: 'ended', outcome, ms: i, upstreamMs: i / 2 })
  }
  const seen = eventsIn(ring)
  t.equal(seen.length, 3 * told.length)
  const shown = told.map((_, i) => {
    const [begun, message, ended] = seen.slice(3 * i, 3 * i + 3)
    if (begun?.kind !== 'call' || message?.kind !== 'message' || ended?.kind !== 'call') return undefined
    if (begun.what !== 'begun' || begun.name !== ended.name || begun.outcome !== undefined || begun.ms !== undefined)
      return undefined
    if (ended.ms !== i || ended.upstreamMs !== i / 2) return undefined
    if ([begun, message, ended].some(({ call }) => call !== `c${i + 1}`)) return undefined
    return {
      name: message.http?.headers['mcp-name'],
      outcome: ended.outcome,
      principal: ended.principal,
      client: ended.client.name,
      length: message.http?.headers['content-length'],
      status: message.http?.status,
    }
  })
  t.same(shown, told)
  t.end()
})

t.test('the number of a call is shown with a letter', (t) => {
  const ring = new Ring()
  const message = { kind: 'message', hop: 'client', dir: 'in', form: 'request', bytes: 1 } as const
  for (const call of [1, 2 ** 40, undefined]) ring.record({ ...message, call })
  ring.record({ kind: 'question', what: 'parked', call: 7 })
  t.same(
    eventsIn(ring).map(({ call }) => call),
    ['c1', `c${2 ** 40}`, undefined, 'c7'],
  )
  t.end()
})

t.test('notifies listeners of each event until they stop', async (t) => {
  const ring = new Ring()
  let heard = 0
  const stop = ring.listen(() => heard++)
  tellCall(ring.record, { id: 1 })
  t.equal(heard, 8)
  stop()
  tellCall(ring.record, { id: 2 })
  t.equal(heard, 8)
})

t.test('records events that are counted as metrics, unless they record themselves', async (t) => {
  const ring = new Ring()
  const observe = observing(ring.record)
  observe({ kind: 'verdict', server: 'orders', era: 'modern', why: 'discovered' })
  observe({ kind: 'child', server: 'orders', what: 'started' })
  observe({ kind: 'session', server: 'orders', side: 'client', what: 'opened' })
  observe({ kind: 'question', server: 'orders', what: 'expired' })
  observe({ kind: 'refusal', server: '', reason: 'unauthorized', status: 401, said: 'Token required' })
  observe({ kind: 'discovery', server: 'https://x.example', phase: 'fetch', reason: 'timeout' })
  observe({ kind: 'cache', server: 'orders', what: 'hit' })
  t.same(
    eventsIn(ring).map(({ kind }) => kind),
    ['verdict', 'child', 'session', 'question', 'refused', 'trust'],
  )
  t.match(eventsIn(ring, 4)[0], { kind: 'refused', status: 401, why: 'unauthorized', said: 'Token required' })
})

t.test('any number of refusals and lines of stderr evict no call', async (t) => {
  let now = 0
  const ring = new Ring({ now: () => now })
  tellCall(ring.record, { id: 1 })
  for (let i = 0; i < 30_000; i++) {
    ring.record({ kind: 'refused', status: 404, why: 'noSuchPath', path: `/${i}` })
    ring.record({ kind: 'child', server: 'a', what: 'stderr', line: `line ${i}` })
  }
  const kinds = () => eventsIn(ring).map(({ kind }) => kind)
  t.ok(kinds().includes('call'))
  t.equal(kinds().filter((kind) => kind === 'refused').length, 20)
  t.equal(kinds().filter((kind) => kind === 'child').length, 50)
  await until(() => kinds().filter((kind) => kind === 'lost').length === 2, 'the others are counted')
  t.match(
    eventsIn(ring).filter(({ kind }) => kind === 'lost'),
    [
      { what: 'refusals', count: 29_980 },
      { what: 'lines', count: 29_950 },
    ],
  )
  now += 1_000
  ring.record({ kind: 'refused', status: 404, why: 'noSuchPath' })
  t.equal(kinds().at(-1), 'refused', 'a second later they are recorded again')
})
