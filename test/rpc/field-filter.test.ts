/** Removing fields from a passing stream of events: the result does not depend on how the stream is split. */
import fc from 'fast-check'
import t from 'tap'
import { hasLineEnd } from '../../src/rpc/event-length.js'
import { FieldFilter } from '../../src/rpc/field-filter.js'
import { forgivingText } from '../../src/rpc/source.js'
import { SseDecoder } from '../../src/rpc/sse.js'

const FIELDS = ['id', 'retry']
const encoder = new TextEncoder()

/** What the filter passes of a stream that arrives in these pieces. */
function passing(pieces: readonly Uint8Array[], fields = FIELDS): string {
  const filter = new FieldFilter(fields)
  return Buffer.concat(pieces.flatMap((piece) => filter.push(piece, hasLineEnd(piece)))).toString()
}

const whole = (text: string) => passing([encoder.encode(text)])

function cutAt(bytes: Uint8Array, cuts: readonly number[]): Uint8Array[] {
  const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].sort((a, b) => a - b)
  return places.slice(1).map((end, at) => bytes.subarray(places[at], end))
}

const cases: [name: string, stream: string, passes: string][] = [
  ['an event with neither', 'event: message\ndata: {}\n\n', 'event: message\ndata: {}\n\n'],
  ['an id', 'id: 5\ndata: 1\n\n', 'data: 1\n\n'],
  ['a time to wait', 'retry: 500\n\n', '\n'],
  ['both, in any order', 'data: 1\nretry:5\nid:x\n\n', 'data: 1\n\n'],
  ['an id that is empty', 'id:\nid: \n\n', '\n'],
  [
    'names that only begin like them',
    'identity: 1\nretry-after: 1\nids: 1\n\n',
    'identity: 1\nretry-after: 1\nids: 1\n\n',
  ],
  ['names in other case', 'ID: 1\nRetry: 1\n\n', 'ID: 1\nRetry: 1\n\n'],
  ['a name that space comes before', ' id: 1\n\n', ' id: 1\n\n'],
  ['the name inside of data', 'data: id: 1\ndata: \ndata:retry: 1\n\n', 'data: id: 1\ndata: \ndata:retry: 1\n\n'],
  ['a comment', ': id: 1\n\n', ': id: 1\n\n'],
  ['carriage returns before line feeds', 'id: 5\r\ndata: 1\r\n\r\n', 'data: 1\r\n\r\n'],
  ['carriage returns alone', 'id: 5\rdata: 1\r\rretry: 1\r\r', 'data: 1\r\r\r'],
  ['a mixture', 'a\rid: 5\r\nid: 6\n\rid: 7\rdata: 1\n\n', 'a\r\rdata: 1\n\n'],
  ['a line that is not a field, and no more', 'data: é\u2028id: 1\n\n', 'data: é\u2028id: 1\n\n'],
]

t.test('removes only lines of the named fields', async (t) => {
  for (const [name, stream, passes] of cases) {
    t.equal(whole(stream), passes, name)
    const bytes = encoder.encode(stream)
    for (let cut = 0; cut <= bytes.length; cut++)
      t.equal(passing(cutAt(bytes, [cut])), passes, `${name}, cut at ${cut}`)
    t.equal(passing(Array.from(bytes, (_, at) => bytes.subarray(at, at + 1))), passes, `${name}, byte by byte`)
  }
})

const line = fc.oneof(
  fc.constantFrom(
    'id: 5',
    'id:',
    'retry: 10',
    'retry:x',
    'i',
    'id',
    'retr',
    'retry',
    'idea: 1',
    'data: 1',
    ': c',
    '',
    'data: id: 1',
  ),
  fc.string({ maxLength: 6 }).map((text) => text.replace(/[\r\n]/g, '')),
  fc.constantFrom('data: é', 'data: 日本', '\u2028id: 1'),
)
const streamWith = (...ends: string[]) =>
  fc
    .array(fc.tuple(line, fc.constantFrom(...ends)), { maxLength: 12 })
    .map((lines) => lines.map((parts) => parts.join('')).join(''))
const mixed = streamWith('\n', '\r\n', '\r')
/** Streams as servers write them: none mixes lone carriage returns with lone line feeds as line ends. */
const stream = fc.oneof(streamWith('\n', '\r\n'), streamWith('\r'))

/** The expected result, computed from the whole text: its lines that do not begin with one of the fields. */
function expected(text: string): string {
  const lines = text.match(/[^\r\n]*(?:\r\n|\r|\n)/g) ?? []
  return lines.filter((one) => !/^(?:id|retry):/.test(one)).join('')
}

t.test('passes the same from every split of every stream', async () => {
  fc.assert(
    fc.property(mixed, fc.array(fc.nat(), { maxLength: 8 }), (text, cuts) => {
      const bytes = encoder.encode(text)
      return passing(cutAt(bytes, cuts)) === expected(text)
    }),
    { numRuns: 5_000 },
  )
})

t.test('a reader of the filtered stream reads the same messages, and none of the fields', async () => {
  fc.assert(
    fc.property(stream, fc.array(fc.nat(), { maxLength: 4 }), (text, cuts) => {
      const decoder = new SseDecoder()
      const events = decoder.push(encoder.encode(passing(cutAt(encoder.encode(text), cuts))))
      const all = new SseDecoder().push(encoder.encode(text)).filter(({ data }) => data.length > 0)
      const said = (list: typeof events) =>
        JSON.stringify(
          list.filter(({ data }) => data.length > 0).map(({ event, data }) => [event, forgivingText(data)]),
        )
      return decoder.retry === undefined && said(events) === said(all)
    }),
    { numRuns: 2_000 },
  )
})

t.test('R4: passes a byte order mark, which hides no field behind it', async (t) => {
  const MARK = '\ufeff'
  for (const [text, rest] of [
    [`${MARK}id: 1\ndata: a\n\n`, `${MARK}data: a\n\n`],
    [`${MARK}data: a\nid: 1\n\n`, `${MARK}data: a\n\n`],
    [`data: a\n${MARK}id: 1\n\n`, `data: a\n${MARK}id: 1\n\n`],
  ] as const) {
    const bytes = encoder.encode(text)
    for (let cut = 0; cut <= bytes.length; cut++) t.equal(passing(cutAt(bytes, [cut, cut + 1])), rest)
  }
})

t.test('passes other lines at once', async (t) => {
  const filter = new FieldFilter(FIELDS)
  const push = (text: string) => {
    const bytes = encoder.encode(text)
    return Buffer.concat(filter.push(bytes, hasLineEnd(bytes))).toString()
  }
  t.equal(push('data: half of a'), 'data: half of a')
  t.equal(push(' line'), ' line')
  t.equal(push('\nre'), '\n', 'it could become one')
  t.equal(push('t'), '')
  t.equal(push('ro: 1'), 'retro: 1')
  t.equal(push('\n\n'), '\n\n')
  t.equal(push('id: a long id that comes'), '')
  t.equal(push(' in pieces'), '')
  t.equal(push('\ndata: 1'), 'data: 1')
})
