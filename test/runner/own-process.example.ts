/**
 * A file that has a process of its own (tests.test.ts).
 *
 * Runs in its own process: it shows that it does.
 */
import t from 'tap'
import { claimProcess } from './claim.js'

t.test('nobody has been here before', async (t) => t.equal(claimProcess(), 1))
