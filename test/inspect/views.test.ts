/** What events add up to: calls with their two sides, servers, sessions, refusals, and what is missing. */
import t from 'tap'
import { KEPT_OF_CALLS } from '../../src/inspector/call-views.js'
import { readFilter } from '../../src/inspector/filter.js'
import { elapsed, phasesOf } from '../../src/inspector/phases.js'
import type { Ring } from '../../src/inspector/ring.js'
import { rowsOf } from '../../src/inspector/rows.js'
import { KEPT_OF_SERVERS } from '../../src/inspector/server-views.js'
import { KEPT_OF_SESSIONS } from '../../src/inspector/session-views.js'
import { type CallView, KEPT, Views } from '../../src/inspector/views.js'
import { duration } from '../../src/inspector/words.js'
import { eventsIn, tellCall, tellQuestion, tickingRing } from '../support/sights.js'
import { viewsOf } from '../support/watched.js'

const callIn = (ring: Ring, id: string) => viewsOf(eventsIn(ring)).call(id) as CallView

t.test('a call has the members of its start and its end, and all its messages', async (t) => {
  const ring = tickingRing()
  tellCall(ring.record, { id: 1, outcome: 'tool_error' })
  const call = callIn(ring, 'c1')
  t.match(call, {
    server: 'orders',
    method: 'tools/call',
    name: 'book',
    principal: 'alice',
    status: 'tool_error',
    ms: 7,
    incomplete: false,
    client: { era: 'modern' },
    upstream: { era: 'legacy' },
  })
  t.equal(call.events.length, 8)
})

t.test('joins a question and its answer into one call', async (t) => {
  const ring = tickingRing()
  tellQuestion(ring.record, { id: 1, answer: 2 })
  tellQuestion(ring.record, { id: 3, answer: 4 })
  tellCall(ring.record, { id: 5, more: { continues: 4 } })
  const views = viewsOf(eventsIn(ring))
  t.same([...views.calls.keys()], ['c1', 'c3'])
  t.match(views.call('c2'), { id: 'c1', status: 'ok', rounds: 1 })
  t.match(views.call('c5'), { id: 'c3', rounds: 1 })
  t.equal(views.servers.get('orders')?.calls, 2)
})

t.test('a call is open until it ends, and again while its client sends answers', async (t) => {
  const ring = tickingRing()
  tellQuestion(ring.record, { id: 1, answer: 2 })
  const views = new Views()
  const statuses = new Set<string>()
  for (const seen of eventsIn(ring)) {
    views.add(seen)
    statuses.add(views.call('c1')?.status ?? '')
  }
  t.same([...statuses], ['open', 'asks', 'ok'])
})

t.test('shows a call without its start, marked as such', async (t) => {
  const ring = tickingRing()
  tellCall(ring.record, { id: 1 })
  t.match(viewsOf(eventsIn(ring, 2)).call('c1'), {
    incomplete: true,
    method: 'tools/call',
    status: 'ok',
    server: 'orders',
  })
  t.match(viewsOf(eventsIn(ring, 7)).call('c1'), { incomplete: true, ms: 7, name: 'book' })
})

t.test('counts missing events, and ignores repeated ones', async (t) => {
  const ring = tickingRing()
  for (let i = 1; i <= 3; i++) tellCall(ring.record, { id: i })
  const all = eventsIn(ring)
  const views = viewsOf([...all.slice(0, 4), ...all.slice(9), ...all.slice(9)])
  t.equal(views.lost, 5)
  t.equal(views.seen, 19)
  views.add({ v: 1, seq: 25, at: 1, kind: 'lost', what: 'calls', text: 'Calls were not recorded', count: 10 })
  t.equal(views.lost, 5)
  t.equal(views.unrecorded, 10)
})

