/**
 * Many callers of four principals, of both eras, at one group of two servers with the same tools, both of which ask: one of each
 * era. Whatever arrives at a caller is its own, and each call runs at the server that it names, and once.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { startBridgeProcess } from '../support/bridge-process.js'
import { until } from '../support/eventually.js'
import { temporaryFolder } from '../support/folder.js'
import { startFixture } from '../support/process.js'
import { isGivenUp, Storm, tokenOf } from '../support/storm.js'

const TOTAL = Number(process.env['GROUP_CALLS'] ?? 5_000)
/** Milliseconds after which no more calls are made, on a machine that has other things to do. */
const AT_MOST = Math.max(140_000, TOTAL * 5)
const PRINCIPALS = ['alice', 'bob', 'carol', 'dave']
/** The scripts of the servers, by name. */
const SERVERS = { old: 'legacy-http.mjs', new: 'modern-http.mjs' }

t.test(`${TOTAL} calls of ${PRINCIPALS.length} principals at two servers with the same tools`, async (t) => {
  const folder = temporaryFolder(t)
  const servers = Object.entries(SERVERS).map(([name, script]) => ({ name, script, file: join(folder, name) }))
  const started = await Promise.all(
    servers.map(async ({ name, script, file }) => {
      const { url } = await startFixture(t, script, JSON.stringify({ asks: true, executions: file }))
      return [name, { url }] as const
    }),
  )
  const { urls, busy } = await startBridgeProcess(t, {
    listen: 'http://127.0.0.1:0/mcp',
    mcpServers: Object.fromEntries(started),
    auth: { tokens: Object.fromEntries(PRINCIPALS.map((who) => [who, tokenOf(who)])) },
  })
  const url = new URL('/mcp', urls['old']).href
  const places = servers.map(({ name }) => ({ name: `${name}__`, uri: `${name}+` }))
  const storm = new Storm({ url, principals: PRINCIPALS, calls: TOTAL, places })
  const { made, answered, asked, wrong, updates } = await storm.run(AT_MOST)
  t.same(wrong, [], 'everybody got their own')
  t.equal(answered, made.length)
  if (made.length < TOTAL) t.comment(`${made.length} of ${TOTAL} calls were made in time`)
  for (const who of PRINCIPALS) t.ok((updates.get(who) ?? 0) > 0, `${who} hears of what changes`)
  await until(async () => (await busy()) === 0, 'the end of all calls')

  const asking = made.filter(({ kind }) => kind === 'ask')
  t.ok(asked >= asking.length, `${asked} questions were asked by ${asking.length} calls`)
  for (const [place, { name, file }] of servers.entries()) {
    const executed = readFileSync(file, 'utf8').split('\n').filter(Boolean)
    const times = new Map<string, number>()
    for (const canary of executed) times.set(canary, (times.get(canary) ?? 0) + 1)
    const theirs = made.filter((one) => one.place === place)
    t.same([...times].filter(([, count]) => count > 1).slice(0, 3), [], `${name}: nothing ran twice`)
    const elsewhere = made.filter((one) => one.place !== place && times.has(one.canary))
    t.same(elsewhere.slice(0, 3), [], `${name}: no call of the other server ran there`)
    const whole = theirs.filter(({ kind }) => !isGivenUp(kind) && kind !== 'touch')
    const lacking = whole.filter(({ canary }) => !times.has(canary))
    t.same(lacking.slice(0, 3), [], `${name}: all ${whole.length} calls that nobody gave up ran`)
  }
})
