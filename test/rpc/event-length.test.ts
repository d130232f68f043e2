/** Measuring events of a passing stream: the result does not depend on how the stream is split. */
import fc from 'fast-check'
import t from 'tap'
import { EventLength, hasLineEnd } from '../../src/rpc/event-length.js'

/** The number of bytes of a stream, in these pieces, before an event exceeds the limit. */
function before(pieces: readonly Uint8Array[], limit: number): number | undefined {
  const length = new EventLength(limit)
  let passed = 0
  for (const piece of pieces) {
    const within = length.push(piece, hasLineEnd(piece))
    if (within !== undefined) return passed + within
    passed += piece.length
  }
  return undefined
}

const cases: [name: string, stream: string, before: number | undefined][] = [
  ['an event of the limit', '123456789\n\n123456789\n\n', undefined],
  ['an event that has one byte more', '1234567890\n\n', 10],
  ['the second of two', '12345\n\n1234567890\n', 17],
  ['several lines of one event', '1234\n5678\n90\n\n', 10],
  ['lines that end with a carriage return', '1234\r\r12345678\r\r1234567890\r', 26],
  ['lines that end with both', '12345678\r\n\r\n123456789\r\n\r\n1234567890\r\n', 35],
  ['blank lines', '\n\n\r\r\r\n\r\n\n', undefined],
]

for (const [name, stream, expected] of cases)
  t.test(`measures ${name}`, async (t) => {
    const bytes = Buffer.from(stream)
    t.equal(before([bytes], 10), expected)
    fc.assert(
      fc.property(fc.array(fc.nat(bytes.length), { maxLength: 5 }), (cuts) => {
        const places = [0, ...cuts.toSorted((a, b) => a - b), bytes.length]
        const pieces = places.slice(1).map((end, at) => bytes.subarray(places[at], end))
        return before(pieces, 10) === expected
      }),
    )
  })
