/**
 * Many callers of three principals at once, on all lanes: whatever arrives at one of them is its own. A pipe has only one
 * principal, so that all clients here come over HTTP.
 */
import t, { type Test } from 'tap'
import { startBridgeProcess } from '../support/bridge-process.js'
import { until } from '../support/eventually.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { modernStdio } from '../support/modern-stdio.js'
import { startFixture } from '../support/process.js'
import { Storm, tokenOf } from '../support/storm.js'

const TOTAL = Number(process.env['ISOLATION_CALLS'] ?? 10_000)
/** Milliseconds after which no more calls are made, on a machine that has other things to do. */
const AT_MOST = 140_000
const PRINCIPALS = ['alice', 'bob', 'carol']

/** One server, and clients of both eras in front of it. */
interface Lane {
  name: string
  server: object
  /** Servers log in a process or session of each principal, so that logs have to arrive. */
  logs: boolean
}

async function lanesOf(t: Test): Promise<Lane[]> {
  const http = async (script: string, plan: object) => (await startFixture(t, script, JSON.stringify(plan))).url
  const legacyUrl = await http('legacy-http.mjs', { asks: true })
  return [
    { name: 'a legacy program', server: legacyStdio(t).server, logs: true },
    { name: 'a legacy program that is shared', server: { ...legacyStdio(t).server, session: 'shared' }, logs: false },
    { name: 'a legacy server over HTTP', server: { url: legacyUrl }, logs: true },
    { name: 'a legacy server over HTTP that is shared', server: { url: legacyUrl, session: 'shared' }, logs: false },
    { name: 'a modern program', server: modernStdio(t).server, logs: true },
    { name: 'a modern program that is shared', server: { ...modernStdio(t).server, session: 'shared' }, logs: false },
    { name: 'a modern server over HTTP', server: { url: await http('modern-http.mjs', {}) }, logs: true },
  ]
}

t.test(`${TOTAL} calls of ${PRINCIPALS.length} principals on all lanes: each gets its own answer`, async (t) => {
  const lanes = await lanesOf(t)
  const { urls, busy } = await startBridgeProcess(t, {
    listen: 'http://127.0.0.1:0/mcp',
    mcpServers: Object.fromEntries(lanes.map(({ server }, n) => [`lane-${n}`, server])),
    auth: { tokens: Object.fromEntries(PRINCIPALS.map((who) => [who, tokenOf(who)])) },
  })
  for (const [n, lane] of lanes.entries())
    await t.test(lane.name, async (t) => {
      const calls = Math.ceil(TOTAL / lanes.length)
      const storm = new Storm({ url: String(urls[`lane-${n}`]), principals: PRINCIPALS, calls })
      const { made, answered, wrong, logs, updates } = await storm.run(AT_MOST / lanes.length)
      t.same(wrong, [])
      t.equal(answered, made.length)
      if (made.length < calls) t.comment(`${made.length} of ${calls} calls were made in time`)
      for (const who of PRINCIPALS) {
        t.ok((updates.get(who) ?? 0) > 0, `${who} hears of what changes`)
        if (lane.logs) t.ok((logs.get(who) ?? 0) > 0, `${who} hears what is logged`)
      }
      await until(async () => (await busy()) === 0, 'the end of all calls')
    })
})
