/** What stays in the memory of the inspector when thousands of quiet calls follow. */
import t from 'tap'
import { MAX_PINNED_CALLS } from '../../src/inspector/retained-events.js'
import type { Ring } from '../../src/inspector/ring.js'
import { Views } from '../../src/inspector/views.js'
import { eventsIn, tellCall, tellQuestion, tickingRing } from '../support/sights.js'

/** Quiet calls, more than the ring holds. */
function quiet(ring: Ring, from = 10_000, calls = 6_000, server = 'busy'): void {
  for (let i = from; i < from + calls; i++) tellCall(ring.record, { id: i, server })
}

/** What a viewer sees who connects now. */
function viewsOf(ring: Ring): Views {
  const views = new Views()
  views.first = ring.first
  for (const seen of ring.after(0)) views.add(seen)
  return views
}

const probe = { kind: 'message', server: 'idle', hop: 'server', bytes: 1 } as const
const running = {
  kind: 'call',
  what: 'begun',
  server: 'idle',
  principal: 'alice',
  client: { era: 'modern' },
  method: 'tools/call',
} as const

t.test('6,000 quiet calls evict no failed call, refusal, question, or state of an idle server', async (t) => {
  const ring = tickingRing()
  ring.record({ kind: 'verdict', server: 'idle', era: 'legacy', why: 'answered initialize' })
  ring.record({ ...probe, dir: 'out', form: 'request', method: 'server/discover', id: 1 })
  ring.record({ ...probe, dir: 'in', form: 'error', id: 1 })
  ring.record({ kind: 'child', server: 'idle', what: 'started', pid: 812 })
  ring.record({ kind: 'child', server: 'idle', what: 'stderr', line: 'ready' })
  ring.record({ kind: 'session', server: 'idle', side: 'client', what: 'opened', session: 's1' })
  ring.record({ kind: 'refused', status: 401, why: 'unauthorized' })
  ring.record({ kind: 'config', text: 'changed' })
  tellCall(ring.record, { id: 1, outcome: 'tool_error' })
  tellCall(ring.record, { id: 2, outcome: 'cancelled' })
  tellQuestion(ring.record, { id: 3, answer: 4 })
  tellCall(ring.record, { id: 5 })
  ring.record({ ...running, call: 6 })
  quiet(ring)
  const views = viewsOf(ring)
  t.ok(ring.first > 100, 'the ring has turned around')
  t.equal(views.lost, 0, 'what left before the viewer came is not lost')
  t.match(views.call('c1'), { status: 'tool_error', incomplete: false, events: { length: 8 } })
  t.match(views.call('c2'), { status: 'cancelled' })
  t.match(views.call('c3'), { rounds: 1, parts: ['c4'], status: 'ok' })
  t.equal(views.call('c5'), undefined, 'a quiet call has left')
  t.match(views.call('c6'), { status: 'open' }, 'a running one has not')
  t.match(views.refused, [{ why: 'unauthorized' }])
  t.match(views.notes, [{ text: 'changed' }])
  t.match(views.servers.get('idle'), { era: 'legacy', pids: [812], stderr: ['ready'], messages: { length: 2 } })
  t.match(views.sessions, [{ state: 'open' }, {}])
  const numbers = eventsIn(ring).map(({ seq }) => seq)
  t.same(
    numbers,
    numbers.toSorted((a, b) => a - b),
    'events are read in order',
  )
  ring.record({ ...running, call: 6, what: 'ended', outcome: 'ok' })
  quiet(ring, 20_000)
  t.equal(viewsOf(ring).call('c6'), undefined, 'it has ended without an error, and leaves')
})

t.test('a server that fails all the time evicts its own oldest failures, and none of another server', async (t) => {
  const ring = tickingRing()
  tellCall(ring.record, { id: 1, server: 'idle', outcome: 'error' })
  for (let i = 2; i < 10_000; i++) tellCall(ring.record, { id: i, server: 'broken', outcome: 'error' })
  const { calls } = viewsOf(ring)
  t.ok(calls.has('c1'))
  t.notOk(calls.has('c2'))
  t.ok(ring.bytes < 16 * 1024 * 1024, `${ring.bytes} bytes`)
})

