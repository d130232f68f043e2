/** How principals share a bound, and which idle places end to make room. Names that begin with H are attacks. */
import fc from 'fast-check'
import t from 'tap'
import { Bound } from '../../src/base/limits/bound.js'
import { Occupancy, type Occupant } from '../../src/base/limits/occupancy.js'
import { faultOf } from '../support/faults.js'

interface Room extends Occupant {
  idleSince: number | undefined
  isSpare?: boolean
  ended: boolean
}

function start({ max = 8, share = 0.5 }: { max?: number; share?: number } = {}) {
  const occupancy = new Occupancy(new Bound({ max, share }), 'sessions')
  let clock = 0
  const enter = (principal: string, idle = true, idleLimit?: number): Room => {
    const room: Room = {
      principal,
      idleSince: idle ? ++clock : undefined,
      idleLimit,
      ended: false,
      end: () => {
        room.ended = true
      },
    }
    occupancy.enter(room)
    return room
  }
  const many = (count: number, principal: string, idle = true) =>
    Array.from({ length: count }, () => enter(principal, idle))
  const open = (rooms: readonly Room[]) => rooms.filter(({ ended }) => !ended).length
  return { occupancy, enter, many, open }
}

t.test(
  'idle occupants make room for new ones: those of the largest holder first, the longest idle first',
  async (t) => {
    const { enter, many, open, occupancy } = start()
    const greedy = many(4, 'greedy')
    const modest = [...many(2, 'modest'), enter('one'), enter('another')]
    t.equal(occupancy.used, 8)
    enter('newcomer')
    t.same(
      greedy.map(({ ended }) => ended),
      [true, false, false, false],
    )
    enter('newest')
    t.equal(open(greedy), 2)
    t.equal(open(modest), 4)
    enter('last')
    t.equal(open([...greedy, ...modest]), 5, 'where nobody has more than another, the oldest of all')
    t.ok(greedy[2]?.ended)
  },
)

t.test('beyond its share, a principal ends its own idle occupants, even if there is room', async (t) => {
  const { enter, many, open, occupancy } = start()
  const mine = many(4, 'greedy')
  t.equal(open(mine), 4)
  enter('greedy')
  t.ok(mine[0]?.ended)
  t.equal(occupancy.used, 4)
})

t.test('refuses a principal that uses all of its share, and admits others', async (t) => {
  const { enter, many, occupancy } = start()
  many(4, 'greedy', false)
  t.match(
    faultOf(() => enter('greedy')),
    {
      fault: 'rateLimited',
      status: 429,
      retryAfter: 1,
      message: 'This caller already uses its share of the 8 sessions',
    },
  )
  many(2, 'modest', false)
  t.equal(occupancy.used, 6)
})

t.test('beyond its share, a principal ends idle occupants of a larger holder', async (t) => {
  const { enter, many, open } = start({ max: 9 })
  const hoarded = many(4, 'hoarder')
  const busy = many(2, 'busy', false)
  t.equal(open([enter('busy', false), ...busy]), 3, 'more than half of what the other leaves')
  t.equal(open(hoarded), 4, 'there is room')
  t.match(
    faultOf(() => enter('busy')),
    { fault: 'rateLimited' },
    'but not more than the other has',
  )
})

t.test('without an idle occupant there is no room', async (t) => {
  const { enter, many } = start({ max: 2 })
  many(1, 'a', false)
  many(1, 'b', false)
  t.match(
    faultOf(() => enter('c')),
    { fault: 'overloaded', status: 503, retryAfter: 1, message: 'All 2 sessions are in use' },
  )
})

t.test('a lone principal may use the whole bound, and its longest idle occupant ends first', async (t) => {
  const { enter, many } = start({ share: 1 })
  const mine = many(8, 'a')
  const [first, second] = mine
  if (first) first.idleSince = performance.now()
  enter('a')
  t.same([first?.ended, second?.ended], [false, true])
})

t.test('an occupant that was idle for its limit ends, and is released once', async (t) => {
  const { enter, occupancy } = start()
  const [short, long, busy] = [enter('a', true, 10), enter('a', true), enter('b', false, 0)]
  short.idleSince = performance.now() - 10
  occupancy.endIdle()
  t.same(
    [short, long, busy].map(({ ended }) => ended),
    [true, false, false],
  )
  occupancy.leave(short)
  t.equal(occupancy.used, 2)
})

t.test('a newcomer ends the spares of its principal, and nothing that is in use or of others', async (t) => {
  const { enter, occupancy } = start()
  const rooms = [enter('a'), enter('a', false), enter('b'), enter('b')]
  const [spare, , other, newer] = rooms as [Room, Room, Room, Room]
  for (const room of [spare, other, newer]) room.isSpare = true
  const ended = () => rooms.map((room) => room.ended)
  occupancy.endIdleOf('b')
  t.same(ended(), [false, false, true, false], 'one spare of a principal stays, the newest one')
  enter('a')
  t.same(ended(), [true, false, true, false])
  t.equal(occupancy.used, 3)
})

t.test('whatever a principal does, it ends no occupant of principals that hold less', async () => {
  const step = fc.record({ principal: fc.constantFrom('a', 'b', 'c'), idle: fc.boolean() })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), fc.integer({ min: 3, max: 20 }), (steps, max) => {
      const { occupancy, enter } = start({ max })
      const rooms: Room[] = []
      for (const { principal, idle } of steps) {
        const held = (who: string) => rooms.filter((room) => room.principal === who && !room.ended).length
        const before = new Map(['a', 'b', 'c'].map((who) => [who, held(who)]))
        const count = (who: string) => before.get(who) ?? 0
        try {
          rooms.push(enter(principal, idle))
        } catch {
          continue
        }
        for (const who of ['a', 'b', 'c']) {
          if (who !== principal && held(who) < count(who) && count(who) < count(principal) + 1) return false
        }
        if (occupancy.used > max || occupancy.used !== rooms.filter(({ ended }) => !ended).length) return false
      }
      return true
    }),
  )
})
