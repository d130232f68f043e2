/** Sessions that are lent: to many at once, or to one call alone. */
import t, { type Test } from 'tap'
import { Fault } from '../../src/protocol/fault.js'
import { type Lease, SessionPool } from '../../src/upstream/pool.js'
import type { LegacySession } from '../../src/upstream/session.js'

/** As much of a session as a pool knows of it. */
interface Fake {
  name: number
  alive: boolean
  closed: boolean
  lastUsed: number
  watching: { wanted: string[]; kept: string[]; keep(uris: string[]): Promise<void> }
}

function start(t: Test, { max = 100 }: { max?: number } = {}) {
  const pool = new SessionPool({ max, idle: 60_000 })
  t.teardown(() => pool.close(true))
  const opened: Fake[] = []
  let failing = false
  const open = async () => {
    await new Promise((resolve) => setImmediate(resolve))
    if (failing) throw new Fault('upstreamUnavailable', 'No')
    const watching: Fake['watching'] = {
      wanted: [],
      kept: [],
      async keep(uris) {
        watching.kept.push(...uris)
      },
    }
    const session: Fake = { name: opened.length, alive: true, closed: false, lastUsed: performance.now(), watching }
    opened.push(session)
    return Object.assign(session, {
      async close() {
        session.closed = true
      },
    }) as unknown as LegacySession
  }
  const nameOf = ({ session }: Lease) => (session as unknown as Fake).name
  return {
    pool,
    opened,
    nameOf,
    alone: (key = 'k') => pool.acquireAlone(key, open),
    shared: (key = 'k') => pool.acquire(key, open),
    fail: (does: boolean) => {
      failing = does
    },
  }
}

t.test('calls one after the other have one session, calls at the same time one each', async (t) => {
  const { alone, shared, nameOf, opened } = start(t)
  for (let n = 0; n < 3; n++) {
    const lease = await alone()
    t.equal(nameOf(lease), 0)
    lease.release()
    lease.release()
  }
  const leases = await Promise.all([alone(), alone(), alone()])
  t.same(leases.map(nameOf).sort(), [0, 1, 2])
  t.equal(nameOf(await shared()), 0, 'what cannot be asked anything stays with the first')
  t.equal(nameOf(await alone('other')), 3, 'and others have others')
  for (const lease of leases) lease.release()
  t.equal(nameOf(await alone()), 0, 'the first one again, if it is to be had')
  t.equal(nameOf(await alone()), 1)
  t.equal(opened.length, 4)
})

t.test('a session that is opened for two at once is opened for each', async (t) => {
  const { alone, nameOf, opened } = start(t)
  const leases = await Promise.all([alone(), alone()])
  t.equal(opened.length, 2)
  t.not(...(leases.map(nameOf) as [number, number]))
})

t.test('a session is alone for as long as anybody has a hold on it who had it alone', async (t) => {
  const { alone, nameOf } = start(t)
  const lease = await alone()
  const held = lease.share()
  lease.release()
  const other = await alone()
  t.equal(nameOf(other), 1)
  held.release()
  t.equal(nameOf(await alone()), 0)
  const kept = other.keep()
  other.release()
  t.equal(nameOf(await alone()), 1, 'what is only kept is for others to have')
  kept.release()
  kept.release()
  t.equal(nameOf(await alone()), 2)
})

t.test('where there are as many as there may be, calls wait, first come first served', async (t) => {
  const { alone, nameOf, opened } = start(t)
  const leases = await Promise.all(Array.from({ length: 8 }, () => alone()))
  const got: string[] = []
  const waiting = ['a', 'b', 'c'].map(async (name) => {
    const lease = await alone()
    got.push(`${name} has ${nameOf(lease)}`)
    return lease
  })
  await new Promise((resolve) => setTimeout(resolve, 20))
  t.same(got, [])
  for (const [at, n] of [5, 2, 7].entries()) {
    leases.find((lease) => nameOf(lease) === n)?.release()
    await waiting[at]
  }
  t.same(got, ['a has 5', 'b has 2', 'c has 7'])
  t.equal(opened.length, 8)
})

t.test('a session that cannot be opened holds up nobody', async (t) => {
  const { alone, nameOf, fail, opened } = start(t)
  fail(true)
  for (let n = 0; n < 10; n++) await t.rejects(alone(), { message: 'No' })
  fail(false)
  const leases = await Promise.all(Array.from({ length: 8 }, () => alone()))
  t.equal(new Set(leases.map(nameOf)).size, 8)
  t.equal(opened.length, 8)
})

t.test('a session that is broken is nobody’s any more, and ends with the last that had it', async (t) => {
  const { alone, nameOf, opened } = start(t)
  const [one, two] = [await alone(), await alone()]
  const held = one.share()
  one.discard()
  t.equal(nameOf(await alone()), 2)
  one.release()
  t.notOk(opened[0]?.closed)
  held.release()
  t.ok(opened[0]?.closed)
  if (opened[1]) opened[1].alive = false
  t.equal(nameOf(await alone()), 3)
  two.release()
  t.ok(opened[1]?.closed)
})

t.test('a broken session makes room for who waits', async (t) => {
  const { alone, nameOf } = start(t)
  const leases = await Promise.all(Array.from({ length: 8 }, () => alone()))
  const waiting = alone()
  leases[3]?.discard()
  leases[3]?.release()
  t.equal(nameOf(await waiting), 8)
})

t.test('sessions beside one another count like any, and what nobody uses makes room', async (t) => {
  const { alone, shared, nameOf, opened } = start(t, { max: 3 })
  const leases = await Promise.all([alone(), alone(), alone()])
  await t.rejects(alone(), { message: /in use/ })
  await t.rejects(shared('other'), { message: /in use/ })
  leases[1]?.release()
  t.equal(nameOf(await shared('other')), 3)
  t.ok(opened.find(({ name }) => name === nameOf(leases[1] as Lease))?.closed)
})

t.test(
  '42 what was subscribed to in a session is, in the one that takes its place, before anybody has it',
  async (t) => {
    const { shared, alone, opened } = start(t)
    const lost = await shared()
    if (opened[0]) opened[0].watching.wanted = ['a', 'b']
    lost.discard()
    const next = await shared()
    t.same(opened[1]?.watching.kept, ['a', 'b'])
    if (opened[1]) Object.assign(opened[1], { alive: false }).watching.wanted = ['c']
    next.release()
    await alone()
    t.same(opened[2]?.watching.kept, ['c'])
    await alone()
    t.same(opened[3]?.watching.kept, [], 'one of them is enough')
  },
)
