/** Texts are split between characters, and nothing of them is lost. */
import fc from 'fast-check'
import t from 'tap'
import { isLonger, partsOf } from '../../../src/middle/policy/cut/split.js'

/** Characters of one to four bytes, and halves of pairs. */
const texts = fc.string({ unit: fc.constantFrom('a', '"', 'é', '€', '\u{1f600}', '\ud83d', '\udc00'), maxLength: 300 })
const limits = fc.integer({ min: 4, max: 40 })

t.test('parts are the text again, none is too long, and only the last may have room', async () => {
  fc.assert(
    fc.property(texts, limits, (text, bytes) => {
      const parts = partsOf(text, bytes)
      const sizes = parts.map((part) => Buffer.byteLength(part))
      return (
        parts.join('') === text &&
        sizes.every((size) => size <= bytes) &&
        sizes.slice(0, -1).every((size) => size > bytes - 4)
      )
    }),
  )
})

t.test('no pair of surrogates is split', async () => {
  fc.assert(
    fc.property(texts, limits, (text, bytes) =>
      partsOf(text, bytes).every(
        (part, i, parts) => !(/[\ud800-\udbff]$/.test(part) && /^[\udc00-\udfff]/.test(parts[i + 1] ?? '')),
      ),
    ),
  )
})

t.test('a text is longer than a limit exactly if it has several parts', async () => {
  fc.assert(fc.property(texts, limits, (text, bytes) => isLonger(text, bytes) === partsOf(text, bytes).length > 1))
})
