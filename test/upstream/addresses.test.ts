/** Which address of a server gets a call: the less busy one of two, and none that rests. */
import t from 'tap'
import { type AddressState, choose, failed, REST, RESTS_AFTER, succeeded, tried } from '../../src/servers/addresses.js'

const address = (state: Partial<AddressState> = {}): AddressState => ({
  calls: 0,
  sessions: 0,
  failures: 0,
  restsUntil: 0,
  leaves: false,
  ...state,
})

/** Numbers that come one after the other in place of chance. */
function chance(...numbers: number[]): () => number {
  return () => numbers.shift() ?? 0
}

t.test('of two addresses that chance picks, the one with fewer calls and sessions is taken', async (t) => {
  const all = [address({ calls: 3 }), address({ calls: 1, sessions: 1 }), address({ sessions: 5 })] as const
  for (const first of [0, 0.4, 0.9])
    for (const second of [0, 0.9]) {
      const taken = choose(all, { now: 1, random: chance(first, second) })
      t.not(taken, all[2], 'the busiest is never the less busy one of two')
    }
  t.equal(choose(all, { now: 1, random: chance(0, 0.9) }), all[0], 'the first and the last')
  t.equal(choose([all[2]], { now: 1, random: chance(0.99, 0.99) }), all[2], 'the only one')
  t.equal(choose([], { now: 1 }), undefined)
})

t.test('equal addresses are all taken', async (t) => {
  const all = Array.from({ length: 5 }, () => address())
  const taken = new Set(Array.from({ length: 200 }, () => choose(all, { now: 1 })))
  t.equal(taken.size, 5)
})

t.test('an address that has left gets nothing, and neither does one that rests while another one can', async (t) => {
  const [left, resting, able] = [address({ leaves: true }), address({ restsUntil: 10 }), address({ calls: 9 })]
  for (let n = 0; n < 20; n++) t.equal(choose([left, resting, able], { now: 9 }), able)
  t.equal(choose([left, resting], { now: 9 }), resting, 'rather than nothing')
  t.equal(choose([left, address({ restsUntil: 11 }), resting], { now: 9 }), resting, 'which rests the least')
  t.equal(choose([left], { now: 9 }), undefined)
})

t.test(
  'an address rests after three failures, longer after each trial that fails, and works at once when one does',
  async (t) => {
    const one = address()
    for (let n = 1; n < RESTS_AFTER; n++) {
      t.notOk(tried(one, 0))
      t.notOk(failed(one, 0, false))
      t.equal(one.restsUntil, 0)
    }
    t.ok(failed(one, 0, false))
    t.equal(one.restsUntil, REST.first)
    t.notOk(failed(one, 10, false), 'a call that was sent before does not make it longer')
    t.equal(one.restsUntil, REST.first)

    t.notOk(tried(one, REST.first - 1), 'no trial while it rests')
    let now = REST.first
    for (let rest = REST.first; rest < REST.most; rest *= 2) {
      t.ok(tried(one, now), 'the trial')
      t.ok(one.restsUntil > now, 'during which it gets nothing else')
      t.notOk(tried(one, now))
      t.ok(failed(one, now, true))
      t.equal(one.restsUntil, now + Math.min(rest * 2, REST.most))
      now = one.restsUntil
    }
    t.ok(tried(one, now))
    succeeded(one)
    t.strictSame(one, address())
  },
)
