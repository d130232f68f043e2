/** Which calls the inspector records, if many come. */
import t from 'tap'
import { CallNumbers } from '../../src/inspector/recorder/call-numbers.js'
import { UNRECORDED } from '../../src/mcp/ports/recorder.js'
import { until } from '../support/eventually.js'

t.test('numbers a bounded count of calls per second, and all other requests', async (t) => {
  const numbers = new CallNumbers(2, () => {})
  const at = (now: number, method = 'tools/call') => numbers.next(method, now)
  t.same([at(0), at(1), at(2), at(999)], [1, 2, UNRECORDED, UNRECORDED])
  t.same([at(999, 'initialize'), at(999, 'tools/list')], [3, 4])
  t.equal(numbers.further(), 5)
  t.same([at(1_000), at(1_500), at(1_999), at(2_000)], [6, 7, UNRECORDED, 8])
})

t.test('skipped calls are counted when they have ended, once a second', async (t) => {
  const counts: number[] = []
  const numbers = new CallNumbers(1, (count) => counts.push(count))
  for (let i = 0; i < 4; i++) numbers.skip()
  t.same(counts, [])
  await until(() => counts.length > 0, 'the count')
  t.same(counts, [4])
  for (let i = 0; i < 2; i++) numbers.skip()
  await until(() => counts.length > 1, 'another count')
  t.same(counts, [4, 2])
})
