/** Calls take turns with large answers of others (support/neighbours.ts): from each server, and in each place. */
import t from 'tap'
import { testNeighbours } from '../support/neighbours.js'

testNeighbours(t, 'some')
