/** Whose calls may be running in a server that several callers share. */
import t, { type Test } from 'tap'
import { ANONYMOUS } from '../../src/protocol/call.js'
import { GOES_ON, Presence } from '../../src/upstream/presence.js'

/** Time that passes when the test says so. */
function clockOf(t: Test): { pass(milliseconds: number): void } {
  let now = 1_000_000
  const { now: real } = performance
  performance.now = () => now
  t.teardown(() => {
    performance.now = real
  })
  return {
    pass: (milliseconds) => {
      now += milliseconds
    },
  }
}

t.test('H1 two callers count as two until the calls of one have been over for a while', async (t) => {
  const clock = clockOf(t)
  const presence = new Presence()
  presence.begin(1, 'alice')
  presence.begin(2, 'alice')
  t.equal(presence.isSingle, true)
  presence.begin(3, 'bob')
  t.equal(presence.isSingle, false)
  presence.end(3, 'bob', true)
  clock.pass(GOES_ON.answered - 1)
  t.equal(presence.isSingle, false)
  clock.pass(1)
  t.equal(presence.isSingle, true)
  presence.end(1, 'alice', true)
  presence.end(2, 'alice', true)
  presence.begin(4, 'bob')
  t.equal(presence.isSingle, false)
})

t.test('H1 a cancelled call counts as running until its late answer, or for a bounded time', async (t) => {
  const clock = clockOf(t)
  const presence = new Presence()
  for (const id of [1, 2]) {
    presence.begin(id, 'alice')
    presence.end(id, 'alice', false)
  }
  presence.begin(3, 'bob')
  clock.pass(GOES_ON.answered * 2)
  presence.answeredLate(1)
  presence.answeredLate(1)
  clock.pass(GOES_ON.answered)
  t.equal(presence.isSingle, false, 'there is another')
  presence.answeredLate(2)
  t.equal(presence.isSingle, false, 'it may log still')
  clock.pass(GOES_ON.answered)
  t.equal(presence.isSingle, true)

  presence.begin(4, 'carol')
  presence.end(4, 'carol', false)
  clock.pass(GOES_ON.givenUp - 1)
  t.equal(presence.isSingle, false)
  clock.pass(1)
  t.equal(presence.isSingle, true)
})

t.test('H1 without known callers, each call may be of another one', async (t) => {
  const clock = clockOf(t)
  const presence = new Presence()
  presence.begin(1, ANONYMOUS)
  t.equal(presence.isSingle, true)
  presence.begin(2, ANONYMOUS)
  t.equal(presence.isSingle, false)
  presence.end(1, ANONYMOUS, true)
  clock.pass(GOES_ON.answered)
  t.equal(presence.isSingle, true)
})

t.test('H1 running calls are not forgotten, however many there have been', async (t) => {
  const clock = clockOf(t)
  const presence = new Presence()
  presence.begin(0, 'alice')
  presence.end(0, 'alice', false)
  for (let id = 1; id <= 5_000; id++) {
    presence.begin(id, `caller ${id}`)
    presence.end(id, `caller ${id}`, true)
  }
  clock.pass(GOES_ON.answered)
  presence.begin(5_001, 'bob')
  t.equal(presence.isSingle, false, 'the first was given up')
  clock.pass(GOES_ON.givenUp)
  t.equal(presence.isSingle, true)
})
