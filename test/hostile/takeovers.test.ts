/**
 * A program is taken over by clients of the same principal only, whatever becomes of programs and the bridge meanwhile. In the
 * usual lane; the others are in takeovers.slow.ts.
 */
import t from 'tap'
import { LANES } from '../support/lanes.js'
import { testTakeovers } from '../support/takeovers.js'

for (const [lane, entry] of Object.entries(LANES).slice(0, 1)) testTakeovers(t, lane, entry)
