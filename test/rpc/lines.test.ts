import fc from 'fast-check'
import t from 'tap'
import { encodeLine, type Line, LineDecoder } from '../../src/base/rpc/lines.js'
import { Outline } from '../../src/base/rpc/outline.js'
import { join } from '../../src/base/rpc/source.js'

const bytes = (text: string) => Buffer.from(text, 'utf8')

/** Decodes bytes split at the given positions. */
function decode(data: Uint8Array, cuts: readonly number[], limit = 1_000_000): string[] {
  const decoder = new LineDecoder(limit)
  const places = [...cuts.map((cut) => cut % (data.length + 1)), 0, data.length].sort((a, b) => a - b)
  const lines: Line[] = []
  for (let i = 1; i < places.length; i++) lines.push(...decoder.push(data.subarray(places[i - 1], places[i])))
  lines.push(...decoder.end())
  return lines.map((line) => (line instanceof Outline ? 'too long' : Buffer.concat(line).toString('utf8')))
}

t.test('lines are the same however the bytes are split', async () => {
  const text = fc.array(
    fc.string({ unit: 'grapheme', maxLength: 10 }).map((line) => line.replace(/[\r\n]/g, '')),
    { maxLength: 8 },
  )
  fc.assert(
    fc.property(text, fc.array(fc.nat(), { maxLength: 6 }), fc.constantFrom('\n', '\r\n'), (lines, cuts, end) => {
      const data = bytes(lines.map((line) => line + end).join(''))
      const begun = lines.map((line) => line.replace(/^[ \t]+/, '')).filter((line) => line !== '')
      return JSON.stringify(decode(data, cuts)) === JSON.stringify(begun)
    }),
    { numRuns: 3_000 },
  )
})

t.test('a message split at every byte comes out whole', async (t) => {
  const data = bytes('{"text":"é\u{1f600}\u2028"}\n{"b":1}\r\n')
  for (let cut = 0; cut <= data.length; cut++) t.same(decode(data, [cut]), ['{"text":"é\u{1f600}\u2028"}', '{"b":1}'])
  t.same(decode(data, Array.from(data.keys())), ['{"text":"é\u{1f600}\u2028"}', '{"b":1}'])
})

t.test('only byte 0x0A ends a line', async (t) => {
  for (const character of ['\u2028', '\u2029', '\u0085', '\v', '\f'])
    t.same(decode(bytes(`a${character}b\n`), []), [`a${character}b`])
})

t.test('returns a line of invalid UTF-8 as it is, and harms no other line', async (t) => {
  const data = Buffer.concat([bytes('one\n'), Buffer.from([0xc3, 0x28, 0x0a]), bytes('two\nthree')])
  for (let cut = 0; cut <= data.length; cut++)
    t.same(decode(data, [cut]), ['one', Buffer.from([0xc3, 0x28]).toString('utf8'), 'two', 'three'])
})

t.test('reports a line over the limit, keeps nothing of it, and reads the next one', async (t) => {
  const data = bytes(`ok\n${'x'.repeat(50)}\nfine\n`)
  for (let cut = 0; cut <= data.length; cut++)
    t.same(decode(data, [cut, cut + 7, cut + 30], 20), ['ok', 'too long', 'fine'])
  t.same(decode(bytes(`${'x'.repeat(20)}\n`), [], 20), ['x'.repeat(20)])
  t.same(decode(bytes(`${'x'.repeat(21)}\n`), [], 20), ['too long'])
  t.same(decode(bytes('x'.repeat(21)), [10], 20), ['too long'])
})

t.test('counts the bytes of an unfinished line', async (t) => {
  const decoder = new LineDecoder(100)
  decoder.push(bytes('abc\nde'))
  t.equal(decoder.pending, 2)
  decoder.push(bytes('f\n'))
  t.equal(decoder.pending, 0)
})

t.test('ignores white space before and between lines', async (t) => {
  const spaces = [' ', '\t', '  \t ', '\n\n', '\r\n', '\r\n\r\n \r\n\t\n', ' \n']
  for (const space of spaces) {
    const data = bytes(`{"a":1}\n${space}{"b":2} \n${space}`)
    for (let cut = 0; cut <= data.length; cut++)
      t.same(decode(data, [cut, cut + 1]), ['{"a":1}', '{"b":2} '], JSON.stringify(space))
    const decoder = new LineDecoder(3)
    decoder.push(bytes(space.repeat(10)))
    t.equal(decoder.pending, 0, JSON.stringify(space))
  }
})

t.test('shows the beginning of an unfinished line, however it arrived', async (t) => {
  const text = `{"id":1,"x":"${'y'.repeat(200_000)}`
  for (const size of [1, 7, 4_096, 65_536, 300_000]) {
    const decoder = new LineDecoder(1_000_000)
    for (let at = 0; at < text.length; at += size) decoder.push(bytes(text.slice(at, at + size)))
    for (const most of [0, 1, 20, 5_000, 70_000, 300_000])
      t.equal(Buffer.from(decoder.beginning(most)).toString(), text.slice(0, most), `${size} ${most}`)
    t.same(decode(bytes(`${text}\n`), []), [text])
  }
})

t.test('keeps the outline of a skipped line, and reads the next line', async (t) => {
  const line = `{"id":1,"x":"${'y'.repeat(20_000)}"}`
  const data = bytes(`first\n${line}\nlast\n`)
  for (const cut of [7, 10, 4_102, 10_000, data.length - 7, data.length - 6]) {
    const decoder = new LineDecoder(1_000_000)
    const lines = decoder.push(data.subarray(0, cut))
    decoder.skip()
    t.equal(decoder.kept, 0)
    t.ok(decoder.pending > 0)
    lines.push(...decoder.push(data.subarray(cut)))
    const [first, outline, last, ...more] = lines as [Uint8Array[], Outline, Uint8Array[]]
    t.equal(join(first), 'first')
    t.equal(outline.length, line.length)
    t.equal(Buffer.from(outline.beginning).toString(), line.slice(0, 4_096))
    t.equal(join(last), 'last')
    t.same(more, [])
    t.equal(decoder.pending, 0)
  }
})

t.test('a message becomes exactly one line', async (t) => {
  t.equal(encodeLine('{"a":1}'), '{"a":1}\n')
  t.equal(encodeLine('{\n  "a": "\\n",\r\n  "b": 1\r}'), '{   "a": "\\n",   "b": 1 }\n')
  const inPieces = encodeLine(['{"a":\r\n', Buffer.from('[1,\n2]'), '}'])
  t.equal(join(inPieces), '{"a": [1, 2]}\n')
})
