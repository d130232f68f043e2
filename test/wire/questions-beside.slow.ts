/** Questions of legacy servers that belong to no call: the ways and places that questions-beside.test.ts leaves out. */
import t from 'tap'
import { testBeside } from '../support/questions-beside.js'

testBeside(t, 'rest')
