/** The summary of a large JSON value. */
import fc from 'fast-check'
import t from 'tap'
import { shapeOf } from '../../../src/middle/policy/cut/shape.js'

t.test('a summary names members, types and lengths', async (t) => {
  const rows = Array.from({ length: 3 }, (_, id) => ({ id, tags: ['a'], more: null }))
  t.equal(shapeOf({ total: 3, rows }), '{total: number, rows: [3 of {id: number, tags: [1 of string], more: null}]}')
  t.equal(shapeOf([]), '[]')
  t.equal(shapeOf({}), '{}')
  t.match(
    shapeOf(Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`n${i}`, true]))),
    /n19: boolean, 10 more\}$/,
  )
  t.equal(shapeOf({ a: { b: { c: { d: { e: 1 } } } } }), '{a: {b: {c: {d: {1 members}}}}}')
  t.notMatch(shapeOf({ 'a\u202eb': 1 }), /\u202e/)
})

t.test('a summary is short, whatever the value is', async () => {
  fc.assert(fc.property(fc.jsonValue({ maxDepth: 8 }), (value) => shapeOf(value).length <= 1_001))
})
