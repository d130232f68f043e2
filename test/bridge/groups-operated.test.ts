/** What operators and others see of a group: readiness, metrics, and the published list of servers. */
import t from 'tap'
import { Metrics } from '../../src/services/telemetry/metrics.js'
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

t.test('a bridge that publishes has a card of each server and group, the same for everybody', async (t) => {
  const [one, other] = [await ModernHttp.start(t), await LegacyHttp.start(t)]
  const mcpServers = { one: { url: one.url }, secret: { url: other.url }, dead: { url: 'http://127.0.0.1:9/mcp' } }
  const settings = { mcpServers, publicUrl: 'https://bridge.example/', publish: {}, groups: { team: {} } }
  const auth = { tokens: { alice: 'a-token-of-alice-0123456789' } }
  const { url } = await startBridge(t, {}, { ...settings, auth })
  const catalog = await get(at(url, '/.well-known/ai-catalog.json'))
  t.match(catalog, { status: 200, headers: { 'content-type': 'application/ai-catalog+json', etag: /^"[\w-]+"$/ } })
  const { entries } = catalog.message as unknown as { entries: { identifier: string; url: string; type: string }[] }
  t.same(
    entries.map(({ identifier, url }) => [identifier, url]),
    [
      ['urn:air:bridge.example:mcp:team', 'https://bridge.example/team/mcp/server-card'],
      ['urn:air:bridge.example:mcp:one', 'https://bridge.example/one/mcp/server-card'],
      ['urn:air:bridge.example:mcp:secret', 'https://bridge.example/secret/mcp/server-card'],
    ],
    'not a server that has not said what it is',
  )
  for (const { url: address } of entries) {
    const card = await get(at(url, new URL(address).pathname))
    t.match(card, { status: 200, headers: { 'content-type': 'application/mcp-server-card+json' } })
    t.match(card.message, {
      name: /^example\.bridge\//,
      remotes: [{ url: address.replace('/server-card', ''), headers: [{ name: 'Authorization', isSecret: true }] }],
    })
    const isTeam = address.includes('/team/')
    if (isTeam) t.notMatch(card.text, /secret\/|"one"|dead/, 'a group does not say which servers it has')
    t.notMatch(card.text, /echo/, 'and no card which tools there are')
    const etag = String(card.headers['etag'])
    const again = (tag: string, headers = {}) =>
      send('GET', at(url, new URL(address).pathname), undefined, { 'if-none-match': tag, ...headers })
    t.match(await again(etag), { status: 304, text: '' })
    t.match(await again(`"x", W/${etag}`), { status: 304, text: '' })
    t.equal((await again('"x"', { authorization: 'Bearer a-token-of-alice-0123456789' })).text, card.text)
  }
  t.equal((await get(at(url, '/dead/mcp/server-card'))).status, 404)
})

t.test('a bridge that does not publish has no cards', async (t) => {
  const { url } = await startBridge(t, { url: (await ModernHttp.start(t)).url })
  for (const path of ['/.well-known/ai-catalog.json', '/mcp/server-card', '/test/mcp/server-card'])
    t.equal((await get(at(url, path))).status, 404)
})
