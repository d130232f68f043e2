/** Lines on stdio that become no call: the inspector shows them as refused, like requests over HTTP, and they are counted. */
import t from 'tap'
import { EventRecorder } from '../../src/inspector/recorder/recorder.js'
import { Ring } from '../../src/inspector/ring.js'
import { until } from '../support/eventually.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { openPipe } from '../support/pipe.js'
import { eventsIn } from '../support/sights.js'

t.test('shows lines that are not JSON, not a message, or too long', async (t) => {
  const ring = new Ring()
  const settings = { limits: { lineBytes: 10_000 } }
  const pipe = openPipe(t, legacyStdio(t).server, settings, { recorder: new EventRecorder(ring.record) })
  for (const line of ['no JSON', '{"jsonrpc":"2.0","method":5}', `"${'x'.repeat(20_000)}"`]) pipe.line(line)
  const refused = () => eventsIn(ring).filter((seen) => seen.kind === 'refused')
  await until(() => refused().length === 3, 'three refusals')
  t.match(refused(), [
    { why: 'notJson', said: /Not JSON/, path: undefined, from: undefined },
    { why: 'invalidRequest', said: String },
    { why: 'bodyTooLarge', said: /limits.lineBytes/ },
  ])
  await pipe.call('tools/call', { name: 'echo', arguments: {} })
  t.equal(refused().length, 3, 'a call is none')
})
