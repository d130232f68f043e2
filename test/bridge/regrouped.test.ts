/** A reload makes several servers of one: a group takes its path, and whoever is there notices as little as possible. */
import t, { type Test } from 'tap'
import { settingsOf, startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { LegacyClient } from '../support/legacy-client.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { ALL_LISTS, listen } from '../support/listening.js'
import { call } from '../support/modern.js'
import { ModernHttp } from '../support/modern-http.js'
import { SseClient } from '../support/sse-client.js'

type Json = Record<string, unknown>

/** The servers that are alone at first, by how a legacy client is served with them. */
const KINDS: Record<string, (t: Test) => Promise<object>> = {
  'a modern server, which is translated': async (t) => ({ url: (await ModernHttp.start(t, { pages: 1 })).url }),
  'a legacy server over HTTP, in direct sessions': async (t) => ({
    url: (await LegacyHttp.start(t, { sessions: true })).url,
  }),
  'a legacy server without sessions': async (t) => ({ url: (await LegacyHttp.start(t)).url }),
  'a legacy program, in direct sessions': async (t) => legacyStdio(t).server,
}

const at = (url: string, path: string) => new URL(path, url).href
/** The servers of the names in a list; '' for a name without a prefix. */
const prefixesIn = (result: unknown): string[] => {
  const { tools } = result as { tools: { name: string }[] }
  return [...new Set(tools.map(({ name }) => (name.includes('__') ? (name.split('__')[0] as string) : '')))]
}

for (const [kind, start] of Object.entries(KINDS)) {
  t.test(`${kind}: open sessions stay where they are, and new ones use the group`, async (t) => {
    const mcpServers = { a: await start(t) }
    const { url, bridge, log } = await startBridge(t, {}, { mcpServers })
    t.match(url, /\/mcp$/)
    const legacy = await LegacyClient.open(url)
    const sse = await SseClient.open(url, '2024-11-05')
    const stream = await listen(url, ALL_LISTS)
    await stream.has(1)
    t.same(prefixesIn((await call(url, 'tools/list')).message.result), [''])

    const b = legacyStdio(t).server
    const changes = await bridge.reload(settingsOf({ mcpServers: { ...mcpServers, b } }))
    t.match(changes, { added: ['b'], changed: [], removed: [] })

    const echo = { name: 'echo', arguments: { a: 1 } }
    t.same(prefixesIn((await legacy.request('tools/list')).message.result), [''], 'the session has the names as before')
    t.match(await legacy.request('tools/call', echo), { status: 200, message: { result: {} } })
    t.same(prefixesIn((await sse.request('tools/list'))['result']), [''], 'so has that over HTTP+SSE')
    t.match(await sse.request('tools/call', echo), { result: {} })

    await until(() => stream.over, 'the end of a subscription, which begins anew with the group')
    const everywhere = ['a', 'b']
    t.same(prefixesIn((await call(url, 'tools/list')).message.result), everywhere)
    t.same(prefixesIn((await (await LegacyClient.open(url)).request('tools/list')).message.result), everywhere)
    const late = await SseClient.open(url, '2024-11-05')
    t.same(prefixesIn((await late.request('tools/list'))['result']), everywhere)
    t.same(prefixesIn((await call(at(url, '/a/mcp'), 'tools/list')).message.result), [''], 'alone, it is as before')
    t.match(
      log.filter(({ event }) => event === 'path_grouped'),
      [{ level: 40, path: '/mcp', group: 'all', server: 'a', prefix: 'a__', alone: '/a/mcp' }],
      'the operator is told',
    )

    await bridge.reload(settingsOf({ mcpServers: { ...mcpServers, b, c: legacyStdio(t).server } }))
    t.equal((await legacy.request('ping')).status, 200, 'a further server changes nothing')
    t.equal(log.filter(({ event }) => event === 'path_grouped').length, 1)
    t.equal((await legacy.end()).status, 200)
    t.equal((await legacy.request('ping')).status, 404, 'a session that was ended is gone')
    const unknown = await LegacyClient.open(url)
    await unknown.end()
    t.equal((await unknown.request('ping')).status, 404, 'and one of the group is never passed on')
  })
}

t.test('a server that is reconfigured in the same reload does not keep its sessions', async (t) => {
  const { url, bridge } = await startBridge(t, {}, { mcpServers: { a: legacyStdio(t).server } })
  const legacy = await LegacyClient.open(url)
  await bridge.reload(settingsOf({ mcpServers: { a: legacyStdio(t).server, b: legacyStdio(t).server } }))
  t.equal((await legacy.request('ping')).status, 404)
  const again = await LegacyClient.open(url)
  t.same(prefixesIn((await again.request('tools/list')).message.result as Json), ['a', 'b'])
})
