/** The ledger of bytes: what is lent, who gives way, and that all of it comes back. */
import fc from 'fast-check'
import t from 'tap'
import { Fault } from '../../src/fault/fault.js'
import { Memory, unlimited } from '../../src/limits/memory.js'

const KIB = 1024

/** The status of the Fault with which something is refused; undefined where it is not. */
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
  const loan = memory.borrow('a')
  t.equal(loan.hold(1), undefined)
  t.equal(memory.used, 4 * KIB)
  t.equal(loan.hold(10 * KIB), undefined)
  t.equal(memory.used, 12 * KIB)
  t.equal(loan.hold(5 * KIB), undefined)
  t.equal(memory.used, 8 * KIB)
  loan.end()
  loan.end()
  t.equal(memory.used, 0)
  t.equal(loan.hold(1), 'full', 'a loan that is over gives nothing')
  t.equal(memory.used, 0)
})

t.test('a request beyond the bound is refused and changes nothing', async (t) => {
  const memory = new Memory({ max: 64 * KIB })
  const loan = memory.lend('a', 40 * KIB)
  t.equal(loan.hold(65 * KIB), 'full')
  t.equal(memory.used, 40 * KIB)
  t.equal(
    refusalOf(() => memory.lend('b', 30 * KIB)),
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
  memory.lend('a', 28 * KIB)
  t.equal(
    refusalOf(() => memory.lend('a', 8 * KIB)),
    429,
  )
  t.equal(
    refusalOf(() => memory.lend('b', 16 * KIB)),
    undefined,
  )
})

t.test('holders of memory release it for others, in the order of their names', async (t) => {
  const memory = new Memory({ max: 64 * KIB, share: 0.9 })
  const asked: unknown[] = []
  const [first, second] = [memory.lend('a', 20 * KIB), memory.lend('b', 20 * KIB)]
  memory.addKeeper((bytes, principal) => {
    asked.push(['first', bytes, principal])
    first.hold(0)
  })
  memory.addKeeper((bytes, principal) => {
    asked.push(['second', bytes, principal])
    if (principal !== 'c') second.hold(0)
  })
  memory.lend('c', 40 * KIB)
  t.same(asked, [['first', 16 * KIB, undefined]])
  t.equal(memory.used, 60 * KIB)
  t.equal(
    refusalOf(() => memory.lend('c', 4 * KIB)),
    429,
  )
  t.same(asked.slice(1), [
    ['first', 4 * KIB, 'c'],
    ['second', 4 * KIB, 'c'],
  ])
})

t.test('counts a holder right that releases something for itself', async (t) => {
  const memory = new Memory({ max: 32 * KIB })
  const loan = memory.lend('a', 32 * KIB)
  memory.addKeeper(() => loan.hold(8 * KIB))
  t.equal(loan.hold(36 * KIB), undefined)
  t.ok(memory.used <= 36 * KIB)
  loan.end()
  t.equal(memory.used, 0)
})

t.test('a changed bound applies at once', async (t) => {
  const memory = new Memory({ max: 64 * KIB })
  const loan = memory.lend('a', 40 * KIB)
  memory.resize({ max: 8 * KIB, share: 1 })
  t.equal(memory.max, 8 * KIB)
  t.equal(loan.hold(44 * KIB), 'full')
  t.equal(loan.hold(4 * KIB), undefined)
  t.equal(memory.used, 4 * KIB)
})

t.test('without a bound every request is granted', async (t) => {
  t.equal(
    refusalOf(() => unlimited().lend('a', 2 ** 40)),
    undefined,
  )
})

t.test('with reservations in any order, the ledger stays within its bound and is empty in the end', async () => {
  const step = fc.tuple(fc.nat(5), fc.oneof(fc.nat(40_000), fc.constant(-1)))
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const memory = new Memory({ max: 100_000, share: 0.5 })
      const loans = Array.from({ length: 6 }, (_, at) => memory.borrow(`principal ${at % 3}`))
      const kept = memory.borrow('keeper')
      memory.addKeeper(() => kept.hold(0))
      kept.hold(8_000)
      for (const [at, bytes] of steps) {
        const loan = loans[at] as (typeof loans)[number]
        if (bytes < 0) loan.end()
        else loan.hold(bytes)
        if (memory.used > memory.max || memory.used < 0) return false
      }
      for (const loan of [...loans, kept]) loan.end()
      return memory.used === 0
    }),
  )
})