t.test('keeps views within their bounds', async (t) => {
  const ring = tickingRing()
  const views = new Views()
  for (let i = 0; i < 5_000; i++) {
    tellCall(ring.record, { id: i, server: `s${i}`, more: { session: `session-${i}`, continues: i - 1 } })
    ring.record({ kind: 'refused', status: 400, why: 'x' })
  }
  for (let i = 5_000; i < 10_000; i++) tellCall(ring.record, { id: i, more: { session: `session-${i}` } })
  for (const seen of eventsIn(ring)) views.add(seen)
  t.ok(views.calls.size <= KEPT_OF_CALLS.calls)
  t.ok(views.servers.size <= KEPT_OF_SERVERS.servers)
  t.ok(views.sessions.length <= KEPT_OF_SESSIONS.sessions)
  t.ok(views.refused.length <= KEPT.refused)
  for (let i = 0; i < 20; i++)
    views.add({ v: 1, seq: 2e5 + i, at: i, kind: 'stream', what: 'opened', stream: `g${i}`, session: 's' })
  t.equal(views.sessions.find(({ id }) => id === 's')?.streams.length, KEPT_OF_SESSIONS.streams)
  for (let i = 0; i < 2_000; i++)
    views.add({
      v: 1,
      seq: 1e6 + i,
      at: 1,
      kind: 'message',
      call: 'c9999',
      hop: 'client',
      dir: 'in',
      form: 'notification',
      bytes: 1,
    })
  const call = views.call('c9999') as CallView
  t.equal(call.events.length + call.more, 2_008)
  t.equal(call.events.length, 500)
})

t.test('drops calls with many events before there are too many events', async (t) => {
  const views = new Views()
  const message = { v: 1, at: 1, kind: 'message', hop: 'client', dir: 'in', form: 'notification', bytes: 1 } as const
  let seq = 0
  for (let call = 1; call <= 100; call++)
    for (let i = 0; i < 400; i++) views.add({ ...message, seq: ++seq, call: `c${call}` })
  const events = [...views.calls.values()].reduce((sum, call) => sum + call.events.length, 0)
  t.ok(events <= KEPT_OF_CALLS.events)
  t.ok(events > KEPT_OF_CALLS.events - 500, 'no more than needed have left')
  t.ok(views.call('c100'), 'the newest stay')
})

t.test('builds servers and sessions from their events', async (t) => {
  const ring = tickingRing()
  ring.record({
    kind: 'verdict',
    server: 'orders',
    era: 'legacy',
    revision: '2025-11-25',
    why: 'answered initialize',
    ms: 12,
  })
  ring.record({ kind: 'child', server: 'orders', what: 'started', pid: 812 })
  for (let i = 0; i < 30; i++) ring.record({ kind: 'child', server: 'orders', what: 'stderr', line: `line ${i}` })
  ring.record({ kind: 'session', server: 'orders', side: 'client', what: 'opened', session: 's1', principal: 'bob' })
  tellCall(ring.record, { id: 1, outcome: 'fault', more: { session: 's1' } })
  ring.record({ kind: 'session', server: 'orders', side: 'client', what: 'lost', session: 's1' })
  ring.record({ kind: 'refused', status: 403, why: 'foreignHost', path: '/mcp' })
  const views = viewsOf(eventsIn(ring))
  t.match(views.servers.get('orders'), { era: 'legacy', pids: [812], starts: 1, calls: 1, failed: 1 })
  t.equal(views.servers.get('orders')?.stderr.length, KEPT_OF_SERVERS.stderr)
  t.match(views.sessions, [{ principal: 'bob', state: 'lost', calls: 1, side: 'client' }])
  t.match(views.refused, [{ status: 403, path: '/mcp' }])
})

t.test('counts failed calls: errors of the tool, the server or the bridge', async (t) => {
  const ring = tickingRing()
  const outcomes = ['ok', 'tool_error', 'asks', 'error', 'cancelled', 'fault'] as const
  for (const [i, outcome] of outcomes.entries()) tellCall(ring.record, { id: i + 1, outcome })
  const { servers, sessions } = viewsOf(eventsIn(ring))
  t.match(servers.get('orders'), { calls: 6, failed: 3 })
  t.match(sessions, [{ calls: 6, failed: 3 }])
})

