/** Which process of a server has a call: said only if it is certain. */
import t from 'tap'
import type { CallView } from '../../src/inspect/views.js'
import { until, untilFound } from '../support/eventually.js'
import { LegacyClient } from '../support/legacy-client.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { startWatched } from '../support/watched.js'

t.test('with two processes, a call whose process has crashed is not said to be in the other one', async (t) => {
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
