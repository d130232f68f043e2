/** Differences between two JSON values. */
import t from 'tap'
import { areEqual, diff, MAX_COMPARED_DEPTH, MAX_DIFFERENCES } from '../../src/inspector/replay/diff.js'

type Case = [what: string, expected: unknown, actual: unknown, differences: object[], ignore?: string[]]

const CASES: Case[] = [
  ['equal values have none', { a: [1, { b: null }] }, { a: [1, { b: null }] }, []],
  ['the order of keys does not count', { a: 1, b: { c: 2, d: 3 } }, { b: { d: 3, c: 2 }, a: 1 }, []],
  [
    'the order of elements counts',
    [1, 2],
    [2, 1],
    [
      { at: '/0', op: 'replace', expected: 1, actual: 2 },
      { at: '/1', op: 'replace', expected: 2, actual: 1 },
    ],
  ],
  ['a member is gone', { a: 1, b: 2 }, { a: 1 }, [{ at: '/b', op: 'remove', expected: 2 }]],
  ['a member is new', { a: 1 }, { a: 1, b: null }, [{ at: '/b', op: 'add', actual: null }]],
  ['null is a value', { a: null }, { a: false }, [{ at: '/a', op: 'replace', expected: null, actual: false }]],
  ['an object is no list', { a: {} }, { a: [] }, [{ at: '/a', op: 'replace', expected: {}, actual: [] }]],
  ['a number is no text', 1, '1', [{ at: '', op: 'replace', expected: 1, actual: '1' }]],
  ['names are escaped', { 'a/b~c': 1 }, { 'a/b~c': 2 }, [{ at: '/a~1b~0c', op: 'replace', expected: 1, actual: 2 }]],
  ['an empty name is a name', { '': 1 }, { '': 2 }, [{ at: '/', op: 'replace', expected: 1, actual: 2 }]],
  [
    'hostile names are names',
    JSON.parse('{"__proto__": 1, "constructor": 2}'),
    JSON.parse('{"__proto__": 2, "toString": 3}'),
    [
      { at: '/constructor', op: 'remove', expected: 2 },
      { at: '/toString', op: 'add', actual: 3 },
      { at: '/__proto__', op: 'replace', expected: 1, actual: 2 },
    ],
  ],
  [
    'an element is new at the front',
    [{ n: 1 }, { n: 2 }],
    [{ n: 0 }, { n: 1 }, { n: 2 }],
    [{ at: '/0', op: 'add', actual: { n: 0 } }],
  ],
  ['an element is gone in the middle', ['a', 'b', 'c'], ['a', 'c'], [{ at: '/1', op: 'remove', expected: 'b' }]],
  [
    'a changed element after a new one says where it is in both',
    ['a', { n: 1, m: 1 }, 'z'],
    ['new', 'a', { n: 2, m: 1 }, 'z'],
    [
      { at: '/0', op: 'add', actual: 'new' },
      { at: '/1/n', to: '/2/n', op: 'replace', expected: 1, actual: 2 },
    ],
  ],
  ['an ignored value may differ', { a: { time: 1, b: 2 } }, { a: { time: 2, b: 2 } }, [], ['/a/time']],
  ['an ignored value may be missing', { a: { time: 1 } }, { a: {} }, [], ['/a/time']],
  ['an ignored value may be new', { a: {} }, { a: { time: 1 } }, [], ['/a/time']],
  ['what is in an ignored value is ignored', { a: { b: { c: 1 } } }, { a: { b: { d: [] } } }, [], ['/a/b']],
  ['a star is one name', { a: [{ id: 1 }, { id: 2 }] }, { a: [{ id: 3 }, { id: 4 }] }, [], ['/a/*/id']],
  [
    'a star is not two names',
    { a: { b: { id: 1 } } },
    { a: { b: { id: 2 } } },
    [{ at: '/a/b/id', op: 'replace', expected: 1, actual: 2 }],
    ['/a/id', '/*/id'],
  ],
  ['two stars are any number of names', { a: { b: { id: 1 } }, id: 1 }, { a: { b: { id: 2 } }, id: 2 }, [], ['/**/id']],
  [
    'ignored members do not keep elements apart',
    [{ id: 1, n: 'x' }],
    [
      { id: 8, n: 'new' },
      { id: 9, n: 'x' },
    ],
    [{ at: '/0', op: 'add', actual: { id: 8, n: 'new' } }],
    ['/*/id'],
  ],
  [
    'an empty ignore pointer is everything',
    { a: 1 },
    { a: 2 },
    [{ at: '/a', op: 'replace', expected: 1, actual: 2 }],
    [],
  ],
]

for (const [what, expected, actual, differences, ignore] of CASES)
  t.test(what, async (t) => {
    const found = diff(expected, actual, ignore)
    const sorted = (all: readonly object[]) => all.map((one) => JSON.stringify(one)).toSorted()
    t.same(sorted(found.all), sorted(differences))
    t.equal(found.more, 0)
  })

t.test('lists a bounded number of differences, and counts the others', async (t) => {
  const list = (of: number) => Array.from({ length: MAX_DIFFERENCES + 5 }, (_, i) => i + of)
  const { all, more } = diff(list(0), list(1))
  t.equal(all.length, MAX_DIFFERENCES)
  t.equal(more, 5)
})

t.test('values of any depth and length are compared', async (t) => {
  const nested = (depth: number, end: unknown) =>
    JSON.parse(`${'{"a":['.repeat(depth)}${JSON.stringify(end)}${']}'.repeat(depth)}`)
  t.same(diff(nested(5_000, 1), nested(5_000, 1)), { all: [], more: 0 })
  const { all } = diff(nested(5_000, 1), nested(5_000, 2))
  t.equal(all.length, 1)
  t.equal(all[0]?.at.split('/').length, MAX_COMPARED_DEPTH + 1, 'deeper values are compared as one')
  const long = Array.from({ length: 200_000 }, (_, i) => i)
  t.same(diff(long, [...long, 'new']).all, [{ at: '/200000', op: 'add', actual: 'new' }])
  const shuffled = long.map((n) => n * 7)
  t.equal(diff(long, [...shuffled, 'new']).all.length, MAX_DIFFERENCES)
})

t.test('values are equal whatever the order of their keys', async (t) => {
  t.ok(areEqual({ a: 1, b: [{ c: 2, d: 3 }] }, { b: [{ d: 3, c: 2 }], a: 1 }))
  const others = [{ a: 1 }, { a: 1, b: [{ c: 2 }] }, { a: 1, b: { 0: { c: 2, d: 3 } } }, { a: 1, c: [] }, null, [], 'a']
  for (const other of others) t.notOk(areEqual({ a: 1, b: [{ c: 2, d: 3 }] }, other), JSON.stringify(other))
  t.notOk(areEqual({ ['__proto__']: 1 }, Object.create({ ['__proto__']: 1 })))
  const deep = () => JSON.parse(`${'['.repeat(50_000)}${']'.repeat(50_000)}`) as unknown
  t.ok(areEqual(deep(), deep()), 'at any depth')
})
