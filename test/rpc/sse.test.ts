import fc from 'fast-check'
import t from 'tap'
import { forgivingText } from '../../src/base/rpc/source.js'
import { encodeEvent, KEEP_ALIVE, SseDecoder, type SseEvent } from '../../src/base/rpc/sse.js'

/** An event with its data as text. */
type Decoded = Omit<SseEvent, 'data'> & { data: string }

const bytes = (text: string) => new TextEncoder().encode(text)

/** Decodes a text split at the given bytes. */
function decode(text: string, cuts: readonly number[] = [], limit?: number): Decoded[] {
  const decoder = new SseDecoder(limit)
  const stream = bytes(text)
  const places = [...cuts.map((cut) => cut % (stream.length + 1)), 0, stream.length].sort((a, b) => a - b)
  const events: SseEvent[] = []
  for (let i = 1; i < places.length; i++) events.push(...decoder.push(stream.subarray(places[i - 1], places[i])))
  return events.map((event) => ({ ...event, data: forgivingText(event.data) }))
}

const json = fc.jsonValue().map((value) => JSON.stringify(value))

t.test('decodes what was encoded, however the stream is split', async () => {
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

t.test('line breaks between tokens become spaces, so that nothing ends an event early', async (t) => {
  t.equal(encodeEvent('{\r\n"a":\r1\n}'), 'event: message\ndata: { "a": 1 }\n\n')
  t.equal(encodeEvent('{}', { id: '7', retry: 1000 }), 'id: 7\nretry: 1000\nevent: message\ndata: {}\n\n')
})

const cases: [name: string, stream: string, events: Decoded[]][] = [
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

t.test('reads streams as the standard says', async (t) => {
  for (const [name, stream, events] of cases) {
    t.test(name, async (t) => {
      t.same(decode(stream), events)
      for (let cut = 0; cut <= bytes(stream).length; cut++) t.same(decode(stream, [cut]), events, `cut at ${cut}`)
      t.same(
        decode(
          stream,
          Array.from(bytes(stream), (_byte, at) => at),
        ),
        events,
        'cut everywhere',
      )
    })
  }
})

t.test('keeps the time of a reconnect if it is a number', async (t) => {
  const decoder = new SseDecoder()
  decoder.push(bytes('retry: 500\n\n'))
  t.equal(decoder.retry, 500)
  decoder.push(bytes('retry: soon\n\nretry: -1\n\n'))
  t.equal(decoder.retry, 500)
})

t.test('an event over its bound stops the decoder, whether the event ends or not', async (t) => {
  t.same(decode(`data: ${'x'.repeat(14)}\n\n`, [], 20), [{ event: 'message', data: 'x'.repeat(14) }])
  t.throws(() => decode(`data: ${'x'.repeat(15)}\n\n`, [], 20), { name: 'SseError' })
  t.throws(() => decode('x'.repeat(21), [3, 9], 20), { name: 'SseError' })
  t.throws(() => decode(`data: 1234567890\n`.repeat(3), [], 30), { name: 'SseError' })
  t.throws(() => decode(`data:\n`.repeat(30), [], 20), { name: 'SseError' })
})

t.test('an outlining decoder keeps only the outline of a large event, and continues', async (t) => {
  const big = `{"jsonrpc":"2.0","id":7,"result":"${'x'.repeat(1_000)}"}`
  const stream = new TextEncoder().encode(
    `data: small\n\nid: 7\ndata: ${big}\n\nevent: ${'e'.repeat(200)}\n\ndata: ${'y'.repeat(60)}\ndata: ${'z'.repeat(60)}\n\n: ${'c'.repeat(500)}\n\ndata: last\n\n`,
  )
  for (const size of [1, 7, 100, stream.length]) {
    const decoder = new SseDecoder(100, 'outlined')
    const events: SseEvent[] = []
    for (let at = 0; at < stream.length; at += size) {
      events.push(...decoder.push(stream.subarray(at, at + size)))
      t.ok(decoder.kept <= 100 + size)
    }
    const kept = events.filter(({ dropped }) => !dropped).map(({ data }) => Buffer.concat(data).toString())
    t.same(kept, ['small', 'last'], `in pieces of ${size}`)
    const [one, lines] = events.filter(({ dropped }) => dropped)
    t.match(one, { id: '7', tooLong: /event of more than 100 bytes/ })
    t.equal(one?.dropped?.length, big.length)
    t.match(Buffer.from(one?.dropped?.beginning ?? []).toString(), /^\{"jsonrpc":"2.0","id":7,/)
    t.equal(lines?.dropped?.length, 121)
  }
})

t.test('a truncating decoder leaves out the rest of a large event, reports its size, and continues', async (t) => {
  const stream = new TextEncoder().encode(
    `data: small\n\nid: 7\ndata: ${'x'.repeat(1_000)}\n\ndata: ${'y'.repeat(60)}\ndata: ${'z'.repeat(60)}\n\ndata: last\n\n`,
  )
  for (const size of [1, 7, 100, stream.length]) {
    const decoder = new SseDecoder(100, 'cut')
    const events: SseEvent[] = []
    for (let at = 0; at < stream.length; at += size) events.push(...decoder.push(stream.subarray(at, at + size)))
    t.equal(events.length, 4, `in pieces of ${size}`)
    const [small, large, lines, last] = events.map(({ data, missing }) => [Buffer.concat(data).toString(), missing])
    t.same(small, ['small', undefined])
    t.match(large?.[0], /^x{80,94}$/)
    t.equal((large?.[0] as string).length + (large?.[1] as number), 1_000)
    t.match(lines?.[0], /^y{60}\nz+$/)
    t.same(last, ['last', undefined])
  }
})

t.test('keeps the outline of the data of a skipped event, and reads the next event', async (t) => {
  const text = 'y'.repeat(3_000)
  const events: [name: string, event: string, data: string][] = [
    ['one line', `id: 7\ndata: ${text}\n\n`, text],
    ['several lines, and an id after them', `data: ${text}\ndata:${text}\r\nid: 7\n\n`, `${text}\n${text}`],
    ['a comment before it', `: ${'c'.repeat(300)}\nid: 7\ndata: ${text}\n\n`, text],
  ]
  for (const [name, event, data] of events) {
    const stream = bytes(`\ufeffdata: first\n\n${event}data: last\n\n`)
    for (let cut = 1; cut < stream.length; cut += 101) {
      const decoder = new SseDecoder()
      const read = decoder.push(stream.subarray(0, cut))
      decoder.skip()
      t.ok(decoder.kept < 16, name)
      read.push(...decoder.push(stream.subarray(cut)))
      const said = read.map((event) => [event.dropped?.length ?? forgivingText(event.data), event.id])
      t.same(said[2], ['last', undefined], `${name}, cut at ${cut}`)
      const [[whole, id] = []] = said.slice(1)
      t.equal(id, '7')
      t.ok(whole === data || whole === data.length, `${name}, cut at ${cut}: ${String(whole).slice(0, 20)}`)
      t.equal(decoder.pending, 0)
    }
  }
})

t.test('skipped data counts for the bound of an event', async (t) => {
  for (const line of ['data: 1234567890', ': 12345678901234']) {
    const decoder = new SseDecoder(30)
    decoder.push(bytes(line))
    decoder.skip()
    t.throws(() => decoder.push(bytes('123456789012345678901')), { name: 'SseError' })
  }
})
