/** Two JSON values as lines side by side. */
import t from 'tap'
import { diff } from '../../src/inspector/replay/diff.js'
import { type ComparedRow, sideBySide } from '../../src/inspector/replay/side-by-side.js'

const SIGN = { same: ' ', ignored: '.', add: '+', remove: '-', replace: '~' } as const
const drawn = (rows: readonly ComparedRow[]) =>
  rows.map(({ kind, left, right }) => `${SIGN[kind]}${left ?? ''}|${right ?? ''}`)

t.test('equal members are in one row, and differences have a sign', async (t) => {
  const { rows } = sideBySide(
    { a: 1, gone: [1, 2], list: ['x', 'y'], time: 1, deep: { same: true, n: 1 } },
    { deep: { n: 2, same: true }, list: ['new', 'x', 'y'], a: 1, time: 2, more: null },
    ['/time'],
  )
  t.same(drawn(rows), [
    ' {|{',
    '   "a": 1|  "a": 1',
    '-  "gone": [1,2]|',
    '   "list": [|  "list": [',
    '+|    "new"',
    '     "x"|    "x"',
    '     "y"|    "y"',
    '   ]|  ]',
    '.  "time": 1|  "time": 2',
    '   "deep": {|  "deep": {',
    '     "same": true|    "same": true',
    '~    "n": 1|    "n": 2',
    '   }|  }',
    '+|  "more": null',
    ' }|}',
  ])
})

t.test('marks the values that the comparison lists', async (t) => {
  const values: unknown[] = [
    null,
    1,
    'x',
    [],
    {},
    [1],
    { a: 1 },
    { a: [{ b: 1 }, 2] },
    { a: [2, { b: 1 }] },
    { __proto__: 1 },
  ]
  for (const left of values)
    for (const right of values) {
      const { rows } = sideBySide(left, right)
      const isMarked = rows.some(({ kind }) => kind !== 'same')
      t.equal(isMarked, diff(left, right).all.length > 0, `${JSON.stringify(left)} and ${JSON.stringify(right)}`)
    }
})

t.test('makes only the first rows of long values', async (t) => {
  const long = (n: number) => Array.from({ length: 10_000 }, (_, i) => i * n)
  const { rows, isCut } = sideBySide(long(1), long(2))
  t.equal(rows.length, 2_000)
  t.ok(isCut)
})
