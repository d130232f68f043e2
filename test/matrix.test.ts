/** Each client with a server, and each server with a client (matrix/test-pairs.ts); with MATRIX_RECORDING all pairs (matrix/recording.ts). */
import t from 'tap'
import { testPairs } from './matrix/test-pairs.js'

const file = process.env['MATRIX_RECORDING']

testPairs(t, file === undefined ? 'some' : 'all', file)
