/** What is known about a failed call. */
import t from 'tap'
import { failureOf } from '../../src/inspector/call-failure.js'
import { Views } from '../../src/inspector/views.js'
import { eventsIn, tellCall, tickingRing } from '../support/sights.js'

/** The failure of the newest call, after these lines before it, and others after its start. */
function failure(more: Partial<Parameters<typeof tellCall>[1]>, before: string[] = [], later: string[] = []) {
  const ring = tickingRing({ payloads: 'all' })
  const write = (line: string) => ring.record({ kind: 'child', server: 'orders', what: 'stderr', line })
  before.forEach(write)
  tellCall(ring.record, { id: 1, outcome: 'fault', ...more })
  later.forEach(write)
  const views = new Views()
  for (const seen of eventsIn(ring)) views.add(seen)
  const call = views.call('c1')
  return call && failureOf(call, views.servers)
}

t.test('a call that has not failed has no failure', async (t) => {
  for (const outcome of ['ok', 'asks', 'cancelled'] as const)
    t.equal(failure({ outcome }, ['before'], ['later']), undefined, outcome)
})

t.test('the message of the error and the reason are texts, once if one has the other', async (t) => {
  const said = (message: string) => ({ request: '{}', result: JSON.stringify({ error: { code: 1, message } }) })
  const why = 'The server exited with code 3'
  t.same(failure({ why })?.texts, [why])
  t.same(failure({ why, texts: said('orders is unavailable') })?.texts, ['orders is unavailable', why])
  t.same(failure({ why, texts: said(`orders is unavailable: ${why}`) })?.texts, [`orders is unavailable: ${why}`])
  t.same(failure({})?.texts, [])
})

t.test('lines are those of the call; of an unusable server, also earlier ones', async (t) => {
  const lines = (found: ReturnType<typeof failure>) => found?.lines.map(({ line }) => line)
  const [before, later] = [['early'], ['late']]
  t.same(lines(failure({ outcome: 'tool_error' }, before, later)), ['late'])
  t.same(lines(failure({ more: { fault: 'invalidParams' } }, before, later)), ['late'])
  const found = failure({ more: { fault: 'upstreamClosed' } }, before, later)
  t.same(lines(found), ['early', 'late'])
  t.ok((found?.lines[0]?.after ?? 0) < 0 && (found?.lines[1]?.after ?? 0) > 0)
  const many = Array.from({ length: 30 }, (_, i) => `line ${i}`)
  t.same(lines(failure({}, many)), many.slice(-6))
  t.same(lines(failure({ server: 'billing' }, before, later)), [], 'another server')
})

t.test('a call of a group has the lines of the server that got it', async (t) => {
  const ring = tickingRing()
  const { record } = ring
  const client = { era: 'modern' } as const
  const call = { kind: 'call', call: 1, server: 'team', principal: 'bob', client, method: 'tools/call' } as const
  record({ ...call, what: 'begun' })
  const message = { kind: 'message', call: 1, server: 'orders', hop: 'server', dir: 'out', bytes: 1 } as const
  record({ ...message, form: 'request', method: 'tools/call' })
  record({ kind: 'child', server: 'orders', what: 'stderr', line: 'mine' })
  record({ kind: 'child', server: 'billing', what: 'stderr', line: 'another' })
  record({ ...call, what: 'ended', outcome: 'error', ms: 3 })
  const views = new Views()
  for (const seen of eventsIn(ring)) views.add(seen)
  const found = views.call('c1')
  t.same(found && failureOf(found, views.servers)?.lines.map(({ line }) => line), ['mine'])
})
