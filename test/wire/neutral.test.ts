/** What has nothing to do with the wire does not change it (matrix/neutral.ts): for two pairs, and each option. */
import t from 'tap'
import { testNeutral } from '../matrix/neutral.js'

testNeutral(t, 'quick')
