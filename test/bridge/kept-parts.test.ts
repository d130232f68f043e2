/** Parts of cut results in this process: they expire, and make room when memory is short. */
import t from 'tap'
import { keptParts } from '../../src/app/kept-parts.js'
import { Memory } from '../../src/base/limits/memory.js'

const entry = (id: string, { owner = 'o', bytes = 4_096, until = 1_000 } = {}) => ({
  id,
  owner,
  server: 's',
  bytes,
  until,
})

t.test('parts are there until they expire', async (t) => {
  let now = 0
  const parts = keptParts(
    undefined,
    new Memory({ max: 1_000_000 }),
    () => {},
    () => now,
  )
  t.equal(await parts.keep(entry('a'), 'p', ['one', 'two']), 0)
  t.same([await parts.part({ id: 'a' }, 1), await parts.part({ id: 'a' }, 2)], ['two', undefined])
  now = 1_000
  t.equal(await parts.part({ id: 'a' }, 0), undefined)
})

t.test('they are counted as memory of their principal, and given up when others need it', async (t) => {
  const memory = new Memory({ max: 16_384 })
  const gone: string[] = []
  const parts = keptParts(
    undefined,
    memory,
    ({ id }) => gone.push(id),
    () => 0,
  )
  for (const id of ['a', 'b', 'c']) await parts.keep(entry(id), 'p', [id])
  t.equal(memory.used, 3 * 4_096)
  t.equal(memory.reserve('q').resize(12_288), undefined)
  t.same([await parts.part({ id: 'a' }, 0), await parts.part({ id: 'c' }, 0)], [undefined, 'c'])
  t.same(gone, ['a', 'b'], 'which is reported')
  t.equal(memory.used, 16_384)
})

t.test('a result for which there is no memory is not kept', async (t) => {
  const memory = new Memory({ max: 8_192 })
  const parts = keptParts(
    undefined,
    memory,
    () => {},
    () => 0,
  )
  memory.mustReserve('q', 8_192)
  t.equal(await parts.keep(entry('a'), 'p', ['a']), undefined)
  t.equal(await parts.part({ id: 'a' }, 0), undefined)
})

t.test('the same result is kept once, for longer', async (t) => {
  let now = 0
  const memory = new Memory({ max: 16_384 })
  const parts = keptParts(
    undefined,
    memory,
    () => {},
    () => now,
  )
  await parts.keep(entry('a'), 'p', ['a'])
  t.equal(await parts.keep(entry('a', { until: 2_000 }), 'p', ['a']), 0)
  t.equal(memory.used, 4_096)
  now = 1_500
  t.equal(await parts.part({ id: 'a' }, 0), 'a')
})
