/** The JSON of events says what was told. */
import t, { type Test } from 'tap'
import { shortDigest } from '../../src/base/crypto/digest.js'
import type { CallBody, MessageBody, TraceEvent } from '../../src/inspector/recorder/events.js'
import { Ring } from '../../src/inspector/ring.js'
import { listed } from '../support/sights.js'

const EVIL = '"\\\n\u2028</script>é\ud800'
const NAMES = { server: EVIL, call: 81, continues: 7, session: EVIL, now: 3_600_123.456_789 }
const side = { era: 'modern', revision: EVIL, transport: 'http', name: EVIL } as const
const message = { kind: 'message', hop: 'server', dir: 'in', form: 'result', bytes: 3 } as const
const call = { kind: 'call', what: 'ended', principal: EVIL, client: side, method: EVIL } as const
const changes = [{ at: `/${EVIL}`, op: 'add', rule: 'ids' }] as const

/** With every member that there is, or it does not compile. */
const wholeMessage: Required<MessageBody> = {
  ...message,
  method: EVIL,
  id: EVIL,
  http: { status: 500, headers: { accept: EVIL } },
  changed: { all: changes, more: 2, weight: 100, size: 100 },
  of: 5,
}
const wholeCall: Required<CallBody> = {
  ...call,
  upstream: side,
  member: EVIL,
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

const SIGHTS: readonly TraceEvent[] = [
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
  { ...call, outcome: 'ok', ms: 12_345.006_7 },
  { kind: 'child', what: 'stderr', pid: 1, line: EVIL },
  { kind: 'refused', status: 403, why: EVIL, path: EVIL, from: EVIL },
]

const NOW = 59_999.999_9

/** What the event with this number says of a trace. */
function eventOf(trace: TraceEvent, seq: number, origin: number, replica?: string): object {
  const { now = NOW, call, continues, session, ...rest } = trace
  const common = {
    v: 1,
    seq,
    at: thousandths(origin + now),
    replica,
    call: call && `c${call}`,
    session: session && shortDigest(session).slice(0, 8),
  }
  if (rest.kind === 'message') {
    const { changed, ...message } = rest
    return { ...message, ...common, changes: changed?.all, more: changed?.more || undefined }
  }
  const { ms, upstreamMs } = rest as Partial<CallBody>
  const times = { ms: thousandths(ms), upstreamMs: thousandths(upstreamMs) }
  return { ...rest, ...common, ...times, continues: continues && `c${continues}` }
}

function thousandths(milliseconds: number | undefined): number | undefined {
  return milliseconds === undefined ? undefined : Math.round(milliseconds * 1_000) / 1_000
}

function check(t: Test, { origin, replica }: { origin: number; replica?: string }): void {
  const ring = new Ring({ origin, replica, now: () => NOW })
  // Twice, because what an event shares with others is remembered.
  for (const trace of [...SIGHTS, ...SIGHTS]) {
    const seq = ring.record(trace)
    const json = ring.json(seq)
    t.same(JSON.parse(json), JSON.parse(JSON.stringify(eventOf(trace, seq, origin, replica))))
    t.notMatch(json, /\n/, 'one line')
  }
}

for (const origin of [0, Date.UTC(2026, 6, 28, 3, 7, 20) + 0.123])
  t.test(`the JSON of an event has all recorded members, at any time after ${origin}`, async (t) => {
    check(t, { origin })
  })

t.test('each event has the id of its replica', async (t) => {
  check(t, { origin: 0, replica: EVIL })
})
