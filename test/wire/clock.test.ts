/** The wall clock may be set at any time: nothing that lasts is measured by it. */
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { ADA, all, NAME, of, startAsker, talk } from '../support/asking.js'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { LegacyClient } from '../support/legacy-client.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { modernStdio } from '../support/modern-stdio.js'

const HOUR = 3_600_000
const token = { meta: { progressToken: 'p' } }
const progress = (value: number) => ({ method: 'notifications/progress', params: { progress: value } })

/** A wall clock of this process that a test can set. */
function wallClock(t: Test): { step(milliseconds: number): void } {
  const own = Date.now
  let offset = 0
  t.intercept(Date, 'now', { value: () => own() + offset })
  return {
    step: (milliseconds) => {
      offset += milliseconds
    },
  }
}

for (const [direction, milliseconds] of [
  ['forward', 2 * HOUR],
  ['back', -2 * HOUR],
] as const) {
  t.test(`a call that reports progress outlives a wall clock that is set ${direction}`, async (t) => {
    const clock = wallClock(t)
    const asker = await startAsker(t, 'over stdio')
    const { url } = await startBridge(t, asker.server)
    const { steps, signal } = talk(url, asker)
    const answer = steps([{ tell: progress(1), wait: 'go' }, { tell: progress(2) }], {}, token)
    await until(() => of(asker, 'tools/call').length > 0)
    clock.step(milliseconds)
    await signal('go')
    t.notOk((await answer).message.error)
  })

  t.test(`a parked call can be answered after the wall clock was set ${direction}`, async (t) => {
    const clock = wallClock(t)
    const asker = await startAsker(t, 'over stdio')
    const { url } = await startBridge(t, asker.server)
    const { steps, again } = talk(url, asker)
    const asked = await steps([{ ask: [NAME] }])
    clock.step(milliseconds)
    t.same((await again(asked, all(asked, ADA))).said, [ADA])
  })

  t.test(`an idle session of a legacy client outlives a wall clock that is set ${direction}`, async (t) => {
    const clock = wallClock(t)
    const { server } = modernStdio(t)
    const { url } = await startBridge(t, server, { timeouts: { keepAlive: 50 } })
    const idle = await LegacyClient.open(url)
    const listening = await LegacyClient.open(url)
    const stream = await listening.listen()
    clock.step(milliseconds)
    const before = stream.events.length
    await until(() => stream.events.length > before + 2)
    t.equal((await idle.request('tools/list')).status, 200, 'the bridge has looked for idle sessions meanwhile')
  })
}

t.test('does not detect the era again because the wall clock was set', async (t) => {
  const clock = wallClock(t)
  const http = await LegacyHttp.start(t)
  const { url, bridge } = await startBridge(t, { url: http.url })
  await talk(url).call('tools/list', {})
  clock.step(2 * HOUR)
  t.equal(bridge.server.verdict?.era, 'legacy')
})

/** Times that are told to people, kept in files or shared between machines. */
const WALL = [
  'app/kept-parts.ts',
  'app/list-files.ts',
  'app/status.ts',
  'base/log/log.ts',
  'command/auth.ts',
  'command/status.ts',
  'command/trust.ts',
  // Ids that a page has not used before in a session that it goes on with.
  'inspector/try/legacy.ts',
  'mcp/protocol/refusal.ts',
  'middle/group/states.ts',
  'middle/policy/approval/approval.ts',
  'middle/policy/approval/page-questions.ts',
  'middle/policy/approval/passes.ts',
  'middle/policy/cut/kept-results.ts',
  'middle/policy/quarantine.ts',
  'middle/policy/subscribers.ts',
  // The moment of the last failure, which the status tells.
  'servers/era/availability.ts',
  'servers/era/shared-verdicts.ts',
  'servers/legacy/parked.ts',
  'servers/legacy/retry-state.ts',
  'services/discovery/discovery.ts',
  'services/discovery/publish.ts',
  'services/discovery/trust/store.ts',
  'services/discovery/trust/trust-status.ts',
  'services/oauth/client/account.ts',
  'services/oauth/client/accounts.ts',
  'services/oauth/client/grants.ts',
  'services/oauth/client/obtain.ts',
  'services/oauth/client/register.ts',
  'services/oauth/client/without-person.ts',
  'services/oauth/page/company.ts',
  'services/oauth/page/desk.ts',
  'services/oauth/page/visitors.ts',
  'services/oauth/server/verifier.ts',
  'services/oauth/store/lease.ts',
  'services/replicas/proof.ts',
  'services/telemetry/audit-lines.ts',
  'services/telemetry/opentelemetry.ts',
]

t.test('only times for people, or shared between machines, use the wall clock', async (t) => {
  const source = fileURLToPath(new URL('../../src/', import.meta.url))
  const reading = readdirSync(source, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && /\bDate\.now\b/.test(readFileSync(source + name, 'utf8')))
    .sort()
  t.same(reading, WALL, 'a duration is measured by performance.now()')
})
