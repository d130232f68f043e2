import fc from 'fast-check'
import t from 'tap'
import { canonical } from '../../src/base/rpc/canonical.js'

const gap = fc.constantFrom('', ' ', '\n', '\t\r\n  ')
/** A character in one of its spellings in JSON: literal or escaped. */
const spell = (character: string, escaped: boolean) =>
  escaped || character < ' ' || character === '"' || character === '\\'
    ? `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
    : character

/** A value in one of its spellings in JSON. */
function written(value: unknown, choose: (of: number) => number): string {
  const space = () => ['', ' ', '\n', '\t '][choose(4)] as string
  const text = (string: string) =>
    `"${[...Array(string.length).keys()].map((at) => spell(string.charAt(at), choose(2) === 1)).join('')}"`
  const write = (one: unknown): string => {
    if (typeof one === 'string') return text(one)
    if (Array.isArray(one)) return `[${space()}${one.map((item) => write(item) + space()).join(`,${space()}`)}]`
    if (typeof one !== 'object' || one === null) return JSON.stringify(one)
    const members = Object.entries(one).map(
      ([key, member]) => `${text(key)}${space()}:${space()}${write(member)}${space()}`,
    )
    return `{${space()}${shuffled(members, choose).join(`,${space()}`)}}`
  }
  return `${space()}${write(value)}${space()}`
}

function shuffled<Item>(items: Item[], choose: (of: number) => number): Item[] {
  return items
    .map((item) => ({ item, at: choose(1_000) }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item)
}

t.test('all spellings of a value give one text, which means the same', async () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 4 }), fc.infiniteStream(fc.nat()), (value, numbers) => {
      const choose = (of: number) => (numbers.next().value as number) % of
      const [one, other] = [written(value, choose), written(value, choose)]
      const text = canonical(one)
      const means = JSON.stringify(sorted(JSON.parse(text))) === JSON.stringify(sorted(value))
      return text === canonical(other) && text === canonical(text) && means
    }),
    { numRuns: 500 },
  )
})

t.test('different values give different texts', async () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 3 }), fc.jsonValue({ maxDepth: 3 }), gap, (one, other, space) => {
      const same = JSON.stringify(sorted(one)) === JSON.stringify(sorted(other))
      return (canonical(space + JSON.stringify(one)) === canonical(JSON.stringify(other))) === same
    }),
    { numRuns: 500 },
  )
})

t.test('numbers that JSON.parse would round stay different', async (t) => {
  const pairs: [string, string][] = [
    ['9007199254740992', '9007199254740993'],
    ['1', '1.0'],
    ['1e400', '1e401'],
    ['0', '-0'],
    ['[1,2]', '[2,1]'],
    ['{"a":1,"a":2}', '{"a":2}'],
    ['{"a":1,"a":2}', '{"a":2,"a":1}'],
    ['"1"', '1'],
    ['"\\ud800"', '"\\ud801"'],
  ]
  for (const [one, other] of pairs) t.not(canonical(one), canonical(other), `${one} and ${other}`)
})

t.test('the text is short: sorted, without space, strings unescaped', async (t) => {
  const rows: [string, string][] = [
    [' { "b" : [ 1 , 2.50 ] ,\n"a":{ } } ', '{"a":{},"b":[1,2.50]}'],
    ['"\\u00e9\\/\\n\\u2028"', '"é/\\n\u2028"'],
    ['{"\\u0062":1,"a":"\\ud83d\\ude00"}', '{"a":"😀","b":1}'],
    ['{"__proto__":1,"constructor":2}', '{"__proto__":1,"constructor":2}'],
    ['{"10":1,"9":2}', '{"10":1,"9":2}'],
    ['"\\ud800"', '"\\ud800"'],
    ['null', 'null'],
  ]
  for (const [text, expected] of rows) t.equal(canonical(text), expected)
})

/** Equal for values that differ only in the order of their members. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return { members: members.map(([key, member]) => [key, sorted(member)]) }
}
