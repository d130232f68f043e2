/** Many calls of short clients of four principals: nobody gets a program of another principal. */
import t from 'tap'
import { LANES } from '../support/lanes.js'
import { PRINCIPALS, runTakeovers } from '../support/takeovers.js'

const CALLS = Number(process.env['TAKEOVER_CALLS'] ?? 20_000)
/** Milliseconds after which no more clients come, on a machine that has other things to do. */
const AT_MOST = Math.max(100_000, CALLS * 5)

const lanes = Object.entries(LANES)
const share = CALLS / lanes.length

for (const [lane, entry] of lanes)
  t.test(
    `${Math.round(share)} calls of ${PRINCIPALS.length} principals in ${lane}, whose programs are taken over`,
    async (t) => {
      const came = await runTakeovers(t, { calls: share, entry, atMost: AT_MOST / lanes.length })
      t.comment(JSON.stringify(came))
      t.same(came.crossings, [])
      t.ok(came.answered > 0)
      t.ok(came.programs < came.clients / 2, 'most clients have taken a program over')
    },
  )
