/** What has nothing to do with the wire does not change it (matrix/neutral.ts): between the pairs that neutral.test.ts leaves out. */
import t from 'tap'
import { testNeutral } from '../matrix/neutral.js'

testNeutral(t, 'slow')
