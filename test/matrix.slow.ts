/** Every client with every server: the pairs that matrix.test.ts leaves out. */
import t from 'tap'
import { testPairs } from './matrix/test-pairs.js'

testPairs(t, 'rest')
