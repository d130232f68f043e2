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
  'bridge/kept-parts.ts',
  'bridge/list-files.ts',
  'bridge/status.ts',
  'cli/auth.ts',
  'cli/status.ts',
  'cli/trust.ts',
  'discovery/discovery.ts',
  'discovery/publish.ts',
  'discovery/trust/store.ts',
  'discovery/trust/trust-status.ts',
  'group/states.ts',
  // Ids that a page has not used before in a session that it goes on with.
  'inspect/try/legacy.ts',
  'log/log.ts',
  'oauth/client/account.ts',
  'oauth/client/accounts.ts',
  'oauth/client/grants.ts',
  'oauth/client/obtain.ts',
  'oauth/client/register.ts',
  'oauth/client/without-person.ts',
  'oauth/page/company.ts',
  'oauth/page/desk.ts',
  'oauth/page/visitors.ts',
  'oauth/server/verifier.ts',
  'oauth/store/lease.ts',
  'policy/approval/approval.ts',
  'policy/approval/page-questions.ts',
  'policy/approval/passes.ts',
  'policy/cut/kept.ts',
  'policy/quarantine.ts',
  'policy/subscribers.ts',
  'protocol/refusal.ts',
  'replicas/proof.ts',
  'telemetry/audit-lines.ts',
  'telemetry/opentelemetry.ts',
  // The moment of the last failure, which the status tells.
  'upstream/era/detection.ts',
  'upstream/era/shared-verdicts.ts',
  'upstream/legacy/parked.ts',
  'upstream/legacy/retry-state.ts',
]

t.test('only times for people, or shared between machines, use the wall clock', async (t) => {
  const source = fileURLToPath(new URL('../../src/', import.meta.url))
  const reading = readdirSync(source, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && /\bDate\.now\b/.test(readFileSync(source + name, 'utf8')))
    .sort()
  t.same(reading, WALL, 'a duration is measured by performance.now()')
})