t.test('aligns messages of the two wires by cause', async (t) => {
  const ring = tickingRing()
  tellCall(ring.record, { id: 1 })
  const sides = rowsOf(callIn(ring, 'c1')).map(({ client, server }) => [
    client?.form,
    client?.dir,
    server?.form,
    server?.dir,
  ])
  t.same(sides, [
    ['request', 'in', 'request', 'out'],
    ['notification', 'out', 'notification', 'in'],
    ['result', 'out', 'result', 'in'],
  ])

  const asking = tickingRing()
  const message = { kind: 'message', call: 1, bytes: 1 } as const
  asking.record({ ...message, hop: 'client', dir: 'in', form: 'request', method: 'tools/call', id: 7 })
  asking.record({ ...message, hop: 'server', dir: 'out', form: 'request', method: 'tools/call', id: 1 })
  asking.record({ ...message, hop: 'server', dir: 'in', form: 'notification', method: 'notifications/message' })
  asking.record({ ...message, hop: 'server', dir: 'in', form: 'request', method: 'elicitation/create', id: 's2' })
  asking.record({ ...message, hop: 'client', dir: 'out', form: 'result', id: 7 })
  t.same(
    rowsOf(callIn(asking, 'c1')).map(({ client, server }) => [client?.form, server?.method]),
    [
      ['request', 'tools/call'],
      [undefined, 'notifications/message'],
      ['result', 'elicitation/create'],
    ],
    'a question becomes a result, and a log message that was dropped stands alone',
  )
})

t.test('divides the whole time of a call by the side it waits for', async (t) => {
  const ring = tickingRing()
  tellQuestion(ring.record, { id: 1, answer: 2 })
  const call = callIn(ring, 'c1')
  const phases = phasesOf(call, 0)
  t.same([...new Set(phases.map(({ who }) => who))].sort(), ['bridge', 'client', 'server'])
  t.equal(phases[0]?.from, 0)
  t.equal(phases.at(-1)?.to, call.ms)
  for (const [i, phase] of phases.entries()) t.equal(phase.from, phases[i - 1]?.to ?? 0)
  t.same(phasesOf({ events: [], at: 0, ms: 10, upstreamMs: 6, status: 'ok' }, 0), [
    { who: 'bridge', from: 0, to: 2 },
    { who: 'server', from: 2, to: 8 },
    { who: 'bridge', from: 8, to: 10 },
  ])
  t.same(phasesOf({ events: [], at: 5, status: 'open' }, 15), [{ who: 'bridge', from: 0, to: 10 }])
})

t.test('the time of a call continues while its client is asked, and when it sends the answer', async (t) => {
  const ring = tickingRing()
  tellCall(ring.record, { id: 1, outcome: 'asks' })
  ring.record({ kind: 'question', what: 'parked', call: 1, server: 'orders' })
  const asked = callIn(ring, 'c1')
  t.equal(elapsed(asked, asked.at + 5_000), 5_000)
  t.match(phasesOf(asked, asked.at + 5_000).at(-1), { who: 'client', to: 5_000 })
  ring.record({
    kind: 'call',
    what: 'begun',
    call: 2,
    continues: 1,
    principal: 'alice',
    client: { era: 'modern' },
    method: 'tools/call',
  })
  const answered = callIn(ring, 'c1')
  t.equal(answered.parked, false)
  t.match(phasesOf(answered, answered.at + 6_000).at(-1), { who: 'bridge', to: 6_000 })

  tellCall(ring.record, { id: 3, outcome: 'asks' })
  ring.record({ kind: 'question', what: 'parked', call: 3, server: 'orders' })
  ring.record({ kind: 'question', what: 'expired', call: 3, server: 'orders' })
  const expired = callIn(ring, 'c3')
  t.equal(elapsed(expired, expired.at + 5_000), expired.ms, 'nobody waits for an answer that comes too late')
  t.same([90_000, 5_400_000, 345_600_000].map(duration), ['1.5 min', '1.5 h', '4 days'])
})

