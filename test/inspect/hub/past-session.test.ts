/** Past sessions from a file: in order, without broken lines, and without a bound on what is wrong with it. */
import t from 'tap'
import { pastSessionIn } from '../../../src/inspector/hub/past-session.js'
import type { RecordedEvent } from '../../../src/inspector/recorder/events.js'
import { Views } from '../../../src/inspector/views.js'
import { eventsIn, tellCall, tellQuestion, tickingRing } from '../../support/sights.js'

const linesOf = (events: readonly RecordedEvent[]) => events.map((seen) => JSON.stringify(seen))
const read = (lines: readonly string[]) => {
  const recording = pastSessionIn(Buffer.from(lines.join('\n')))
  const views = new Views()
  for (const seen of recording.merged.ring.after(0)) views.add(seen)
  return { ...recording, views }
}

t.test('reads an export with its texts, changes and questions', async (t) => {
  const ring = tickingRing({ payloads: 'all' })
  tellCall(ring.record, { id: 81, texts: { request: '{"a":1}', result: '{"b":2}' } })
  tellQuestion(ring.record, { id: 82, answer: 83 })
  const { merged, events, broken, views } = read(linesOf(eventsIn(ring)))
  t.same([events, broken, views.lost], [ring.last, 0, 0])
  t.match(
    [...views.calls.values()],
    [
      { status: 'ok', name: 'book', ms: 7 },
      { status: 'ok', rounds: 1, parts: ['c3'] },
    ],
  )
  const messages = views.calls.get('c1')?.events.filter((seen) => seen.kind === 'message') ?? []
  t.match(messages[1], { changes: [{ rule: 'envelope' }, { rule: 'progress' }] })
  t.match(merged.textOf(messages[0]?.seq ?? 0), { text: '{"a":1}', hidden: 0 })
  const [was] = eventsIn(ring)
  t.equal(views.calls.get('c1')?.at, was?.at)
})

t.test('counts broken lines, leaves them out, and reads the rest', async (t) => {
  const ring = tickingRing()
  tellCall(ring.record, { id: 1 })
  const [first = '', ...rest] = linesOf(eventsIn(ring))
  const wrong = ['no JSON', '{"v":1}', `"${'x'.repeat(2_000_000)}"`, '{"v":1,"seq":1,"at":1,"kind":"call"', '', '  ']
  const { events, broken, firstBroken, views } = read([first, ...wrong, ...rest, rest[0]?.slice(0, 40) ?? ''])
  t.same([events, broken, firstBroken], [8, 5, 2])
  t.match(views.calls.get('c1'), { status: 'ok', incomplete: false })
  t.match(read(['nothing', 'at all']), { events: 0, broken: 2, firstBroken: 1 })
  t.match(pastSessionIn(Buffer.from([0xff, 0x0a, 0xfe])), { events: 0, broken: 2 })
})

t.test('puts calls that tail printed late into their place, and tells runs of a bridge apart', async (t) => {
  const first = tickingRing()
  tellCall(first.record, { id: 1, name: 'late' })
  tellCall(first.record, { id: 2, name: 'early' })
  const lines = linesOf(eventsIn(first))
  const late = [...lines.slice(8), ...lines.slice(0, 8)]
  t.match([...read(late).views.calls.values()], [{ name: 'late' }, { name: 'early' }])
  const second = eventsIn(first).map((seen) => ({ ...seen, at: seen.at + 1_000 }))
  const { views, events } = read([...lines, ...linesOf(second)])
  t.equal(events, 32)
  t.match([...views.calls.values()], [{ name: 'late' }, { name: 'early' }, { name: 'late' }, { name: 'early' }])
})

t.test('keeps the bridges of an export of several', async (t) => {
  const ring = tickingRing()
  tellCall(ring.record, { id: 1 })
  const { views } = read(linesOf(eventsIn(ring).map((seen) => ({ ...seen, bridge: '4711', server: 'orders (4711)' }))))
  t.match(views.calls.get('c1'), { bridge: '4711', server: 'orders (4711)' })
})
