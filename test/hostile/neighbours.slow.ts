/** Calls take turns with large answers of others: from the servers and in the places that neighbours.test.ts leaves out. */
import t from 'tap'
import { testNeighbours } from '../support/neighbours.js'

testNeighbours(t, 'rest')
