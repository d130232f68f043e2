/** A pool of sessions: all calls of a key share one, or each call has one for itself. */
import t, { type Test } from 'tap'
import { Fault } from '../../src/base/fault/fault.js'
import { Bound } from '../../src/base/limits/bound.js'
import { Occupancy } from '../../src/base/limits/occupancy.js'
import { Pooled, SessionPool } from '../../src/servers/legacy/pool.js'

/** The members of a session that a pool uses. */
class Fake extends Pooled {
  readonly name: number
  alive = true
  closed = false
  canBeTakenOver = true
  readonly changeFeed = {
    wanted: [] as string[],
    kept: [] as string[],
    async keep(uris: readonly string[]) {
      this.kept.push(...uris)
    },
  }

  constructor(name: number) {
    super()
    this.name = name
  }

  async takeOver() {
    return this.alive
  }

  async close() {
    this.closed = true
  }
}

function start(t: Test, { max = 100 }: { max?: number } = {}) {
  const occupancy = new Occupancy(new Bound({ max }), 'sessions with the server')
  const pool = new SessionPool<Fake>({ occupancy, idleLimit: () => 0, isSpare: () => false })
  t.teardown(() => pool.close(true))
  const opened: Fake[] = []
  let failing = false
  const open = async () => {
    await new Promise((resolve) => setImmediate(resolve))
    if (failing) throw new Fault('upstreamUnavailable', 'No')
    const session = new Fake(opened.length)
    opened.push(session)
    return session
  }
  const nameOf = ({ name }: Fake) => name
  return {
    pool,
    occupancy,
    opened,
    nameOf,
    unused: async (key = 'k') => pool.acquireUnused({ key, principal: 'p' }, open),
    shared: async (key = 'k') => pool.acquire({ key, principal: 'p' }, open),
    fail: (does: boolean) => {
      failing = does
    },
  }
}

t.test('all calls with one key share one session, opened once', async (t) => {
  const { shared, nameOf, opened } = start(t)
  const used = await Promise.all([shared(), shared(), shared(), shared('other')])
  t.same(used.map(nameOf), [0, 0, 0, 1])
  t.equal(opened.length, 2)
})

t.test('exclusive calls have one session each, and reuse it one after the other', async (t) => {
  const { unused, shared, nameOf, opened } = start(t)
  for (let n = 0; n < 3; n++) {
    const session = await unused()
    t.equal(nameOf(session), 0)
    session.unuse()
  }
  const used = await Promise.all([unused(), unused(), unused()])
  t.same(used.map(nameOf).sort(), [0, 1, 2])
  t.equal(nameOf(await shared()), 0, 'others stay with the first')
  for (const session of used) session.unuse()
  t.equal(nameOf(await unused()), 1, 'the first one is in use')
  t.equal(opened.length, 3)
})

t.test('a session is in use while any call holds it', async (t) => {
  const { unused, nameOf, occupancy, opened } = start(t)
  const session = await unused()
  session.use()
  session.unuse()
  occupancy.endIdle()
  t.notOk(opened[0]?.closed)
  t.equal(nameOf(await unused()), 1)
  session.unuse()
  occupancy.endIdle()
  t.ok(opened[0]?.closed)
  t.equal(occupancy.used, 1)
})

t.test('a session that cannot be opened occupies no place', async (t) => {
  const { shared, nameOf, fail, occupancy } = start(t, { max: 2 })
  fail(true)
  for (let n = 0; n < 10; n++) await t.rejects(shared(String(n)), { message: 'No' })
  t.equal(occupancy.used, 0)
  fail(false)
  t.equal(nameOf(await shared()), 0)
})

t.test('a broken session is given to no further call, and ends with the last that uses it', async (t) => {
  const { shared, nameOf, opened, occupancy, pool } = start(t)
  const one = await shared()
  one.use()
  one.discard()
  t.equal(nameOf(await shared()), 1)
  one.unuse()
  t.notOk(opened[0]?.closed)
  t.equal(occupancy.used, 2, 'until then it counts')
  one.unuse()
  t.ok(opened[0]?.closed)
  t.equal(occupancy.used, 1)
  const third = await shared('third')
  third.unuse()
  if (opened[2]) opened[2].alive = false
  pool.forgetDead()
  t.equal(occupancy.used, 1, 'one that has ended by itself counts no longer')
})

t.test('idle sessions make room, and with all in use there is none', async (t) => {
  const { shared, nameOf, opened } = start(t, { max: 3 })
  const used = await Promise.all(['a', 'b', 'c'].map((key) => shared(key)))
  await t.rejects(shared('d'), { fault: 'overloaded', message: 'All 3 sessions with the server are in use' })
  used[1]?.unuse()
  t.equal(nameOf(await shared('d')), 3)
  t.ok(opened[1]?.closed)
})

t.test('restores the subscriptions of a session in its replacement before its first use', async (t) => {
  const { shared, opened } = start(t)
  const lost = await shared()
  if (opened[0]) opened[0].changeFeed.wanted = ['a', 'b']
  lost.discard()
  const next = await shared()
  t.same(opened[1]?.changeFeed.kept, ['a', 'b'])
  if (opened[1]) Object.assign(opened[1], { alive: false }).changeFeed.wanted = ['c']
  next.unuse()
  const third = await shared()
  t.same(opened[2]?.changeFeed.kept, ['c'])
  third.discard()
  await shared()
  t.same(opened[3]?.changeFeed.kept, [], 'once is enough')
})
