/** Finding a JSON object at the end of a line that begins with other text. */
import fc from 'fast-check'
import t from 'tap'
import { objectAtEnd } from '../../src/base/rpc/message-at-end.js'

function found(text: string): string | undefined {
  const place = objectAtEnd(text)
  return place && text.slice(place.start, place.end)
}

t.test('finds an object after any text, and before white space and colours', async () => {
  const object = fc.dictionary(fc.string(), fc.jsonValue()).map((value) => JSON.stringify(value))
  const after = fc.constantFrom('', ' ', '\r', '\t ', '\u001b[0m', '\u001b[0m \u001b[39;49m\r')
  fc.assert(
    fc.property(
      fc.string({ unit: 'grapheme' }),
      object,
      after,
      (before, text, end) => found(`${before}${text}${end}`) === text,
    ),
    { numRuns: 3_000 },
  )
})

const CASES: readonly [name: string, text: string, expected: string | undefined][] = [
  ['a prompt', '> {"a":1}', '{"a":1}'],
  ['an object in a banner', 'config {"x":[1,{"y":"}"}]} loaded {"a":1}', '{"a":1}'],
  ['an object directly before it', '{"x":1}{"a":{"b":[]}}', '{"a":{"b":[]}}'],
  ['an open brace and an open quote before it', 'it"s {ready [ {"a":1}', '{"a":1}'],
  ['braces, quotes and backslashes in a string', '> {"a":"}{\\"\\\\"}', '{"a":"}{\\"\\\\"}'],
  ['colours', '\u001b[1m\u001b[32mReady\u001b[0m\u001b[33m{"a":1}\u001b[0m', '{"a":1}'],
  ['text after it', '{"a":1} done', undefined],
  ['an array', '> [{"a":1}]', undefined],
  ['a closing brace only', 'done }', undefined],
  ['no quote that opens the string', 'a":1}', undefined],
  ['nothing', '', undefined],
  ['white space and colours only', ' \u001b[0m \r', undefined],
]

t.test('finds only an object that ends the line', async (t) => {
  for (const [name, text, expected] of CASES) t.equal(found(text), expected, name)
})
