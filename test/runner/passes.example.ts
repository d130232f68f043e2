/** A file of tests that pass (tests.test.ts). */
import t from 'tap'

t.test('one', async (t) => t.ok(true))
t.test('two', async (t) => t.same([1, 2], [1, 2]))
