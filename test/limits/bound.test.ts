/** A bound that principals share. */
import fc from 'fast-check'
import t from 'tap'
import { Bound } from '../../src/base/limits/bound.js'

/** Takes one at a time until the bound refuses; returns how many were taken. */
function takeAll(bound: Bound, principal: string): number {
  let taken = 0
  for (; bound.reached(principal) === undefined; taken++) bound.occupy(principal)
  return taken
}

t.test('a lone principal may use all of a bound', async (t) => {
  const bound = new Bound({ max: 10 })
  t.equal(takeAll(bound, 'a'), 10)
  t.equal(bound.reached('a'), 'full')
})

t.test('each principal takes at most half of what is left', async (t) => {
  const bound = new Bound({ max: 16, share: 0.5 })
  t.same(
    ['a', 'b', 'c', 'd', 'e'].map((name) => takeAll(bound, name)),
    [8, 4, 2, 1, 1],
  )
  t.equal(bound.reached('a'), 'full')
  bound.vacate('e')
  t.equal(bound.reached('a'), 'share', 'what becomes free is not for who has most')
  t.equal(bound.reached('f'), undefined)
})

t.test('returned amounts can be taken again', async (t) => {
  const bound = new Bound({ max: 100, share: 0.5 })
  bound.occupy('a', 50)
  t.equal(bound.reached('a'), 'share')
  bound.vacate('a', 50)
  t.equal(bound.heldBy('a'), 0)
  t.equal(bound.reached('a', 50), undefined)
})

t.test('a principal that holds nothing can always take something, whatever the others do', async () => {
  const one = fc.record({ principal: fc.constantFrom('a', 'b', 'c'), amount: fc.integer({ min: 1, max: 5 }) })
  fc.assert(
    fc.property(fc.array(one, { maxLength: 60 }), fc.integer({ min: 5, max: 60 }), (wishes, max) => {
      const bound = new Bound({ max, share: 0.5 })
      for (const { principal, amount } of wishes) {
        if (bound.reached(principal, amount) !== undefined) continue
        bound.occupy(principal, amount)
        const others = bound.used - bound.heldBy(principal)
        const first = bound.heldBy(principal) === amount
        if (bound.used > max) return false
        if (!first && bound.heldBy(principal) > (max - others) / 2) return false
      }
      return bound.used === max || bound.reached('newcomer') === undefined
    }),
  )
})