t.test('keeps the newest changes of the bridge itself', async (t) => {
  const ring = tickingRing()
  for (let i = 1; i <= KEPT.notes + 1; i++) ring.record({ kind: 'config', text: `servers: change ${i}` })
  ring.record({ kind: 'lost', what: 'calls', server: 'orders', text: 'Messages are missing' })
  const { notes, lost } = viewsOf(eventsIn(ring))
  t.equal(notes.length, KEPT.notes)
  t.match(notes[0], { kind: 'config', text: 'servers: change 3' })
  t.match(notes.at(-1), { kind: 'lost', what: 'calls', server: 'orders' })
  t.equal(lost, 0, 'no event is missing')
})

t.test('merges repeated losses of calls into one note', async (t) => {
  const ring = tickingRing()
  const lost = { kind: 'lost', what: 'calls', text: 'Calls were not recorded' } as const
  for (const count of [3, 4]) ring.record({ ...lost, count })
  ring.record({ ...lost, count: 5, server: 'orders' })
  ring.record({ kind: 'config', text: 'servers: added billing' })
  ring.record({ ...lost, count: 6 })
  const { notes, unrecorded } = viewsOf(eventsIn(ring))
  t.same(
    notes.map((note) => [note.kind, note.server, 'count' in note ? note.count : undefined]),
    [
      ['lost', undefined, 7],
      ['lost', 'orders', 5],
      ['config', undefined, undefined],
      ['lost', undefined, 6],
    ],
  )
  t.ok((notes[0]?.at ?? 0) > (eventsIn(ring)[0]?.at ?? 0), 'with the time of the last one')
  t.equal(unrecorded, 18)
})

t.test('filters match exactly the calls they describe', async (t) => {
  const ring = tickingRing()
  tellCall(ring.record, { id: 1, server: 'orders', name: 'book' })
  tellCall(ring.record, { id: 2, server: 'billing', name: 'pay now', outcome: 'fault', why: 'connection refused' })
  tellCall(ring.record, {
    id: 3,
    server: 'orders',
    name: 'nope',
    outcome: 'tool_error',
    more: { principal: 'bob' },
  })
  tellCall(ring.record, { id: 4, server: 'orders', more: { method: 'tools/list', name: undefined } })
  const calls = [...viewsOf(eventsIn(ring)).calls.values()]
  const found = (text: string) => {
    const { matches } = readFilter(text)
    return calls.filter(matches).map(({ id }) => id)
  }
  t.same(found(''), ['c1', 'c2', 'c3', 'c4'])
  t.same(found('tool:book'), ['c1'])
  t.same(found('tool:"pay now"'), ['c2'])
  t.same(found('method:tools/list'), ['c4'])
  t.same(found('server:orders -status:ok'), ['c3'])
  t.same(found('status:fault,tool_error'), ['c2', 'c3'])
  t.same(found('status:tool'), [], 'a status is whole')
  t.same(found('blame:upstream'), ['c2'])
  t.same(found('principal:BOB'), ['c3'])
  t.same(found('era:modern>legacy tool:nope'), ['c3'])
  t.same(found('REFUSED'), ['c2'])
  t.same(found('-refused orders'), ['c1', 'c3', 'c4'])
  t.same(found('ms>6 ms<8 id:c1'), ['c1'])
  t.same(found('ms>1000'), [])
  t.same(found('https://x'), [])
  t.same(found('id:c2'), ['c2'])
  t.same(found('id:7'), ['c1', 'c2', 'c3', 'c4'], 'the id of a request')
  t.match(readFilter('tol:book').hint, /tol: is no field.*fields are tool, name, method/)
  for (const text of ['tool:book', 'book', 'file:///notes', 'https://example.com']) t.notOk(readFilter(text).hint, text)
  t.match(readFilter('ms>soon').problem, /ms>500/)
  t.match(readFilter('server:').problem, /needs a value/)
  t.equal(readFilter('server:a').problem, undefined)
  t.same(found('('.repeat(100_000)), [], 'a filter is no regular expression')
})
