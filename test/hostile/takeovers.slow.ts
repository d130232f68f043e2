/** A program is taken over by clients of the same principal only, in the lanes that takeovers.test.ts leaves out: each takes long. */
import t from 'tap'
import { LANES } from '../support/lanes.js'
import { testTakeovers } from '../support/takeovers.js'

for (const [lane, entry] of Object.entries(LANES).slice(1)) testTakeovers(t, lane, entry)
