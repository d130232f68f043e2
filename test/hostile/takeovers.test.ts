/** A program is taken over by clients of the same principal only, whatever becomes of programs and the bridge meanwhile. */
import t from 'tap'
import { LANES } from '../support/lanes.js'
import { runTakeovers } from '../support/takeovers.js'

const CALLS = 1_000

for (const [lane, entry] of Object.entries(LANES))
  t.test(`${lane}: a program that remembers its clients meets those of one principal only`, async (t) => {
    const came = await runTakeovers(t, { calls: CALLS, entry })
    t.comment(JSON.stringify(came))
    t.same(came.crossings, [])
    t.ok(came.answered > CALLS / 2)
    t.ok(came.killed > 0)
    t.ok(came.programs < came.clients / 2, 'most clients have taken a program over')
  })
