import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import t from 'tap'
import { BLOCK, type Finder, fastFinder, plainFinder, Quotes } from '../../src/base/rpc/quotes.js'

/** The positions that a Finder returns for a text in blocks of these lengths. */
function found(finder: Finder, bytes: Uint8Array, lengths: readonly number[]): number[] {
  const quotes = new Quotes(finder)
  const positions: number[] = []
  let at = 0
  for (const length of [...lengths, ...Array<number>(bytes.length).fill(BLOCK)]) {
    if (at === bytes.length) return positions
    const block = bytes.subarray(at, at + length)
    for (const quote of quotes.next(block)) positions.push(at + quote)
    at += block.length
  }
  return positions
}

/** The expected positions, computed one character at a time. */
function expected(bytes: Uint8Array): number[] {
  const positions: number[] = []
  for (let at = 0; at < bytes.length; at++) {
    if (bytes[at] === 0x5c) at++
    else if (bytes[at] === 0x22) positions.push(at)
  }
  return positions
}

const text = fc
  .array(
    fc.tuple(
      fc.constantFrom('"', '\\', '\\\\', '\\"', 'a', 'é', '{'),
      fc.oneof(fc.constant(1), fc.integer({ min: 0, max: 130 }), fc.constantFrom(63, 64, 65, BLOCK)),
    ),
    { maxLength: 12 },
  )
  .map((parts) => Buffer.from(parts.map(([part, times]) => part.repeat(times)).join('')))

const finders = { fast: fastFinder(), plain: plainFinder() }

for (const [name, finder] of Object.entries(finders)) {
  t.test(`the ${name} finder finds each unescaped quote, however the text is split`, async (t) => {
    if (!finder) return t.fail('this machine cannot run it')
    fc.assert(
      fc.property(text, fc.array(fc.integer({ min: 1, max: 200 }), { maxLength: 20 }), (bytes, lengths) => {
        t.ok(isDeepStrictEqual(found(finder, bytes, lengths), expected(bytes)))
      }),
      { numRuns: 1_000 },
    )
  })

  t.test(`the ${name} finder accepts a block of nothing but quotes`, async (t) => {
    if (!finder) return t.fail('this machine cannot run it')
    const quotes = Buffer.alloc(BLOCK, '"')
    t.same(found(finder, quotes, []), expected(quotes))
  })
}
