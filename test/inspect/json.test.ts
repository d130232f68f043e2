/** The JSON of events says what JSON.stringify says. */
import t, { type Test } from 'tap'
import { Ring } from '../../src/inspect/ring.js'
import type { CallSeen, MessageSeen, Sight } from '../../src/ports/seen.js'
import { listed, tellCall, tellQuestion, tickingRing } from '../support/sights.js'

const EVIL = '"\\\n\u2028</script>é\ud800'
const NAMES = { server: EVIL, call: 81, continues: 7, session: EVIL, now: 3_600_123.456_789 }
const side = { era: 'modern', revision: EVIL, transport: 'http', name: EVIL } as const
const message = { kind: 'message', hop: 'server', dir: 'in', form: 'result', bytes: 3 } as const
const call = { kind: 'call', what: 'ended', principal: EVIL, client: side, method: EVIL, relayed: false } as const
const changes = [{ at: `/${EVIL}`, op: 'add', rule: 'ids' }] as const

/** With every member that there is, or it does not compile. */
const wholeMessage: Required<MessageSeen> = {
  ...message,
  method: EVIL,
  id: EVIL,
  http: { status: 500, headers: { accept: EVIL } },
  changed: { all: changes, more: 2, weight: 100 },
  of: 5,
}
const wholeCall: Required<CallSeen> = {
  ...call,
  upstream: side,
  name: EVIL,
  outcome: 'cancelled',
  cancelled: 'notification',
  code: -1,
  fault: EVIL,
  blame: 'bridge',
  why: EVIL,
  ms: 1,
  upstreamMs: 2,
  trace: EVIL,
}

const SIGHTS: readonly Sight[] = [
  { ...wholeMessage, ...NAMES },
  { ...wholeCall, ...NAMES },
  message,
  { ...message, ...NAMES, call: 999_999_999_999, id: 0 },
  { ...message, now: 0.000_4, changed: listed([]), http: { headers: {} } },
  { ...message, dir: 'out', form: 'error', changed: listed(changes), http: { status: 200, headers: { accept: EVIL } } },
  { ...call, what: 'begun', now: 1_000 },
  { ...call, ...NAMES, call: 1, upstream: side, trace: EVIL, outcome: 'ok', ms: 0, upstreamMs: 1.000_000_1 },
  { ...call, outcome: 'fault', code: -32603, fault: EVIL, blame: 'upstream', why: EVIL },
  { ...call, blame: 'bridge' },
  { ...call, outcome: 'ok', relayed: true, ms: 12_345.006_7 },
  { kind: 'child', what: 'stderr', pid: 1, line: EVIL },
  { kind: 'refused', status: 403, why: EVIL, path: EVIL, from: EVIL },
]

function check(t: Test, ring: Ring): void {
  // Twice, because what an event shares with others is remembered.
  for (let i = 0; i < 2; i++)
    for (const seen of ring.after(0, false)) {
      const json = ring.json(seen.seq)
      t.same(JSON.parse(json), JSON.parse(JSON.stringify(seen)))
      t.notMatch(json, /\n/, 'one line')
    }
}

t.test('the JSON of an event has all that the event has', async (t) => {
  const ring = tickingRing({ payloads: 'all' })
  tellCall(ring.witness, { id: 1, texts: { request: '{"a":1}', result: '{}' } })
  tellCall(ring.witness, { id: 2, outcome: 'fault', why: 'connection refused' })
  tellQuestion(ring.witness, { id: 3, answer: 4 })
  check(t, ring)
})

t.test('of several replicas, each says in its events which one it is', async (t) => {
  const ring = new Ring({ replica: EVIL })
  for (const sight of SIGHTS) ring.witness(sight)
  t.same([...new Set(ring.after(0).map(({ replica }) => replica))], [EVIL])
  check(t, ring)
  const alone = new Ring()
  for (const sight of SIGHTS) alone.witness(sight)
  t.notMatch(JSON.stringify(alone.after(0)), /"replica"/)
})

for (const origin of [0, Date.UTC(2026, 6, 28, 3, 7, 20) + 0.123])
  t.test(`so it has with all members and with none, and at any time after ${origin}`, async (t) => {
    const ring = new Ring({ origin, now: () => 59_999.999_9 })
    for (const sight of [...SIGHTS, ...SIGHTS]) ring.witness(sight)
    check(t, ring)
  })
