/** Finding ids in a passing stream of events: the result does not depend on how the stream is split. */
import fc from 'fast-check'
import t from 'tap'
import { EventIds } from '../../src/rpc/event-ids.js'
import { hasLineEnd } from '../../src/rpc/event-length.js'

const encoder = new TextEncoder()

/** Whether ids are found in a stream that arrives in these pieces. */
function found(pieces: readonly Uint8Array[]): boolean {
  const ids = new EventIds()
  for (const piece of pieces) ids.push(piece, hasLineEnd(piece))
  return ids.found
}

function cutAt(bytes: Uint8Array, cuts: readonly number[]): Uint8Array[] {
  const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].sort((a, b) => a - b)
  return places.slice(1).map((end, at) => bytes.subarray(places[at], end))
}

const MARK = '\ufeff'
const cases: [name: string, stream: string, has: boolean][] = [
  ['an event with none', 'event: message\ndata: {}\n\n', false],
  ['an id', 'id: 5\ndata: 1\n\n', true],
  ['an id after the data', 'data: 1\nretry:5\nid:x\n\n', true],
  ['an id that is empty', 'data: 1\n\nid:\n\n', true],
  ['names that only begin like it', 'identity: 1\nids: 1\nid\n\n', false],
  ['the name in other case', 'ID: 1\n\n', false],
  ['a name that space comes before', ' id: 1\n\n', false],
  ['the name inside of data', 'data: id: 1\ndata: \ndata:id: 1\n\n', false],
  ['a comment', ': id: 1\n\n', false],
  ['carriage returns before line feeds', 'data: 1\r\nid: 5\r\n\r\n', true],
  ['carriage returns alone', 'data: 1\rid: 5\r\r', true],
  ['a line separator of Unicode', 'data: é\u2028id: 1\n\n', false],
  ['a byte order mark before it', `${MARK}id: 1\ndata: a\n\n`, true],
  ['a byte order mark before other lines', `${MARK}data: a\nid: 1\n\n`, true],
]

t.test('finds only lines with an id, however the stream is split', async (t) => {
  for (const [name, stream, has] of cases) {
    const bytes = encoder.encode(stream)
    for (let cut = 0; cut <= bytes.length; cut++)
      t.equal(found(cutAt(bytes, [cut, cut + 1])), has, `${name}, cut at ${cut}`)
    t.equal(found(Array.from(bytes, (_, at) => bytes.subarray(at, at + 1))), has, `${name}, byte by byte`)
  }
})

const line = fc.oneof(
  fc.constantFrom('id: 5', 'id:', 'i', 'id', 'idea: 1', 'data: 1', ': c', '', 'data: id: 1', 'data: é', '\u2028id: 1'),
  fc.string({ maxLength: 6 }).map((text) => text.replace(/[\r\n]/g, '')),
)
const stream = fc
  .array(fc.tuple(line, fc.constantFrom('\n', '\r\n', '\r')), { maxLength: 12 })
  .map((lines) => lines.map((parts) => parts.join('')).join(''))

t.test('finds the same in every split of every stream', async () => {
  fc.assert(
    fc.property(stream, fc.array(fc.nat(), { maxLength: 8 }), (text, cuts) => {
      const has = text.split(/[\r\n]/).some((one) => one.startsWith('id:'))
      return found(cutAt(encoder.encode(text), cuts)) === has
    }),
    { numRuns: 5_000 },
  )
})
