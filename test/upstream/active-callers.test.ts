/** Whose calls may still be running in a server that several callers share. */
import t, { type Test } from 'tap'
import { ANONYMOUS } from '../../src/mcp/protocol/call.js'
import { ActiveCallers, GRACE } from '../../src/servers/active-callers.js'

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
  const activeCallers = new ActiveCallers()
  activeCallers.begin(1, 'alice')
  activeCallers.begin(2, 'alice')
  t.equal(activeCallers.isSingle, true)
  activeCallers.begin(3, 'bob')
  t.equal(activeCallers.isSingle, false)
  activeCallers.end(3, 'bob', true)
  clock.pass(GRACE.answered - 1)
  t.equal(activeCallers.isSingle, false)
  clock.pass(1)
  t.equal(activeCallers.isSingle, true)
  activeCallers.end(1, 'alice', true)
  activeCallers.end(2, 'alice', true)
  activeCallers.begin(4, 'bob')
  t.equal(activeCallers.isSingle, false)
})

t.test('a cancelled call counts as running until its late answer, or for a bounded time', async (t) => {
  const clock = clockOf(t)
  const activeCallers = new ActiveCallers()
  for (const id of [1, 2]) {
    activeCallers.begin(id, 'alice')
    activeCallers.end(id, 'alice', false)
  }
  activeCallers.begin(3, 'bob')
  clock.pass(GRACE.answered * 2)
  activeCallers.answeredLate(1)
  activeCallers.answeredLate(1)
  clock.pass(GRACE.answered)
  t.equal(activeCallers.isSingle, false, 'there is another')
  activeCallers.answeredLate(2)
  t.equal(activeCallers.isSingle, false, 'it may log still')
  clock.pass(GRACE.answered)
  t.equal(activeCallers.isSingle, true)

  activeCallers.begin(4, 'carol')
  activeCallers.end(4, 'carol', false)
  clock.pass(GRACE.cancelled - 1)
  t.equal(activeCallers.isSingle, false)
  clock.pass(1)
  t.equal(activeCallers.isSingle, true)
})

t.test('without known callers, each call may be of another one', async (t) => {
  const clock = clockOf(t)
  const activeCallers = new ActiveCallers()
  activeCallers.begin(1, ANONYMOUS)
  t.equal(activeCallers.isSingle, true)
  activeCallers.begin(2, ANONYMOUS)
  t.equal(activeCallers.isSingle, false)
  activeCallers.end(1, ANONYMOUS, true)
  clock.pass(GRACE.answered)
  t.equal(activeCallers.isSingle, true)
})

t.test('running calls are not forgotten, however many there have been', async (t) => {
  const clock = clockOf(t)
  const activeCallers = new ActiveCallers()
  activeCallers.begin(0, 'alice')
  activeCallers.end(0, 'alice', false)
  for (let id = 1; id <= 5_000; id++) {
    activeCallers.begin(id, `caller ${id}`)
    activeCallers.end(id, `caller ${id}`, true)
  }
  clock.pass(GRACE.answered)
  activeCallers.begin(5_001, 'bob')
  t.equal(activeCallers.isSingle, false, 'the first was cancelled')
  clock.pass(GRACE.cancelled)
  t.equal(activeCallers.isSingle, true)
})
