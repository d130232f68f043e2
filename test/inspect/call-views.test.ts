/** What events add up to of calls that continue others. */
import t from 'tap'
import { KEPT_OF_CALLS } from '../../src/inspector/call-views.js'
import { type CallView, Views } from '../../src/inspector/views.js'
import { eventsIn, tellCall, tickingRing } from '../support/sights.js'
import { viewsOf } from '../support/watched.js'

t.test('shows a call that continues a dropped one as a separate call', async (t) => {
  const ring = tickingRing()
  const { record } = ring
  const begun = {
    kind: 'call',
    what: 'begun',
    principal: 'alice',
    client: { era: 'modern' },
    method: 'tools/call',
  } as const
  const message = { kind: 'message', call: 2, hop: 'server', dir: 'in', form: 'notification', bytes: 1 } as const
  tellCall(record, { id: 1, outcome: 'asks' })
  record({ ...begun, call: 2, continues: 1 })
  const views = viewsOf(eventsIn(ring))
  t.same(views.call('c2')?.parts, ['c2'])
  for (let seq = 100, id = 10; id < 10 + KEPT_OF_CALLS.calls; id++)
    views.add({ ...begun, v: 1, seq: seq + id, at: id, call: `c${id}` })
  t.equal(views.call('c1'), undefined)
  t.equal(views.call('c2'), undefined)
  const last = views.last
  const told = [{ ...message }, { ...message }, { ...begun, what: 'ended' as const, outcome: 'ok' as const }]
  for (const [i, seen] of told.entries()) views.add({ ...seen, v: 1, seq: last + 1 + i, at: 1, call: 'c2' })
  const call = views.call('c2') as CallView
  t.match(call, { id: 'c2', incomplete: true, status: 'ok' })
  t.equal(call.events.length, 3)
  views.add({ ...begun, v: 1, seq: last + 9, at: 1, call: 'c3', continues: 'c2' })
  t.match(views.call('c3'), { id: 'c2', parts: ['c3'] })
})

t.test('bounds the memory of a call that a client continues without end', async (t) => {
  const views = new Views()
  const begun = {
    v: 1,
    at: 1,
    kind: 'call',
    what: 'begun',
    principal: 'p',
    client: { era: 'modern' },
    method: 'm',
  } as const
  for (let i = 1; i <= KEPT_OF_CALLS.parts + 100; i++)
    views.add({ ...begun, seq: i, call: `c${i}`, ...(i > 1 && { continues: `c${i - 1}` }) })
  t.equal(views.calls.size, 1)
  t.equal(views.call('c1')?.parts.length, KEPT_OF_CALLS.parts)
  t.equal(views.call(`c${KEPT_OF_CALLS.parts + 100}`)?.id, 'c1')
})

t.test('quiet calls evict neither failed calls nor questions, while these are less than half of all', async (t) => {
  const views = new Views()
  let seq = 0
  const ended = (call: string, outcome: 'ok' | 'error' | 'asks') =>
    views.add({
      v: 1,
      at: 1,
      seq: ++seq,
      kind: 'call',
      what: 'ended',
      call,
      outcome,
      principal: 'p',
      client: { era: 'modern' },
      method: 'm',
    })
  ended('c1', 'error')
  ended('c2', 'asks')
  ended('c3', 'ok')
  views.pin(new Set(['c4']))
  ended('c4', 'ok')
  for (let i = 10; i < 10 + 2 * KEPT_OF_CALLS.calls; i++) ended(`c${i}`, 'ok')
  t.same([...views.calls.keys()].slice(0, 3), ['c1', 'c2', 'c4'])
  t.equal(views.calls.size, KEPT_OF_CALLS.calls)
  for (let i = 100_000; i < 100_000 + KEPT_OF_CALLS.calls; i++) ended(`c${i}`, 'error')
  t.notOk(views.calls.has('c1'))
  t.equal(views.calls.size, KEPT_OF_CALLS.calls)
})
