/** Collections with a bound. */
import t from 'tap'
import { BoundedMap, BoundedSet } from '../../src/base/limits/bounded.js'

t.test('a Map drops its oldest entry beyond the bound, and reports it', async (t) => {
  const dropped: [string, number][] = []
  const map = new BoundedMap<string, number>(2, (value, key) => dropped.push([key, value]))
  map.set('a', 1).set('b', 2).set('c', 3)
  t.same(Object.fromEntries(map), { b: 2, c: 3 })
  t.same(dropped, [['a', 1]])
})

t.test('an entry that is set again is the newest, and drops nothing', async (t) => {
  const dropped: number[] = []
  const map = new BoundedMap<string, number>(2, (value) => dropped.push(value))
  map.set('a', 1).set('b', 2).set('a', 3)
  t.same([...map.keys()], ['b', 'a'])
  map.set('c', 4)
  t.same([...map.keys()], ['a', 'c'])
  map.delete('a')
  map.set('d', 5)
  t.same(dropped, [2], 'a deleted entry makes room')
})

t.test('a Set drops its oldest value beyond the bound', async (t) => {
  const set = new BoundedSet<string | undefined>(2)
  set.add('a').add(undefined).add('a').add('c')
  t.same([...set], ['a', 'c'])
})
