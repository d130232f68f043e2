import fc from 'fast-check'
import t from 'tap'
import { encodeLine, type Line, LineDecoder, TOO_LONG } from '../../src/rpc/lines.js'
import { join } from '../../src/rpc/source.js'

const bytes = (text: string) => Buffer.from(text, 'utf8')

/** Decodes bytes cut at the given places. */
function decode(data: Uint8Array, cuts: readonly number[], limit = 1_000_000): string[] {
  const decoder = new LineDecoder(limit)
  const places = [...cuts.map((cut) => cut % (data.length + 1)), 0, data.length].sort((a, b) => a - b)
  const lines: Line[] = []
  for (let i = 1; i < places.length; i++) lines.push(...decoder.push(data.subarray(places[i - 1], places[i])))
  lines.push(...decoder.end())
  return lines.map((line) => (line === TOO_LONG ? 'too long' : Buffer.concat(line).toString('utf8')))
}

t.test('lines are the same however the bytes are cut', async () => {
  const text = fc.array(
    fc.string({ unit: 'grapheme', maxLength: 10 }).map((line) => line.replace(/[\r\n]/g, '')),
    { maxLength: 8 },
  )
  fc.assert(
    fc.property(text, fc.array(fc.nat(), { maxLength: 6 }), fc.constantFrom('\n', '\r\n'), (lines, cuts, end) => {
      const data = bytes(lines.map((line) => line + end).join(''))
      return JSON.stringify(decode(data, cuts)) === JSON.stringify(lines.filter((line) => line !== ''))
    }),
    { numRuns: 3_000 },
  )
})

t.test('a message cut at every byte comes out whole', async (t) => {
  const data = bytes('{"text":"é\u{1f600}\u2028"}\n{"b":1}\r\n')
  for (let cut = 0; cut <= data.length; cut++) t.same(decode(data, [cut]), ['{"text":"é\u{1f600}\u2028"}', '{"b":1}'])
  t.same(decode(data, Array.from(data.keys())), ['{"text":"é\u{1f600}\u2028"}', '{"b":1}'])
})

t.test('only byte 0x0A ends a line', async (t) => {
  for (const character of ['\u2028', '\u2029', '\u0085', '\v', '\f'])
    t.same(decode(bytes(`a${character}b\n`), []), [`a${character}b`])
})

t.test('a line that is no UTF-8 comes as it is, and its neighbours are not harmed', async (t) => {
  const data = Buffer.concat([bytes('one\n'), Buffer.from([0xc3, 0x28, 0x0a]), bytes('two\nthree')])
  for (let cut = 0; cut <= data.length; cut++)
    t.same(decode(data, [cut]), ['one', Buffer.from([0xc3, 0x28]).toString('utf8'), 'two', 'three'])
})

t.test('a line over the limit is reported, nothing of it is kept, and the next one is read', async (t) => {
  const data = bytes(`ok\n${'x'.repeat(50)}\nfine\n`)
  for (let cut = 0; cut <= data.length; cut++)
    t.same(decode(data, [cut, cut + 7, cut + 30], 20), ['ok', 'too long', 'fine'])
  t.same(decode(bytes(`${'x'.repeat(20)}\n`), [], 20), ['x'.repeat(20)])
  t.same(decode(bytes(`${'x'.repeat(21)}\n`), [], 20), ['too long'])
  t.same(decode(bytes('x'.repeat(21)), [10], 20), ['too long'])
})

t.test('what waits for its end is counted', async (t) => {
  const decoder = new LineDecoder(100)
  decoder.push(bytes('abc\nde'))
  t.equal(decoder.pending, 2)
  decoder.push(bytes('f\n'))
  t.equal(decoder.pending, 0)
})

t.test('a message becomes exactly one line', async (t) => {
  t.equal(encodeLine('{"a":1}'), '{"a":1}\n')
  t.equal(encodeLine('{\n  "a": "\\n",\r\n  "b": 1\r}'), '{   "a": "\\n",   "b": 1 }\n')
  const inPieces = encodeLine(['{"a":\r\n', Buffer.from('[1,\n2]'), '}'])
  t.equal(join(inPieces), '{"a": [1, 2]}\n')
})
