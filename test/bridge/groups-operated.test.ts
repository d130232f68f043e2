/** What operators and others see of a group: readiness, metrics, and the published list of servers. */
import t from 'tap'
import { Metrics } from '../../src/telemetry/metrics.js'
import { startBridge } from '../support/bridge.js'
import { LegacyClient } from '../support/legacy-client.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { call, send } from '../support/modern.js'
import { ModernHttp } from '../support/modern-http.js'

type Json = Record<string, unknown>

const get = (url: string) => send('GET', url, undefined, {})
const at = (url: string, path: string) => new URL(path, url).href

t.test('/readyz reports the state of a group, and which of its servers do not answer', async (t) => {
  const good = await LegacyHttp.start(t)
  const mcpServers = { good: { url: good.url }, dead: { url: 'http://127.0.0.1:9/mcp' } }
  const groups = { some: {}, whole: { required: ['dead'] } }
  const { url, bridge } = await startBridge(t, {}, { mcpServers, groups, admin: 'http://127.0.0.1:0' })
  await bridge.warmUp(() => {})
  const group = at(url, '/some/mcp')
  await call(group, 'tools/list')
  const { status, message } = await get(at(String(bridge.adminUrl), '/readyz'))
  t.equal(status, 200)
  const states = (message as unknown as { groups: Json }).groups
  t.match(states, {
    some: { state: 'ready', servers: ['good', 'dead'], calls: 0, missing: { dead: /./ } },
    whole: { state: 'down', servers: ['good', 'dead'], missing: { dead: /./ } },
  })
  t.notMatch(states['some'], { missing: { good: /./ } })
  t.same((await get(at(url, '/readyz'))).status, 404, 'clients are not told')
})

t.test('metrics of calls and sessions through a group have the names of the group and of the server', async (t) => {
  const [one, other] = [await ModernHttp.start(t, { pages: 1 }), await LegacyHttp.start(t)]
  const metrics = new Metrics({ version: '0.0.0' })
  const mcpServers = { one: { url: one.url }, other: { url: other.url }, dead: { url: 'http://127.0.0.1:9/mcp' } }
  const { url } = await startBridge(t, {}, { mcpServers, groups: { team: {} } }, { metrics })
  const group = at(url, '/team/mcp')
  await call(group, 'tools/list')
  const legacy = await LegacyClient.open(group)
  for (const name of ['one__echo', 'other__echo'])
    t.match(await legacy.request('tools/call', { name, arguments: {} }), { status: 200, message: { result: {} } })
  await call(at(url, '/one/mcp'), 'tools/list')
  const lines = (await (await fetch(at(url, '/metrics'))).text()).split('\n')
  /** Whether something was counted. */
  const has = (name: string, ...labels: string[]) =>
    lines.some(
      (line) =>
        line.startsWith(`mcp_bridge_${name}{`) && labels.every((label) => line.includes(label)) && !line.endsWith(' 0'),
    )
  for (const server of ['one', 'other'])
    t.ok(has('calls_total', `server="${server}"`, 'group="team"', 'method="tools/call"'), `a call of ${server}`)
  t.ok(has('calls_total', 'server=""', 'group="team"', 'method="tools/list"'), 'a list is of no server')
  t.notOk(has('calls_total', 'server="one"', 'group="team"', 'method="tools/list"'))
  t.ok(has('session_events_total', 'group="team"', 'side="client"', 'event="opened"'))
  t.ok(has('group_member_events_total', 'group="team"', 'server="dead"', 'event="missing"'))
  t.ok(has('bound_used', 'bound="client_sessions"', 'group="team"'))
})

t.test('the published list has the servers at their own paths, whatever groups they are in', async (t) => {
  const [one, other] = [await ModernHttp.start(t), await LegacyHttp.start(t)]
  const mcpServers = { one: { url: one.url }, other: { url: other.url } }
  const settings = { mcpServers, publicUrl: 'https://bridge.example/', publish: {} }
  for (const groups of [undefined, { team: {} }, false] as const) {
    const { url } = await startBridge(t, {}, { ...settings, ...(groups !== undefined && { groups }) })
    const { servers } = (await get(at(url, '/.well-known/mcp.json'))).message as unknown as {
      servers: { name: string; transports: { url: string }[] }[]
    }
    t.same(
      servers.map(({ name, transports }) => [name, transports.map((transport) => transport.url)]),
      [
        ['one', ['https://bridge.example/one/mcp']],
        ['other', ['https://bridge.example/other/mcp']],
      ],
    )
  }
})
