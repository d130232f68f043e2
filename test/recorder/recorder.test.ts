/** What a bridge tells its record beside its calls. */
import t from 'tap'
import { parseSettings } from '../../src/config/settings.js'
import { EventRecorder } from '../../src/inspector/recorder/recorder.js'
import { Ring } from '../../src/inspector/ring.js'
import { Views } from '../../src/inspector/views.js'
import { Metrics } from '../../src/services/telemetry/metrics.js'
import { createBridge, startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { eventsIn } from '../support/sights.js'

const program = {
  command: process.execPath,
  args: ['node_modules/@modelcontextprotocol/server-everything/dist/index.js'],
}

t.test('records eras, processes, stderr and refusals, and metrics still count', async (t) => {
  const ring = new Ring()
  const metrics = new Metrics({ version: '0.0.0' })
  const { url, bridge } = await startBridge(t, program, {}, { recorder: new EventRecorder(ring.record), metrics })
  await bridge.warmUp(() => {})
  t.equal((await fetch(`${url}/nowhere?token=CANARY`)).status, 404)
  const views = new Views()
  const seen = () => {
    for (const one of eventsIn(ring, views.last)) views.add(one)
    return views
  }
  await until(() => (seen().servers.get('test')?.stderr.length ?? 0) > 0, 'a line of stderr')
  t.match(seen().servers.get('test'), { era: 'legacy', starts: 1 })
  t.match(seen().refused, [{ status: 404, why: 'noSuchPath' }])
  t.notMatch(JSON.stringify(eventsIn(ring)), /CANARY/)
  const text = await metrics.text([])
  t.match(text, /mcp_bridge_verdicts_total\{server="test",era="legacy"/)
  t.match(text, /mcp_bridge_child_events_total\{server="test",event="started"\} 1/)
})

t.test('records a reload, with its changes', async (t) => {
  const ring = new Ring()
  const { bridge } = createBridge(t, program, {}, { recorder: new EventRecorder(ring.record) })
  const settings = parseSettings({ mcpServers: { other: program } }, { env: {}, read: () => '' })
  await bridge.reload(settings)
  t.match(
    eventsIn(ring).find(({ kind }) => kind === 'config'),
    { text: 'servers: added other; removed test' },
  )
})
