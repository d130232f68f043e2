/** JSON as lines for people: what stays on one line, and which lines a marked value has. */
import { assert as check, jsonValue, property } from 'fast-check'
import t from 'tap'
import { indented, type JsonText, jsonLines, sharesOf } from '../../src/inspector/json-lines.js'

/** The lines as they are read, with `*` before those of a mark and `>` before its first one. */
function written({ lines }: JsonText): string[] {
  return lines.map(({ depth, name, text, mark, isFirst }) => {
    const sign = mark === undefined ? '' : `${isFirst ? '>' : '*'}${mark} `
    return `${sign}${'  '.repeat(depth)}${name === '' ? '' : `${name}: `}${text}`
  })
}

t.test('a value that fits is one line, and a longer one is divided', async (t) => {
  t.same(written(jsonLines('{"a":{"b":[1,2]},"c":"x"}', 40)), ['{"a": {"b": [1, 2]}, "c": "x"}'])
  t.same(written(jsonLines('{"a":{"b":[1,2]},"c":"x"}', 20)), [
    '{',
    '  "a": {',
    '    "b": [1, 2]',
    '  },',
    '  "c": "x"',
    '}',
  ])
  t.same(written(jsonLines('[]', 1)), ['[]'])
  t.same(written(jsonLines(' {"a" : 1.50e3 }\n', 40)), ['{"a": 1.50e3}'], 'numbers stay as written')
  for (const width of [1, 5, 10, 20, 30, 60]) {
    const text = '{"aaa":{"bbb":[1,2,{"c":null}]},"ddd":"a, {b}: \\" c","e":[[],{}]}'
    const { lines } = jsonLines(text, width)
    t.same(JSON.parse(written({ lines, found: new Set() }).join('\n')), JSON.parse(text), `width ${width}`)
  }
})

t.test('a marked value has lines of its own, wherever it is', async (t) => {
  const text = '{"id":7,"params":{"_meta":{"a/b":{"x":1},"progressToken":3},"name":"n"}}'
  const marked = jsonLines(text, 60, ['/params/_meta/a~1b', '/id', '/params/_meta/missing'])
  t.same(written(marked), [
    '{',
    '>1   "id": 7,',
    '  "params": {',
    '    "_meta": {',
    '>0       "a/b": {"x": 1},',
    '      "progressToken": 3',
    '    },',
    '    "name": "n"',
    '  }',
    '}',
  ])
  t.same([...marked.found].sort(), [0, 1], 'what is not in the text is not found')
  t.same(written(jsonLines(text, 8, ['/params/_meta/a~1b'])).slice(4, 7), [
    '>0       "a/b": {',
    '*0         "x": 1',
    '*0       },',
  ])
  t.same(written(jsonLines('{"a":[1,2]}', 40, ['', '/a/1'])), [
    '>0 {',
    '*0   "a": [',
    '*0     1,',
    '>1     2',
    '*0   ]',
    '*0 }',
  ])
})

t.test('a truncated text is shown up to its end, and other text as it is', async (t) => {
  t.same(written(jsonLines('{"a":[1,{"b":"c', 40, ['/a/1/b'])), [
    '{',
    '  "a": [',
    '    1,',
    '    {',
    '>0       "b": "c',
  ])
  t.same(written(jsonLines('{"a":', 40)), ['{', '  "a": '])
  t.same(written(jsonLines('{"a"', 40)), ['{', '  "a": '])
  t.same(written(jsonLines('no {json}\nat all', 40, ['/a'])), ['no {json}', 'at all'])
  for (const text of ['', ' ', '{a:1}', '{"a" 1}', '[1}', '{} {}', '[,]', ']'])
    t.same(written(jsonLines(text, 40)), text.split('\n'), text)
})

t.test('very deep text causes no error, and takes linear time', async (t) => {
  const deep = jsonLines('['.repeat(16_000), 40)
  t.ok(deep.lines.length <= 102)
  const closed = jsonLines(`${'[{"a":'.repeat(3_000)}1${'}]'.repeat(3_000)}`, 40)
  t.ok(closed.lines.length <= 202)
})

t.test('room is shared fairly, and no text gets less than the minimum', async (t) => {
  t.same(sharesOf([5, 30], 40, 3), [5, 30], 'all fit')
  t.same(sharesOf([5, 30, 30], 45, 3), [5, 20, 20])
  t.same(sharesOf([30, 30], 4, 3), [3, 3])
  t.same(sharesOf([2, 30], 0, 3), [2, 3])
  t.same(sharesOf([], 40, 3), [])
})

t.test('indents JSON as JSON.stringify does', async () => {
  check(
    property(jsonValue(), (value) => {
      const wanted = JSON.stringify(value, null, 2)
      for (const text of [JSON.stringify(value), wanted])
        if (indented(text) !== wanted) throw new Error(`${indented(text)} for ${text}`)
    }),
  )
})

t.test('keeps numbers, names, strings and repeated members as sent', async (t) => {
  const text = '{"account":9007199254740993,"amount":1e400,"to":"evil","to":"g\\u006fod","zero":-0.0}'
  t.equal(
    indented(text),
    '{\n  "account": 9007199254740993,\n  "amount": 1e400,\n  "to": "evil",\n  "to": "g\\u006fod",\n  "zero": -0.0\n}',
  )
})

t.test('indents a truncated text, and leaves other text unchanged', async (t) => {
  t.equal(indented('{"a":[1,{"b":"c'), '{\n  "a": [\n    1,\n    {\n      "b": "c')
  t.equal(indented('[ ]'), '[]')
  for (const text of ['event: <p>no</p>', '}', 'a(b)', '{"a":1}}', "{'a':1}"]) t.equal(indented(text), text)
})
