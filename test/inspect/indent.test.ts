/** JSON as the page shows it: what is sent can be read, and is not changed. */
import { assert as check, jsonValue, property } from 'fast-check'
import t from 'tap'
import { indented } from '../../src/inspect/indent.js'

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
