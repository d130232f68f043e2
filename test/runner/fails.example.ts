/** A file with a test that fails (tests.test.ts). */
import t from 'tap'

t.test('this one passes', async (t) => t.ok(true))
t.test('this one fails', async (t) => t.equal(1 + 1, 3, 'a sum that is wrong'))
