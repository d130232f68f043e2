/** Cached results and lists reserve their memory, and are dropped when others need it. */
import t from 'tap'
import { Memory } from '../../src/base/limits/memory.js'
import { CountedCache } from '../../src/middle/policy/counted-cache.js'

const KIB = 1024

function make(max = 64 * KIB, most = 100) {
  const memory = new Memory({ max })
  const gone: number[] = []
  const cache = new CountedCache<{ id: number; bytes: number }>({
    memory,
    max: most,
    maxBytes: 48 * KIB,
    gone: ({ id }) => gone.push(id),
  })
  return { memory, cache, gone, keep: (id: number, bytes: number) => cache.keep(String(id), { id, bytes }) }
}

t.test('an entry reserves memory, and releases it when it is dropped', async (t) => {
  const { memory, cache, keep } = make()
  t.ok(keep(1, 20 * KIB))
  t.ok(keep(2, 20 * KIB))
  t.equal(memory.used, 40 * KIB)
  cache.delete('1')
  t.equal(memory.used, 20 * KIB)
  cache.close()
  t.equal(memory.used, 0)
})

t.test('keeps its own bound, and drops the oldest entry first', async (t) => {
  const { memory, gone, keep } = make()
  for (const id of [1, 2, 3]) t.ok(keep(id, 20 * KIB))
  t.same(gone, [1])
  t.equal(memory.used, 40 * KIB)
})

t.test('keeps its number of entries, and drops the one that was used longest ago', async (t) => {
  const { cache, gone, keep } = make(undefined, 3)
  for (const id of [1, 2, 3]) keep(id, KIB)
  cache.get('1')
  keep(3, 2 * KIB)
  t.same(gone, [3], 'a new value takes the place of the old one')
  for (const id of [4, 5]) keep(id, KIB)
  t.same(gone, [3, 2, 1])
  t.equal(cache.size, 3)
})

t.test('a bound of entries takes no memory for those that are not there', async (t) => {
  const { cache, keep } = make(undefined, Number.MAX_SAFE_INTEGER)
  t.ok(keep(1, KIB))
  t.equal(cache.size, 1)
})

t.test('gives the memory of the least recently used entries to others', async (t) => {
  const { memory, cache, gone, keep } = make()
  for (const id of [1, 2, 3, 4]) keep(id, 10 * KIB)
  cache.get('1')
  const reservation = memory.mustReserve('somebody', 40 * KIB)
  t.same(gone.slice(0, 2), [2, 3])
  t.ok(cache.has('1'))
  t.ok(memory.used <= memory.max)
  reservation.end()
  cache.close()
  t.equal(memory.used, 0)
})

t.test('stores nothing without memory', async (t) => {
  const { memory, cache, keep } = make()
  const reservation = memory.mustReserve('somebody', 60 * KIB)
  t.notOk(keep(1, 10 * KIB))
  t.equal(cache.size, 0)
  reservation.end()
  t.equal(memory.used, 0)
})
