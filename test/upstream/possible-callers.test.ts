/** Whose calls may still be running in a server that several callers share. */
import t, { type Test } from 'tap'
import { ANONYMOUS } from '../../src/protocol/call.js'
import { GRACE, PossibleCallers } from '../../src/upstream/possible-callers.js'

/** A clock that the test advances. */
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

t.test('two callers count as two until the calls of one have been over for a while', async (t) => {
  const clock = clockOf(t)
  const possibleCallers = new PossibleCallers()
  possibleCallers.begin(1, 'alice')
  possibleCallers.begin(2, 'alice')
  t.equal(possibleCallers.isSingle, true)
  possibleCallers.begin(3, 'bob')
  t.equal(possibleCallers.isSingle, false)
  possibleCallers.end(3, 'bob', true)
  clock.pass(GRACE.answered - 1)
  t.equal(possibleCallers.isSingle, false)
  clock.pass(1)
  t.equal(possibleCallers.isSingle, true)
  possibleCallers.end(1, 'alice', true)
  possibleCallers.end(2, 'alice', true)
  possibleCallers.begin(4, 'bob')
  t.equal(possibleCallers.isSingle, false)
})

t.test('a cancelled call counts as running until its late answer, or for a bounded time', async (t) => {
  const clock = clockOf(t)
  const possibleCallers = new PossibleCallers()
  for (const id of [1, 2]) {
    possibleCallers.begin(id, 'alice')
    possibleCallers.end(id, 'alice', false)
  }
  possibleCallers.begin(3, 'bob')
  clock.pass(GRACE.answered * 2)
  possibleCallers.answeredLate(1)
  possibleCallers.answeredLate(1)
  clock.pass(GRACE.answered)
  t.equal(possibleCallers.isSingle, false, 'there is another')
  possibleCallers.answeredLate(2)
  t.equal(possibleCallers.isSingle, false, 'it may log still')
  clock.pass(GRACE.answered)
  t.equal(possibleCallers.isSingle, true)

  possibleCallers.begin(4, 'carol')
  possibleCallers.end(4, 'carol', false)
  clock.pass(GRACE.givenUp - 1)
  t.equal(possibleCallers.isSingle, false)
  clock.pass(1)
  t.equal(possibleCallers.isSingle, true)
})

t.test('without known callers, each call may be of another one', async (t) => {
  const clock = clockOf(t)
  const possibleCallers = new PossibleCallers()
  possibleCallers.begin(1, ANONYMOUS)
  t.equal(possibleCallers.isSingle, true)
  possibleCallers.begin(2, ANONYMOUS)
  t.equal(possibleCallers.isSingle, false)
  possibleCallers.end(1, ANONYMOUS, true)
  clock.pass(GRACE.answered)
  t.equal(possibleCallers.isSingle, true)
})

t.test('running calls are not forgotten, however many there have been', async (t) => {
  const clock = clockOf(t)
  const possibleCallers = new PossibleCallers()
  possibleCallers.begin(0, 'alice')
  possibleCallers.end(0, 'alice', false)
  for (let id = 1; id <= 5_000; id++) {
    possibleCallers.begin(id, `caller ${id}`)
    possibleCallers.end(id, `caller ${id}`, true)
  }
  clock.pass(GRACE.answered)
  possibleCallers.begin(5_001, 'bob')
  t.equal(possibleCallers.isSingle, false, 'the first was given up')
  clock.pass(GRACE.givenUp)
  t.equal(possibleCallers.isSingle, true)
})
