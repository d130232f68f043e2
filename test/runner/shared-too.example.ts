/** A file that shares its process (tests.test.ts). */
import t from 'tap'
import { claimProcess } from './claim.js'

t.test('somebody may have been here before', async (t) => t.comment(`claim ${claimProcess()}`))
