/** The ledger of bytes: reservations, refusals, holders that free memory, and that everything is returned. */
import fc from 'fast-check'
import t from 'tap'
import { Fault } from '../../src/base/fault/fault.js'
import { Memory, unlimited } from '../../src/base/limits/memory.js'

const KIB = 1024

/** The status of the Fault that an action throws; undefined if it throws none. */
function refusalOf(act: () => unknown): number | undefined {
  try {
    act()
    return undefined
  } catch (error) {
    return Fault.from(error).status
  }
}

t.test('a reservation counts its size, rounded up, and releases it once', async (t) => {
  const memory = new Memory({ max: 64 * KIB })
  const reservation = memory.reserve('a')
  t.equal(reservation.resize(1), undefined)
  t.equal(memory.used, 4 * KIB)
  t.equal(reservation.resize(10 * KIB), undefined)
  t.equal(memory.used, 12 * KIB)
  t.equal(reservation.resize(5 * KIB), undefined)
  t.equal(memory.used, 8 * KIB)
  reservation.end()
  reservation.end()
  t.equal(memory.used, 0)
  t.equal(reservation.resize(1), 'full', 'a reservation that is over gives nothing')
  t.equal(memory.used, 0)
})

t.test('a request beyond the bound is refused and changes nothing', async (t) => {
  const memory = new Memory({ max: 64 * KIB })
  const reservation = memory.mustReserve('a', 40 * KIB)
  t.equal(reservation.resize(65 * KIB), 'full')
  t.equal(memory.used, 40 * KIB)
  t.equal(
    refusalOf(() => memory.mustReserve('b', 30 * KIB)),
    503,
  )
  t.equal(
    refusalOf(() => memory.check('b', 30 * KIB)),
    503,
  )
  t.equal(
    refusalOf(() => memory.check('b', 20 * KIB)),
    undefined,
  )
  t.equal(memory.used, 40 * KIB)
})

t.test('refuses a principal that has used its share, and no others', async (t) => {
  const memory = new Memory({ max: 64 * KIB, share: 0.5 })
  memory.mustReserve('a', 28 * KIB)
  t.equal(
    refusalOf(() => memory.mustReserve('a', 8 * KIB)),
    429,
  )
  t.equal(
    refusalOf(() => memory.mustReserve('b', 16 * KIB)),
    undefined,
  )
})

t.test('keepers free memory for others, in the order in which they were added', async (t) => {
  const memory = new Memory({ max: 64 * KIB, share: 0.9 })
  const asked: unknown[] = []
  const [first, second] = [memory.mustReserve('a', 20 * KIB), memory.mustReserve('b', 20 * KIB)]
  memory.addKeeper((bytes, principal) => {
    asked.push(['first', bytes, principal])
    first.resize(0)
  })
  memory.addKeeper((bytes, principal) => {
    asked.push(['second', bytes, principal])
    if (principal !== 'c') second.resize(0)
  })
  memory.mustReserve('c', 40 * KIB)
  t.same(asked, [['first', 16 * KIB, undefined]])
  t.equal(memory.used, 60 * KIB)
  t.equal(
    refusalOf(() => memory.mustReserve('c', 4 * KIB)),
    429,
  )
  t.same(asked.slice(1), [
    ['first', 4 * KIB, 'c'],
    ['second', 4 * KIB, 'c'],
  ])
})

t.test('counts correctly if a keeper shrinks the reservation that asks', async (t) => {
  const memory = new Memory({ max: 32 * KIB })
  const reservation = memory.mustReserve('a', 32 * KIB)
  memory.addKeeper(() => reservation.resize(8 * KIB))
  t.equal(reservation.resize(36 * KIB), undefined)
  t.ok(memory.used <= 36 * KIB)
  reservation.end()
  t.equal(memory.used, 0)
})

t.test('a changed bound applies at once', async (t) => {
  const memory = new Memory({ max: 64 * KIB })
  const reservation = memory.mustReserve('a', 40 * KIB)
  memory.resize({ max: 8 * KIB, share: 1 })
  t.equal(memory.max, 8 * KIB)
  t.equal(reservation.resize(44 * KIB), 'full')
  t.equal(reservation.resize(4 * KIB), undefined)
  t.equal(memory.used, 4 * KIB)
})

t.test('without a bound every request is granted', async (t) => {
  t.equal(
    refusalOf(() => unlimited().mustReserve('a', 2 ** 40)),
    undefined,
  )
})

t.test('with reservations in any order, the ledger stays within its bound and is empty in the end', async () => {
  const step = fc.tuple(fc.nat(5), fc.oneof(fc.nat(40_000), fc.constant(-1)))
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const memory = new Memory({ max: 100_000, share: 0.5 })
      const reservations = Array.from({ length: 6 }, (_, at) => memory.reserve(`principal ${at % 3}`))
      const kept = memory.reserve('keeper')
      memory.addKeeper(() => kept.resize(0))
      kept.resize(8_000)
      for (const [at, bytes] of steps) {
        const reservation = reservations[at] as (typeof reservations)[number]
        if (bytes < 0) reservation.end()
        else reservation.resize(bytes)
        if (memory.used > memory.max || memory.used < 0) return false
      }
      for (const reservation of [...reservations, kept]) reservation.end()
      return memory.used === 0
    }),
  )
})
