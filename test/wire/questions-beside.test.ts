/**
 * Questions of legacy servers that belong to no call of their legacy client, in each way and at each place once
 * (support/questions-beside.ts), and questions of a call that are withdrawn.
 */
import t from 'tap'
import { testBeside, testWithdrawn } from '../support/questions-beside.js'

testBeside(t, 'some')
testWithdrawn(t)
