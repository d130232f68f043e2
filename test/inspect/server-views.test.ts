/** What events add up to of servers: the server of a call that runs, and what the bridge itself has sent. */
import t from 'tap'
import { readFilter } from '../../src/inspector/filter.js'
import type { Ring } from '../../src/inspector/ring.js'
import { KEPT_OF_SERVERS, openingSince, type ServerView } from '../../src/inspector/server-views.js'
import type { CallView } from '../../src/inspector/views.js'
import { eventsIn, tellCall, tickingRing } from '../support/sights.js'
import { viewsOf } from '../support/watched.js'

const callIn = (ring: Ring, id: string) => viewsOf(eventsIn(ring)).call(id) as CallView

t.test('the probe of a server and the last handshake stay, however many other messages come', async (t) => {
  const ring = tickingRing()
  const { record } = ring
  const message = { kind: 'message', server: 'orders', hop: 'server', bytes: 1 } as const
  const changed = () =>
    record({ ...message, dir: 'in', form: 'notification', method: 'notifications/tools/list_changed' })
  const exchange = (method: string, id: number) => {
    record({ ...message, dir: 'out', form: 'request', method, id })
    record({ ...message, dir: 'in', form: method === 'server/discover' ? 'error' : 'result', id })
  }
  const opening = () => openingSince(viewsOf(eventsIn(ring)).servers.get('orders') as ServerView, 0)?.method
  exchange('server/discover', 1)
  changed()
  exchange('initialize', 2)
  for (let i = 0; i < 50; i++) changed()
  t.equal(opening(), undefined)
  record({ ...message, dir: 'out', form: 'request', method: 'initialize', id: 1 })
  t.equal(opening(), 'initialize', 'a handshake is not answered so far')
  record({ ...message, dir: 'in', form: 'result', id: 1 })
  record({ ...message, dir: 'out', form: 'notification', method: 'notifications/initialized' })
  for (let i = 0; i < 50; i++) changed()
  const { messages } = viewsOf(eventsIn(ring)).servers.get('orders') as ServerView
  t.same(
    messages.slice(0, 6).map(({ method, form, id }) => [method ?? form, id]),
    [
      ['server/discover', 1],
      ['error', 1],
      ['initialize', 1],
      ['result', 1],
      ['notifications/initialized', undefined],
      ['notifications/tools/list_changed', undefined],
    ],
  )
  t.equal(messages.length, 5 + KEPT_OF_SERVERS.messages)
})

t.test('the server of a call that runs is the one that the bridge knows', async (t) => {
  const ring = tickingRing()
  const { record } = ring
  const call = {
    kind: 'call',
    what: 'begun',
    server: 'orders',
    principal: 'bob',
    method: 'tools/call',
  } as const
  const client = { era: 'modern', transport: 'http' } as const
  const sent = { kind: 'message', server: 'orders', hop: 'server', dir: 'out', form: 'request', bytes: 9 } as const
  record({ ...call, call: 1, client })
  t.equal(callIn(ring, 'c1').upstream, undefined, 'it has not been sent')
  record({ ...sent, call: 1 })
  t.equal(callIn(ring, 'c1').upstream, undefined, 'nothing is known of the server')
  record({ kind: 'verdict', server: 'orders', era: 'legacy', transport: 'stdio', why: 'answered initialize' })
  record({ ...sent, call: 1 })
  t.match(callIn(ring, 'c1').upstream, { era: 'legacy', transport: 'stdio', revision: undefined })
  tellCall(record, { id: 2 })
  record({ ...call, call: 3, client })
  record({ ...sent, call: 3 })
  const running = callIn(ring, 'c3')
  t.match(running.upstream, { era: 'legacy', revision: '2025-11-25', transport: 'stdio' })
  const found = (text: string, after: number) => readFilter(text).matches(running, running.at + after)
  t.ok(found('era:modern>legacy', 0))
  t.ok(found('ms>500', 501), 'it is found by the time that it has taken')
  t.notOk(found('ms>500', 499))
  tellCall(record, { id: 4, more: { client: { era: 'legacy' }, upstream: { era: 'legacy', revision: '2024-11-05' } } })
  record({ ...call, call: 5, client })
  record({ ...sent, call: 5 })
  t.match(callIn(ring, 'c5').upstream, { revision: '2025-11-25' }, 'not the one of the session of a legacy client')
})
