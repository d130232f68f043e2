/** Slots for requests to an identity provider: who gets one, and in which order. */
import t, { type Test } from 'tap'
import { FairSlots } from '../../src/services/oauth/server/fair-slots.js'
import { until } from '../support/eventually.js'

const HOUR = 3_600_000
const none = () => new Error('none')

/** Slots, and clients that keep theirs until they are told to end. */
function setUp(t: Test, options: ConstructorParameters<typeof FairSlots>[0]) {
  const slots = new FairSlots({ patience: HOUR, ...options })
  const served: string[] = []
  const ends: (() => void)[] = []
  const enter = (name: string, from: string, isKnown = false) =>
    slots.use(
      { from, isKnown },
      () => {
        served.push(name)
        return new Promise<void>((resolve) => ends.push(resolve))
      },
      none,
    )
  let open = 0
  const counted: typeof enter = (...client) => {
    open++
    return enter(...client).finally(() => open--)
  }
  t.teardown(() =>
    until(() => {
      for (const end of ends.splice(0)) end()
      return open === 0
    }, 'the end of all'),
  )
  return { served, enter: counted, endNext: () => ends.shift()?.() }
}

t.test('one address cannot have all slots, and others are served at once', async (t) => {
  const { served, enter } = setUp(t, { max: 8 })
  for (let i = 0; i < 50; i++) enter(`flood ${i}`, 'a').catch(() => {})
  t.ok(served.length <= 4, `${served.length} slots`)
  enter('person', 'b').catch(() => {})
  t.equal(served.at(-1), 'person')
})

t.test('strangers from any number of addresses leave slots to those who are known', async (t) => {
  const { served, enter } = setUp(t, { max: 8 })
  for (let i = 0; i < 50; i++) enter(`flood ${i}`, `a${i}`).catch(() => {})
  t.equal(served.length, 6)
  enter('known', 'a1', true).catch(() => {})
  enter('known, too', 'b', true).catch(() => {})
  t.same(served.slice(6), ['known', 'known, too'])
})

t.test('who waits is served in turn: those who are known first, then one address after another', async (t) => {
  const { served, enter, endNext } = setUp(t, { max: 4 })
  for (const name of ['a1', 'a2', 'a3', 'b1', 'c1', 'k1', 'b2', 'c2', 'm1'])
    enter(name, name.slice(0, 1), /k|m/.test(name)).catch(() => {})
  t.same(served, ['a1', 'b1', 'c1', 'k1'])
  for (const next of ['m1', 'a2', 'b2', 'c2']) {
    const before = served.length
    endNext()
    await until(() => served.length > before, next)
    t.equal(served.at(-1), next)
  }
})

t.test('if too many wait, a client of the largest crowd is sent away for another one', async (t) => {
  const { served, enter } = setUp(t, { max: 2, maxWaiting: 4 })
  const refused: string[] = []
  const tryIt = (name: string, from: string, isKnown = false) =>
    enter(name, from, isKnown).catch((error: Error) => refused.push(`${name} ${error.message}`))
  for (let i = 0; i < 8; i++) tryIt(`a${i}`, 'a').catch(() => {})
  await until(() => refused.length === 3, 'the last ones of the address')
  t.same(refused, ['a5 none', 'a6 none', 'a7 none'])
  tryIt('b', 'b').catch(() => {})
  await until(() => refused.length === 4, 'one more')
  t.equal(refused[3], 'a4 none')
  t.same(served, ['a0'])
})

t.test('who gets no slot in time is refused, and takes none', async (t) => {
  const { enter, endNext, served } = setUp(t, { max: 2, patience: 10 })
  enter('one', 'a').catch(() => {})
  await t.rejects(enter('two', 'a'), { message: 'none' })
  endNext()
  enter('three', 'a').catch(() => {})
  await until(() => served.includes('three'), 'the next one')
  t.same(served, ['one', 'three'])
})

t.test('a slot is given back if the request fails', async (t) => {
  const slots = new FairSlots({ max: 1, patience: HOUR })
  const client = { from: 'a', isKnown: true }
  for (let i = 0; i < 3; i++)
    await t.rejects(
      slots.use(client, () => Promise.reject(new Error('no')), none),
      { message: 'no' },
    )
  t.equal(await slots.use(client, () => Promise.resolve(1), none), 1)
})
