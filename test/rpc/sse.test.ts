import fc from 'fast-check'
import t from 'tap'
import { encodeEvent, KEEP_ALIVE, SseDecoder, type SseEvent } from '../../src/rpc/sse.js'

/** Decodes a text cut at the given places. */
function decode(text: string, cuts: readonly number[] = [], bounds?: { line: number; event: number }): SseEvent[] {
  const decoder = bounds ? new SseDecoder(bounds) : new SseDecoder()
  const places = [...cuts.map((cut) => cut % (text.length + 1)), 0, text.length].sort((a, b) => a - b)
  const events: SseEvent[] = []
  for (let i = 1; i < places.length; i++) events.push(...decoder.push(text.slice(places[i - 1], places[i])))
  return events
}

const json = fc.jsonValue().map((value) => JSON.stringify(value))

t.test('what was encoded is decoded, however the stream is cut', async () => {
  fc.assert(
    fc.property(fc.array(json, { maxLength: 4 }), fc.array(fc.nat(), { maxLength: 6 }), (messages, cuts) => {
      const stream = messages.map((message) => encodeEvent(message) + KEEP_ALIVE).join('')
      return (
        JSON.stringify(decode(stream, cuts)) === JSON.stringify(messages.map((data) => ({ event: 'message', data })))
      )
    }),
    { numRuns: 2_000 },
  )
})

t.test('line breaks between tokens become spaces, so that nothing ends an event before its time', async (t) => {
  t.equal(encodeEvent('{\r\n"a":\r1\n}'), 'event: message\ndata: { "a": 1 }\n\n')
  t.equal(encodeEvent('{}', { id: '7', retry: 1000 }), 'id: 7\nretry: 1000\nevent: message\ndata: {}\n\n')
})

const cases: [name: string, stream: string, events: SseEvent[]][] = [
  ['line feeds', 'data: 1\n\n', [{ event: 'message', data: '1' }]],
  [
    'carriage returns',
    'data: 1\r\rdata: 2\r\r',
    [
      { event: 'message', data: '1' },
      { event: 'message', data: '2' },
    ],
  ],
  ['both', 'data: 1\r\n\r\n', [{ event: 'message', data: '1' }]],
  [
    'a mixture',
    'data: 1\r\n\ndata: 2\n\r',
    [
      { event: 'message', data: '1' },
      { event: 'message', data: '2' },
    ],
  ],
  ['a byte order mark at the start only', '\ufeffdata: 1\n\n\ufeffdata: 2\n\n', [{ event: 'message', data: '1' }]],
  ['no space after the colon', 'data:1\n\n', [{ event: 'message', data: '1' }]],
  ['one space taken off, not two', 'data:  1\n\n', [{ event: 'message', data: ' 1' }]],
  ['data in several lines', 'data: a\ndata: b\n\n', [{ event: 'message', data: 'a\nb' }]],
  ['an event with a name', 'event: endpoint\ndata: /m\n\n', [{ event: 'endpoint', data: '/m' }]],
  ['comments and unknown fields', ': hi\nfoo: 1\ndata: 1\nbar\n\n', [{ event: 'message', data: '1' }]],
  ['an id without data: a place to go on from', 'id: 5\ndata:\n\n', [{ event: 'message', data: '', id: '5' }]],
  ['an id and nothing else', 'id: 5\n\n', [{ event: 'message', data: '', id: '5' }]],
  ['an id with NUL is ignored', 'id: a\0b\ndata: 1\n\n', [{ event: 'message', data: '1' }]],
  ['nothing but names', 'event: x\n\ndata: 1\n\n', [{ event: 'message', data: '1' }]],
  ['an event that the end of the stream cuts off', 'data: 1\n\ndata: 2\n', [{ event: 'message', data: '1' }]],
  ['line separators of Unicode inside data', 'data: a\u2028b\n\n', [{ event: 'message', data: 'a\u2028b' }]],
]

t.test('streams are read as the standard says', async (t) => {
  for (const [name, stream, events] of cases) {
    t.test(name, async (t) => {
      t.same(decode(stream), events)
      for (let cut = 0; cut <= stream.length; cut++) t.same(decode(stream, [cut]), events, `cut at ${cut}`)
      t.same(
        decode(
          stream,
          Array.from(stream, (_character, at) => at),
        ),
        events,
        'cut everywhere',
      )
    })
  }
})

t.test('the time to wait before reconnecting is kept, if it is a number', async (t) => {
  const decoder = new SseDecoder()
  decoder.push('retry: 500\n\n')
  t.equal(decoder.retry, 500)
  decoder.push('retry: soon\n\nretry: -1\n\n')
  t.equal(decoder.retry, 500)
})

t.test('lines and events over their bound end the reading, whether they end or not', async (t) => {
  const bounds = { line: 20, event: 30 }
  t.same(decode(`data: ${'x'.repeat(14)}\n\n`, [], bounds), [{ event: 'message', data: 'x'.repeat(14) }])
  t.throws(() => decode(`data: ${'x'.repeat(15)}\n\n`, [], bounds), { name: 'SseError' })
  t.throws(() => decode('x'.repeat(21), [3, 9], bounds), { name: 'SseError' })
  t.throws(() => decode(`data: 1234567890\n`.repeat(3), [], bounds), { name: 'SseError' })
})
