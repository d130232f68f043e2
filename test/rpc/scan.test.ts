import fc from 'fast-check'
import t from 'tap'
import { JsonError, MAX_ELEMENTS, scan, scanAt } from '../../src/base/rpc/scan.js'
import { type JsonSource, sourceOf } from '../../src/base/rpc/source.js'
import { elementsAt, find, membersAt, ROW, type Table } from '../../src/base/rpc/table.js'

/** JSON texts in spellings that serializers do not write: white space, escapes, all forms of numbers. */
const space = fc.constantFrom('', ' ', '\n', '\t ', '\r\n')
const number = fc.constantFrom(
  '0',
  '-0',
  '1.0',
  '1e400',
  '9007199254740993',
  '-12.5E-3',
  '0.1e+2',
  '12345678901234567890',
)
const string = fc.oneof(
  fc.string({ unit: 'binary' }).map((text) => JSON.stringify(text)),
  fc.constantFrom(
    '"\\u00e9"',
    '"\\ud800"',
    '"\\/\\b"',
    '"__proto__"',
    '"\u2028"',
    `"${'x'.repeat(200)}"`,
    `"${'\\"'.repeat(90)}"`,
  ),
)
const { value: anyJson } = fc.letrec<{ value: string; object: string; array: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    number,
    string,
    fc.constantFrom('true', 'false', 'null'),
    tie('object'),
    tie('array'),
  ),
  array: fc
    .tuple(space, fc.array(fc.tuple(tie('value'), space), { maxLength: 5 }))
    .map(([gap, items]) => `[${gap}${items.map(([item, after]) => item + after).join(',')}]`),
  object: fc
    .tuple(space, fc.array(fc.tuple(string, space, tie('value'), space), { maxLength: 5 }))
    .map(([gap, members]) => `{${gap}${members.map(([key, a, value, b]) => `${key}${a}:${a}${value}${b}`).join(',')}}`),
}))

const keysAt = (source: JsonSource, table: Table, row = 0) => membersAt(source, table, row).map(({ key }) => key)

function accepts(text: string, strict: boolean): boolean {
  try {
    scan(sourceOf(text), { strict })
    return true
  } catch (error) {
    if (error instanceof JsonError) return false
    throw error
  }
}

