/** Many calls of short clients of four principals: nobody gets a program of another principal. */
import t from 'tap'
import { PRINCIPALS, runTakeovers } from '../support/takeovers.js'

const CALLS = Number(process.env['TAKEOVER_CALLS'] ?? 20_000)
/** Milliseconds after which no more clients come, on a machine that has other things to do. */
const AT_MOST = Math.max(100_000, CALLS * 5)

for (const [lane, entry] of [
  ['direct sessions', {}],
  ['sessions of the bridge', { tools: { deny: ['no'] } }],
] as const)
  t.test(
    `${CALLS / 2} calls of ${PRINCIPALS.length} principals in ${lane}, whose programs are taken over`,
    async (t) => {
      const came = await runTakeovers(t, { calls: CALLS / 2, entry, atMost: AT_MOST / 2 })
      t.comment(JSON.stringify(came))
      t.same(came.crossings, [])
      t.ok(came.answered > 0)
      t.ok(came.programs < came.clients / 2, 'most clients have taken a program over')
    },
  )
