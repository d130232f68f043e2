/** The JSON of events says what JSON.stringify says. */
import t from 'tap'
import { jsonOf } from '../../src/inspect/json.js'
import type { Seen } from '../../src/ports/seen.js'
import { tellCall, tellQuestion, tickingRing } from '../support/sights.js'

const EVIL = '"\\\n\u2028</script>é\ud800'
const head = { v: 1, seq: 7, at: 1_795_398_860_123.456 } as const
const belonging = { server: EVIL, call: EVIL, continues: EVIL, session: '0123abcd' }
const side = { era: 'modern', revision: EVIL, transport: 'http', name: EVIL } as const
const message = { ...head, kind: 'message', hop: 'server', dir: 'in', form: 'result', bytes: 3 } as const
const call = { ...head, kind: 'call', principal: EVIL, client: side, method: EVIL, relayed: false } as const

type Whole<K> = Required<Extract<Seen, { kind: K }>>
/** With every member that there is, or it does not compile. */
const wholeMessage: Whole<'message'> = {
  ...message,
  ...belonging,
  method: EVIL,
  id: EVIL,
  http: { status: 200, headers: { accept: EVIL } },
  changes: [],
  of: 5,
  more: 2,
  payload: { text: EVIL, cut: 1, hidden: 2 },
}
const wholeCall: Whole<'call'> = {
  ...call,
  ...belonging,
  what: 'ended',
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

const EVENTS: readonly Seen[] = [
  wholeMessage,
  wholeCall,
  message,
  { ...message, ...belonging, method: EVIL, id: EVIL },
  { ...message, id: 0, of: 5, more: 2, changes: [{ at: `/${EVIL}`, op: 'add', rule: 'ids' }] },
  { ...message, changes: [], http: { status: 200, headers: { accept: EVIL } } },
  { ...message, http: { headers: {} }, payload: { text: EVIL, cut: 1, hidden: 2 } },
  { ...call, what: 'begun' },
  { ...call, ...belonging, what: 'begun', name: EVIL, upstream: side, trace: EVIL },
  { ...call, what: 'ended', relayed: true, outcome: 'ok', ms: 0, upstreamMs: 1.000_000_1 },
  { ...call, what: 'ended', outcome: 'fault', code: -32603, fault: EVIL, blame: 'upstream', why: EVIL },
  { ...call, what: 'ended', blame: 'bridge' },
  { ...head, kind: 'child', what: 'stderr', pid: 1, line: EVIL },
  { ...head, kind: 'refused', status: 403, why: EVIL, path: EVIL, from: EVIL },
]

t.test('the JSON of an event has all that the event has', (t) => {
  const ring = tickingRing({ payloads: 'all' })
  tellCall(ring.witness, { id: 'c1', texts: { request: '{"a":1}', result: '{}' } })
  tellCall(ring.witness, { id: 'c2', outcome: 'fault', why: 'connection refused' })
  tellQuestion(ring.witness, { id: 'c3', answer: 'c4' })
  // Twice, because what an event shares with others is remembered.
  for (const seen of [...EVENTS, ...ring.after(0)])
    for (let i = 0; i < 2; i++) {
      const json = jsonOf(seen)
      t.same(JSON.parse(json), JSON.parse(JSON.stringify(seen)))
      t.notMatch(json, /\n/, 'one line')
    }
  t.end()
})
