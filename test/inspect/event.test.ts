/** Events of files: those of an export are read. A file may come from anybody, so nothing else is. */
import t from 'tap'
import { eventIn } from '../../src/inspector/event.js'
import type { RecordedEvent, TraceEvent } from '../../src/inspector/recorder/events.js'
import { Ring } from '../../src/inspector/ring.js'
import { eventsIn, listed, tellCall, tellQuestion, tickingRing } from '../support/sights.js'

const ODD = '"\\\n\u2028</script>é\ud800'
const OTHERS: readonly TraceEvent[] = [
  { kind: 'verdict', server: ODD, era: 'unknown', why: ODD, ms: 1.5 },
  { kind: 'session', server: ODD, session: ODD, side: 'client', what: 'opened', principal: ODD },
  { kind: 'stream', server: ODD, session: ODD, what: 'left', stream: ODD, id: ODD },
  { kind: 'child', server: ODD, what: 'started', pid: 1 },
  { kind: 'child', server: ODD, what: 'stderr', line: ODD },
  { kind: 'refused', status: 403, why: ODD, said: ODD, path: ODD, from: ODD },
  { kind: 'config', text: ODD },
  { kind: 'trust', server: ODD, text: ODD },
  { kind: 'lost', what: 'calls', text: ODD, count: 4 },
  {
    kind: 'message',
    call: 1,
    hop: 'server',
    dir: 'out',
    form: 'request',
    method: ODD,
    id: -1.5,
    bytes: 0,
    http: { status: 500, headers: { accept: ODD } },
    changed: listed([{ at: `/${ODD}`, op: 'add', rule: 'ids' }]),
  },
]

function events(): RecordedEvent[] {
  const ring = tickingRing({ payloads: 'all' })
  tellCall(ring.record, { id: 1, outcome: 'fault', why: ODD, texts: { request: '{}', result: ODD } })
  tellQuestion(ring.record, { id: 2, answer: 3 })
  for (const trace of OTHERS) ring.record(trace)
  return eventsIn(ring)
}

t.test('parses every event of an export', async (t) => {
  const kinds = new Set<string>()
  for (const seen of events()) {
    t.same(eventIn(JSON.stringify(seen)), JSON.parse(JSON.stringify(seen)), seen.kind)
    kinds.add(seen.kind)
  }
  t.equal(kinds.size, 11, [...kinds].join())
  t.ok(eventIn(JSON.stringify({ ...events()[0], later: 'a newer version has more' })))
  t.equal(new Ring().last, 0)
})

t.test('rejects an event with a value of another type at any place', async (t) => {
  const wrong = [{ toString: 1, valueOf: 1 }, [{}], null, [null]]
  let tried = 0
  for (const seen of events())
    for (const path of pathsIn(JSON.parse(JSON.stringify(seen)), []))
      for (const value of wrong) {
        const copy = JSON.parse(JSON.stringify(seen))
        const last = path.at(-1) as string
        path.slice(0, -1).reduce((at, key) => at[key], copy)[last] = value
        t.equal(eventIn(JSON.stringify(copy)), undefined, `${seen.kind} ${path.join('/')} ${JSON.stringify(value)}`)
        tried++
      }
  t.ok(tried > 500, `${tried} values`)
})

t.test('rejects numbers and texts that no inspector writes', async (t) => {
  const call = JSON.stringify(events()[0])
  const message = JSON.stringify(events().find((seen) => seen.kind === 'message' && seen.changes?.length))
  for (const [line, from, to] of [
    [call, /"seq":\d+/, '"seq":1.5'],
    [call, /"seq":\d+/, '"seq":-1'],
    [call, /"seq":\d+/, '"seq":0'],
    [call, /"at":[\d.]+/, '"at":1e999'],
    [call, /"call":"c1"/, '"call":"\\ud800"'],
    [call, /"method":"[^"]*"/, `"method":"${'x'.repeat(20_000)}"`],
    [message, /"rule":"[^"]*"/, '"rule":"\\ud800"'],
    [message, /"bytes":\d+/, '"bytes":-5'],
  ] as const) {
    t.ok(eventIn(line), 'as it was')
    t.match(line, from)
    t.equal(eventIn(line.replace(from, to)), undefined, to.slice(0, 40))
  }
  for (const line of ['', 'null', '[]', '5', '{"kind":"__proto__"}', '{"kind":"constructor","v":1,"seq":1,"at":1}'])
    t.equal(eventIn(line), undefined, line)
})

// biome-ignore lint/suspicious/noExplicitAny: any JSON
function pathsIn(value: any, path: string[]): string[][] {
  if (typeof value !== 'object' || value === null) return [path]
  return [
    ...(path.length > 0 ? [path] : []),
    ...Object.keys(value).flatMap((key) => pathsIn(value[key], [...path, key])),
  ]
}
