/** Which kept results make room for others. */
import fc from 'fast-check'
import t from 'tap'
import { type KeptEntry, withRoomFor } from '../../../src/middle/policy/cut/room.js'

const ROOM = { all: { entries: 6, bytes: 60 }, owner: { entries: 3, bytes: 25 } }
const kept = (id: string, owner: string, bytes = 5, until = 100): KeptEntry => ({
  id,
  owner,
  server: 's',
  bytes,
  until,
})
const entries = fc.record({
  id: fc.constantFrom(...'abcdefghij'),
  owner: fc.constantFrom('x', 'y', 'z'),
  server: fc.constant('s'),
  bytes: fc.integer({ min: 1, max: 30 }),
  until: fc.integer({ min: 0, max: 20 }),
})

t.test('the bounds hold after each result, and nobody takes the place of another one who has an own', async () => {
  fc.assert(
    fc.property(fc.array(entries, { maxLength: 40 }), (all) => {
      let before: readonly KeptEntry[] = []
      return all.every((entry, now) => {
        const made = withRoomFor(before, { ...entry, until: now + entry.until }, now, ROOM)
        if (!made) return entry.bytes > ROOM.owner.bytes
        const sum = (of: readonly KeptEntry[]) => of.reduce((bytes, one) => bytes + one.bytes, 0)
        const own = made.entries.filter(({ owner }) => owner === entry.owner)
        const fits =
          own.length <= ROOM.owner.entries &&
          sum(own) <= ROOM.owner.bytes &&
          made.entries.length <= ROOM.all.entries &&
          sum(made.entries) <= ROOM.all.bytes
        const isFair = made.dropped.every(({ owner }) => owner === entry.owner) || own.length === 1
        before = made.entries
        return fits && isFair && made.entries.at(-1)?.id === entry.id
      })
    }),
  )
})

t.test('the oldest of the caller goes first, and expired ones are no loss', async (t) => {
  const before = [kept('a', 'y'), kept('b', 'x'), kept('c', 'x'), kept('d', 'x')]
  const made = withRoomFor(before, kept('e', 'x'), 0, ROOM)
  t.same(
    made?.entries.map(({ id }) => id),
    ['a', 'c', 'd', 'e'],
  )
  t.same(
    made?.dropped.map(({ id }) => id),
    ['b'],
  )
  t.same(withRoomFor(before, kept('e', 'x', 5, 300), 200, ROOM)?.dropped, [])
  t.same(withRoomFor(before, kept('c', 'x'), 0, ROOM)?.dropped, [], 'kept again')
  t.equal(withRoomFor([], kept('e', 'x', 26), 0, ROOM), undefined)
})
