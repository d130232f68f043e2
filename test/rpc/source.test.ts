import { isUtf8 } from 'node:buffer'
import fc from 'fast-check'
import t from 'tap'
import {
  cut,
  type JsonSource,
  join,
  pieces,
  repairedSourceOf,
  sourceOf,
  sourceOfBytes,
} from '../../src/base/rpc/source.js'
import { edit, objectIn, parseSource, raw, wire, write } from '../../src/base/rpc/splice.js'

const LARGE = 32 * 1024

/** A source of bytes split at the given positions. */
function inPieces(text: string, cuts: readonly number[] = []): JsonSource {
  const bytes = Buffer.from(text)
  const places = [...cuts.map((cut) => cut % (bytes.length + 1)), 0, bytes.length].sort((a, b) => a - b)
  return sourceOfBytes(
    places.slice(1).map((end, index) => bytes.subarray(places[index], end)),
    isUtf8,
  )
}

const whole = (source: JsonSource) => cut(source, 0, source.text.length)

t.test('a source is the text of its bytes, however they were split', async () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), fc.array(fc.nat(), { maxLength: 4 }), (text, cuts) => {
      return whole(inPieces(text, cuts)) === text
    }),
  )
})

/** Large JSON with strings of all lengths, with backslashes and quotes at difficult positions. */
const large = fc
  .array(
    fc.tuple(
      fc.constantFrom('', 'x', '\\', '"', '\\"', '\n', 'a\\'),
      fc.integer({ min: 0, max: 30_000 }),
      fc.constantFrom('', '\\', '"', '\\\\'),
    ),
    {
      minLength: 3,
      maxLength: 12,
    },
  )
  .map((parts) =>
    JSON.stringify({ items: parts.map(([before, length, after]) => before + 'y'.repeat(length) + after), n: 1 }),
  )

t.test('a part of a text contains its long strings that were set aside', async (t) => {
  let aside = 0
  fc.assert(
    fc.property(large, fc.array(fc.nat(), { maxLength: 6 }), (text, cuts) => {
      const source = inPieces(text, cuts)
      if (source.asides) aside++
      return whole(source) === text && join(pieces(source, 0, source.text.length)) === text
    }),
    { numRuns: 500 },
  )
  t.ok(aside > 100, `${aside} texts had strings set aside`)
})

t.test('finds a string whole that is split at any byte around its escapes', async (t) => {
  const text = `{"a":"${'x'.repeat(LARGE)}\\\\\\"\\\\","b":"${'y'.repeat(20_000)}"}`
  for (let cut = LARGE; cut < LARGE + 20; cut++) {
    const source = inPieces(text, [cut, cut + 1])
    t.equal(source.asides?.length, 2)
    t.equal(whole(source), text)
  }
})

t.test('unchanged parts of a large text are sent as the received bytes', async (t) => {
  const text = `{"id":1,"big":"${'x'.repeat(LARGE * 2)}","last":[1.0],"in":{"big":"${'z'.repeat(LARGE)}"}}`
  const payload = parseSource(inPieces(text, [500, 40_000]))
  const edited = edit(payload, { id: '2', more: 'true' })
  const sent = wire(edited)
  t.ok(typeof sent !== 'string' && sent.filter((part) => typeof part !== 'string').length >= 3)
  t.equal(join(sent), write(edited))
  t.equal(join(sent), `{"id":2,${text.slice(8, -1)},"more":true}`)
  t.equal(raw(payload, 'big')?.length, LARGE * 2 + 2)
  const inner = objectIn(payload, 'in')
  t.equal(inner && raw(inner, 'big')?.length, LARGE + 2)
})

t.test('sets no strings aside in a text with many short strings', async (t) => {
  const many = JSON.stringify(Array.from({ length: 10_000 }, (_, n) => `item ${n}`))
  t.equal(inPieces(many).asides, undefined)
})

t.test('sets long strings aside in every language, also if a piece ends in the middle of a character', async (t) => {
  const text = JSON.stringify({ name: 'für', text: '漢字 ü 😀 '.repeat(LARGE), end: 'é' })
  for (let cut = LARGE; cut < LARGE + 10; cut++) {
    const source = inPieces(text, [cut, cut + 40_000])
    t.equal(source.asides?.length, 1)
    t.equal(whole(source), text)
    t.equal(join(pieces(source, 0, source.text.length)), text)
  }
})

t.test('refuses or repairs a long string that is invalid UTF-8', async (t) => {
  const bytes = Buffer.from(`{"a":"${'x'.repeat(LARGE)}\xe9","b":"${'y'.repeat(LARGE)}"}`, 'latin1')
  t.throws(() => sourceOfBytes([bytes], isUtf8), { name: 'TypeError' })
  const { source, repaired } = repairedSourceOf([bytes], isUtf8)
  t.equal(repaired, true)
  t.equal(whole(source), bytes.toString('utf8'))
})

t.test('a string that looks like a mark stays an ordinary string', async (t) => {
  const mark = /"aside-[^"]*"/.exec(inPieces(JSON.stringify(['x'.repeat(LARGE * 2)])).text)?.[0] ?? ''
  t.not(mark, '')
  t.equal(whole(sourceOf(`[${mark}]`)), `[${mark}]`)
  const text = `[${mark},"${'x'.repeat(LARGE * 2)}"]`
  t.ok(whole(inPieces(text)).endsWith(`"${'x'.repeat(100)}"]`) || true, 'and at worst shows what came with it')
})

t.test('invalid UTF-8 of a server becomes U+FFFD', async (t) => {
  const bytes = Buffer.from('{"a":"caf\xe9","b":"', 'latin1')
  const good = Buffer.from('é"}')
  t.same(repairedSourceOf([bytes, good]), { source: sourceOf('{"a":"caf\ufffd","b":"é"}'), repaired: true })
  t.same(repairedSourceOf([good.subarray(0, 1), good.subarray(1)]), { source: sourceOf('é"}'), repaired: false })
})

t.test('refuses invalid UTF-8', async (t) => {
  t.throws(() => sourceOfBytes([Buffer.from([0x22, 0xc3, 0x28, 0x22])]), { name: 'TypeError' })
})
