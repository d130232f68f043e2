/** What events add up to of sessions: which there are, and whose. */
import t from 'tap'
import type { CallView } from '../../src/inspector/views.js'
import { eventsIn, tellCall, tickingRing } from '../support/sights.js'
import { viewsOf } from '../support/watched.js'

t.test('shows no session for a refused initialize', async (t) => {
  const ring = tickingRing()
  const { record } = ring
  const call = {
    kind: 'call',
    server: 'orders',
    principal: 'bob',
    client: { era: 'legacy', transport: 'http', name: 'old' },
    method: 'initialize',
  } as const
  const states = () => viewsOf(eventsIn(ring)).sessions.map(({ state, calls, client }) => [state, calls, client])
  record({ ...call, what: 'begun', call: 1, session: 'refused' })
  t.same(states(), [], 'it may come')
  record({ ...call, what: 'ended', call: 1, session: 'refused', outcome: 'fault', ms: 1 })
  t.same(states(), [])
  const session = { kind: 'session', server: 'orders', side: 'client', what: 'opened' } as const
  record({ ...call, what: 'begun', call: 2, session: 'before the answer' })
  record({ ...session, session: 'before the answer' })
  record({ ...call, what: 'ended', call: 2, session: 'before the answer', outcome: 'ok', ms: 1 })
  record({ ...call, what: 'begun', call: 3, session: 'after the answer' })
  record({ ...call, what: 'ended', call: 3, session: 'after the answer', outcome: 'ok', ms: 1 })
  record({ ...session, session: 'after the answer' })
  t.same(states(), [
    ['open', 1, 'old'],
    ['open', 1, 'old'],
  ])
  const late = { ...call, call: 4, session: 'ended before', method: 'tools/call' } as const
  record({ ...late, what: 'begun' })
  const began = ring.last
  record({ ...session, session: 'ended before', what: 'ended' })
  record({ ...late, what: 'ended', outcome: 'cancelled', cancelled: 'session', ms: 1 })
  t.same(states().at(-1), ['ended', 1, 'old'])
  t.same(viewsOf(eventsIn(ring, began + 1)).sessions, [], 'the end of a call does not say that its session is open')
})

t.test('sessions of two servers can have the same id', async (t) => {
  const ring = tickingRing()
  const { record } = ring
  for (const server of ['orders', 'billing'])
    record({ kind: 'session', server, side: 'client', what: 'opened', session: '1', principal: server })
  record({ kind: 'session', server: 'orders', side: 'server', what: 'opened', session: '1', principal: 'all' })
  tellCall(record, { id: 1, server: 'orders', more: { session: '1' } })
  tellCall(record, { id: 2, server: 'billing', more: { session: '1' } })
  record({ kind: 'session', server: 'billing', side: 'client', what: 'lost', session: '1' })
  record({ kind: 'stream', server: 'orders', what: 'left', stream: 'p1', id: 7, session: '1' })
  const views = viewsOf(eventsIn(ring))
  t.match(
    views.sessions.map(({ server, side, principal, state, calls }) => [server, side, principal, state, calls]),
    [
      ['orders', 'client', 'orders', 'open', 1],
      ['billing', 'client', 'billing', 'lost', 1],
      ['orders', 'server', 'all', 'open', 0],
    ],
  )
  t.match(views.sessionOf(views.call('c2') as CallView), { server: 'billing', side: 'client' })
  t.match([views.call('c1')?.away, views.call('c2')?.away], [true, false], 'the client of one has left its stream')
})
