/** Results of tools that are cut, between the clients and servers that cut.test.ts leaves out. */
import t from 'tap'
import { testCut } from '../support/cut.js'

testCut(t, 'rest')