t.test('keeps the texts of failed calls, and hides those of calls that have not failed', async (t) => {
  const ring = tickingRing({ payloads: 'errors' })
  const texts = { request: `{"a":"${'x'.repeat(500)}"}`, result: '{"failed":true}' }
  tellCall(ring.record, { id: 1, outcome: 'error', texts })
  tellQuestion(ring.record, { id: 2, answer: 3 })
  ring.record({ ...running, call: 4 })
  ring.record({ ...probe, call: 4, hop: 'client', dir: 'in', form: 'request', id: 1 }, '{"late":true}')
  for (let i = 10_000; i < 20_000; i++) tellCall(ring.record, { id: i, texts })
  const textsOf = (call: string) => eventsIn(ring).filter((seen) => seen.call === call && 'payload' in seen)
  t.equal(textsOf('c1').length, 4)
  t.match(textsOf('c1').at(-1), { payload: { text: '{"failed":true}' } })
  t.same(textsOf('c4'), [], 'it may still succeed')
  ring.record({ ...running, call: 4, what: 'ended', outcome: 'fault' })
  t.match(textsOf('c4'), [{ payload: { text: '{"late":true}' } }])
})

t.test('a pinned call stays with its texts until it is unpinned, and pins have a bound', async (t) => {
  const ring = tickingRing({ payloads: 'all' })
  const texts = { request: '{"mine":true}', result: '{}' }
  tellCall(ring.record, { id: 1, texts })
  tellCall(ring.record, { id: 2, outcome: 'error', texts })
  ring.record({ ...running, call: 3 })
  for (const id of ['c1', 'c2', 'c3']) t.equal(ring.pin(id), true)
  t.equal(ring.pin('c1'), true, 'twice is once')
  t.equal(ring.pin('c99'), undefined)
  t.same(ring.pinned, ['c1', 'c2', 'c3'])
  tellQuestion(ring.record, { id: 4, answer: 5 })
  const large = { request: 'y'.repeat(16_000), result: '{}' }
  for (let i = 10_000; i < 14_000; i++) tellCall(ring.record, { id: i, texts: large })
  ring.record({ ...running, call: 3, what: 'ended', outcome: 'ok' })
  quiet(ring, 20_000)
  const mine = eventsIn(ring).filter(({ call }) => call === 'c1')
  t.equal(mine.length, 8)
  t.match(mine[1], { payload: { text: '{"mine":true}' } })
  t.match(viewsOf(ring).call('c3'), { status: 'ok' }, 'what came after it was pinned stays, too')
  ring.unpin('c1')
  ring.unpin('c2')
  t.same(ring.pinned, ['c3'])
  t.equal(viewsOf(ring).call('c1'), undefined)
  t.match(viewsOf(ring).call('c2'), { status: 'error' }, 'a failed call stays as others do')
  for (let i = 30_000; i < 30_100; i++) tellCall(ring.record, { id: i })
  const done = Array.from({ length: 100 }, (_, i) => ring.pin(`c${30_000 + i}`))
  t.equal(done.filter((isPinned) => isPinned === true).length, MAX_PINNED_CALLS - 1)
  t.equal(done.at(-1), false)
})

t.test('pinned calls with long texts are bounded by their bytes', async (t) => {
  const ring = tickingRing({ payloads: 'all' })
  const texts = { request: 'z'.repeat(16_000), result: 'z'.repeat(16_000) }
  let pinned = 0
  for (let i = 1; i <= 40; i++) {
    tellCall(ring.record, { id: i, texts })
    if (ring.pin(`c${i}`)) pinned++
  }
  t.ok(pinned > 5 && pinned < 40, `${pinned} calls`)
  t.ok(ring.bytes < 16 * 1024 * 1024)
})

t.test('clearing drops past events, and keeps pinned calls and the current state', async (t) => {
  const ring = tickingRing()
  ring.record({ kind: 'child', server: 'idle', what: 'started', pid: 812 })
  ring.record({ kind: 'refused', status: 401, why: 'unauthorized' })
  tellCall(ring.record, { id: 1, outcome: 'error' })
  tellCall(ring.record, { id: 2 })
  tellCall(ring.record, { id: 3 })
  ring.record({ ...running, call: 4 })
  ring.pin('c3')
  quiet(ring, 10_000, 3_000)
  tellCall(ring.record, { id: 5, outcome: 'error' })
  ring.clear()
  const views = viewsOf(ring)
  t.same([...views.calls.keys()], ['c3', 'c4'])
  t.same(views.refused, [])
  t.match(views.servers.get('idle'), { pids: [812] })
  t.equal(views.lost, 0)
  t.ok((ring.cleared ?? 0) > 0)
  tellCall(ring.record, { id: 6 })
  t.match([...viewsOf(ring).calls.keys()], ['c3', 'c4', 'c6'])
})
