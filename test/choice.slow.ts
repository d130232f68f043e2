/** Nothing that is hidden is named at a server: between the clients and servers that choice.test.ts leaves out. */
import t from 'tap'
import { testChoice } from './support/choice-pairs.js'

testChoice(t, 'rest')
