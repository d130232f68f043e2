/** Which process of a server has a call: said only if it is certain. */
import t from 'tap'
import type { Ring } from '../../src/inspector/ring.js'
import type { CallView } from '../../src/inspector/views.js'
import { until, untilFound } from '../support/eventually.js'
import { LegacyClient } from '../support/legacy-client.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { call } from '../support/modern.js'
import { modernStdio } from '../support/modern-stdio.js'
import { eventsIn, tellCall, tickingRing } from '../support/sights.js'
import { rowsIn, startWatched, viewsOf } from '../support/watched.js'

const callIn = (ring: Ring, id: string) => viewsOf(eventsIn(ring)).call(id) as CallView

t.test('does not attribute the call of a crashed process to another process', async (t) => {
  const { url, views, calls } = await startWatched(t, legacyStdio(t).server)
  const called = (name: string) =>
    untilFound(() => calls().find((call) => call.name === name && call.status !== 'open'), `${name} has ended`)
  const server = () => views().servers.get('test')
  // Each legacy client has a process of its own.
  const first = await LegacyClient.open(url)
  await first.call('echo')
  t.equal((await called('echo')).pid, server()?.pids[0], 'the only process')
  const second = await LegacyClient.open(url)
  await until(() => server()?.running === 2, 'two processes run')
  await second.call('crash')
  t.equal((await called('crash')).pid, undefined)
  await until(() => server()?.running === 1, 'one process is left')
  await first.call('fail')
  const failed: CallView = await called('fail')
  t.equal(failed.pid, server()?.pids[0], 'the only process again')
})

t.test('records what a modern program says that was started in place of another one', async (t) => {
  const { url, calls } = await startWatched(t, modernStdio(t).server)
  for (const name of ['echo', 'crash', 'echo']) await call(url, 'tools/call', { name, arguments: {} })
  const echoes = () => calls().filter(({ name, status }) => name === 'echo' && status !== 'open')
  const again = await untilFound(() => echoes()[1], 'the call of the second program')
  t.same(rowsIn(again), [
    ['in tools/call', 'out tools/call'],
    ['out result', 'in result'],
  ])
})

t.test('a call has the process of its server, if there is only one', async (t) => {
  const ring = tickingRing()
  const child = { kind: 'child', server: 'orders', what: 'started' } as const
  ring.record({ ...child, pid: 812 })
  tellCall(ring.record, { id: 1 })
  ring.record({ ...child, pid: 813 })
  tellCall(ring.record, { id: 2 })
  t.equal(callIn(ring, 'c1').pid, 812)
  t.equal(callIn(ring, 'c2').pid, undefined)
})

t.test('shows no process for a call if that is uncertain', async (t) => {
  const ring = tickingRing()
  const { record } = ring
  const child = { kind: 'child', server: 'orders' } as const
  const message = { kind: 'message', server: 'orders', hop: 'server', dir: 'out', form: 'request', bytes: 1 } as const
  const call = {
    kind: 'call',
    principal: 'p',
    client: { era: 'modern' },
    method: 'tools/call',
  } as const
  const upstream = { era: 'legacy', transport: 'stdio' } as const
  record({ ...child, what: 'started', pid: 2, running: 2 })
  record({ ...call, what: 'begun', call: 1 })
  record({ ...message, call: 1 })
  t.equal(callIn(ring, 'c1').pid, undefined, 'the start of another process has left')
  record({ ...child, what: 'ended', pid: 1, running: 1 })
  record({ ...call, what: 'ended', call: 1, upstream, outcome: 'fault', ms: 1 })
  t.equal(callIn(ring, 'c1').pid, undefined, 'it may have been in the process that has ended')

  record({ ...call, what: 'begun', call: 2 })
  record({ ...message, call: 2 })
  record({ ...child, what: 'ended', pid: 2, running: 0 })
  record({ ...child, what: 'restarted', pid: 3, running: 1 })
  t.equal(callIn(ring, 'c2').pid, 2, 'the only process has ended, and another one was started')
  record({ ...message, call: 2 })
  t.equal(callIn(ring, 'c2').pid, undefined, 'it was sent again, to the other one')
})
