/** A file that fails after its tests have been named (tests.test.ts). */
import t from 'tap'

t.test('this one passes', async (t) => t.ok(true))
throw new Error('thrown by the file itself')