function parses(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

t.test('accepts a text exactly if JSON.parse does', async (t) => {
  t.test('accepts JSON in every spelling', async () => {
    fc.assert(
      fc.property(anyJson, space, space, (json, before, after) => accepts(before + json + after, true)),
      { numRuns: 2_000 },
    )
  })
  t.test('for JSON with random changes', async () => {
    const meddled = fc
      .tuple(
        anyJson,
        fc.nat(),
        fc.constantFrom('', ',', '"', '}', ']', '{', '0', '\\', ' ', ':', '-', 'e', '.', 'x', '\n', '\u0001'),
      )
      .map(
        ([json, at, noise]) => json.slice(0, at % (json.length + 1)) + noise + json.slice((at % (json.length + 1)) + 1),
      )
    fc.assert(
      fc.property(meddled, (text) => accepts(text, true) === parses(text)),
      { numRuns: 20_000 },
    )
  })
  t.test('accepts any text exactly if JSON.parse does', async () => {
    const letters = fc.string({ unit: fc.constantFrom(...'{}[]",:\\0123456789-+.eEtruefalsn \n\u0000\ud800é') })
    fc.assert(
      fc.property(letters, (text) => accepts(text, true) === parses(text)),
      { numRuns: 20_000 },
    )
  })
})

t.test('checks no characters inside the strings of a large text unless strict', async (t) => {
  for (const flaw of ['"\n"', '"\\x"', '"\u0000"']) {
    const large = `[${flaw},"${'x'.repeat(20_000)}"]`
    t.notOk(accepts(large, true))
    t.doesNotThrow(() => scan(sourceOf(large)))
    t.throws(() => scan(sourceOf(flaw)), { name: 'JsonError' })
  }
  t.throws(() => scan(sourceOf(`["${'x'.repeat(20_000)}",tru]`)), { name: 'JsonError' }, 'between them everything is')
})

t.test('accepts a large text unchecked if it accepts it checked', async () => {
  const padding = `"${'x'.repeat(20_000)}"`
  fc.assert(
    fc.property(anyJson, (json) => {
      const text = `[${json},${padding}]`
      scan(sourceOf(text))
      return accepts(text, true)
    }),
    { numRuns: 1_000 },
  )
})

t.test('refuses a message truncated anywhere', async (t) => {
  const text = '{"jsonrpc":"2.0","id":-1.5e2,"params":{"a":[true,null,"\\u00e9\\n"],"b":{}},"x":"é\u{1f600}"}'
  for (let end = 0; end < text.length; end++) t.notOk(accepts(text.slice(0, end), true), text.slice(0, end))
  t.ok(accepts(text, true))
})

t.test('finds members where JSON.parse finds them', async () => {
  fc.assert(
    fc.property(
      anyJson.filter((json) => json.startsWith('{')),
      (json) => {
        const source = sourceOf(json)
        const members = membersAt(source, scan(source))
        const values = Object.fromEntries(
          members.map(({ key, start, end }) => [key, JSON.parse(json.slice(start, end))]),
        )
        const expected = JSON.parse(json) as Record<string, unknown>
        const sorted = (object: Record<string, unknown>) => Object.entries(object).sort(([a], [b]) => (a < b ? -1 : 1))
        return JSON.stringify(sorted(values)) === JSON.stringify(sorted(expected))
      },
    ),
    { numRuns: 2_000 },
  )
})

t.test('finds a key where JSON.parse finds it', async () => {
  const keys = fc.array(fc.tuple(string, number), { maxLength: 100 })
  fc.assert(
    fc.property(keys, (members) => {
      const json = `{${members.map(([key, value]) => `${key}:${value}`).join(',')}}`
      const source = sourceOf(json)
      const table = scan(source)
      const spans = membersAt(source, table)
      return keysAt(source, table).every((key) => {
        const [at, last] = [find(source, table, 0, key) / ROW - 1, spans.findLastIndex((one) => one.key === key)]
        return at === last
      })
    }),
  )
})

t.test('reads objects under named keys on the way', async (t) => {
  const text = '{"params":{"_meta":{"k":1},"arguments":{"_meta":{}}},"other":{"_meta":{}}}'
  const source = sourceOf(text)
  const table = scan(source, {}, { descend: new Set(['params', '_meta']) })
  const params = find(source, table, 0, 'params')
  t.same(keysAt(source, table, params), ['_meta', 'arguments'])
  t.same(keysAt(source, table, find(source, table, params, '_meta')), ['k'])
  t.same(keysAt(source, table, find(source, table, params, 'arguments')), [])
  t.same(keysAt(source, table, find(source, table, 0, 'other')), [])
  t.same(keysAt(source, table), ['params', 'other'])
})

t.test('reads arrays under a named key on the way, unless they are long', async (t) => {
  const listing = { descend: new Set(['result']), elements: 'content' }
  const numbers = (length: number) => Array.from({ length }, (_, at) => at)
  const listed = (length: number) => {
    const list = numbers(length)
    const text = JSON.stringify({ result: { content: list, other: [1], last: { content: [2] } }, content: [[3], [4]] })
    const source = sourceOf(text)
    const table = scan(source, {}, listing)
    const result = find(source, table, 0, 'result')
    t.same(keysAt(source, table, result), ['content', 'other', 'last'])
    t.same(elementsAt(table, find(source, table, result, 'other')), [])
    t.same(elementsAt(table, find(source, table, result, 'last')), [])
    t.equal(elementsAt(table, find(source, table, 0, 'content')).length, 2)
    return elementsAt(table, find(source, table, result, 'content')).map(({ start, end }) =>
      Number(text.slice(start, end)),
    )
  }
  t.same(listed(3), [0, 1, 2])
  t.same(listed(MAX_ELEMENTS), numbers(MAX_ELEMENTS))
  t.same(listed(MAX_ELEMENTS + 1), [])
  t.same(listed(0), [])
})

t.test('compares keys by their meaning, not by their spelling', async (t) => {
  const source = sourceOf('{"\\u005fmeta":1,"a\\b":2,"a\\\\b":3}')
  const table = scan(source)
  t.same(keysAt(source, table), ['_meta', 'a\b', 'a\\b'])
  t.equal(find(source, table, 0, '_meta'), ROW)
  t.equal(find(source, table, 0, 'a\\b'), 3 * ROW)
  t.equal(find(source, table, 0, '\\u005fmeta'), -1)
})

t.test('stops the scan of an array after the given number of elements', async (t) => {
  const source = sourceOf('[1,{"a":[2]},3,oops')
  t.equal(elementsAt(scan(source, {}, { most: 2 })).length, 2)
  t.throws(() => scan(source, {}, { most: 4 }), { name: 'JsonError' })
})

t.test('elements of an array keep their place', async (t) => {
  const text = ' [ 1 , {"a":[2]} ,"," ]'
  const elements = elementsAt(scanAt(sourceOf(text), 1))
  t.same(
    elements.map(({ start, end }) => text.slice(start, end)),
    ['1', '{"a":[2]}', '","'],
  )
})

t.test('accepts a value at a bound, and refuses one beyond it', async (t) => {
  const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)
  t.doesNotThrow(() => scan(sourceOf(nested(64)), { maxDepth: 64 }))
  t.throws(() => scan(sourceOf(nested(65)), { maxDepth: 64 }), { name: 'JsonBoundError' })
  t.throws(() => scan(sourceOf(nested(400_000)), { maxDepth: 64 }), { name: 'JsonBoundError' })
  t.doesNotThrow(() => scan(sourceOf('[1,2,3]'), { maxValues: 4 }))
  t.throws(() => scan(sourceOf('[1,2,3,4]'), { maxValues: 4 }), { name: 'JsonBoundError' })
})

t.test('strings full of escapes take linear time', async (t) => {
  const measure = (length: number) => {
    const text = JSON.stringify('"\\\n'.repeat(length))
    // CPU time, because other processes may be running.
    const started = process.cpuUsage()
    const source = sourceOf(text)
    for (let i = 0; i < 5; i++) scan(source)
    const { user, system } = process.cpuUsage(started)
    return (user + system) / 1_000
  }
  measure(10_000)
  const small = measure(20_000)
  const large = measure(200_000)
  t.ok(large < small * 60 + 50, `${small} ms, then ${large} ms for ten times as much`)
})
