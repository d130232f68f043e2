/** Calls through a group belong to the group and to the server that they are for: what is counted, shown and found of them. */
import { pino } from 'pino'
import t, { type Test } from 'tap'
import { readFilter } from '../../src/inspector/filter.js'
import { toHar } from '../../src/inspector/har.js'
import { Merged, MergedSource } from '../../src/inspector/hub/merged.js'
import { Inspector } from '../../src/inspector/inspector.js'
import { EventRecorder } from '../../src/inspector/recorder/recorder.js'
import { lineOf } from '../../src/inspector/tail/lines.js'
import type { CallView, ServerNow, ServerView, Views } from '../../src/inspector/views.js'
import { whereOf } from '../../src/inspector/words.js'
import { CLIENTS, connect } from '../matrix/clients.js'
import { nameOf } from '../matrix/run.js'
import { createBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { TOKEN } from '../support/inspector.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { call } from '../support/modern.js'
import { ModernHttp } from '../support/modern-http.js'
import { eventsIn, tickingRing } from '../support/sights.js'
import { viewsOf } from '../support/watched.js'

/** A port where nothing listens any more. */
const DOWN = 'http://127.0.0.1:9/mcp'
const GROUPS = {
  'with prefixes': { group: {}, nameOf: (server: string, tool: string) => `${server}__${tool}` },
  'without prefixes': {
    group: { prefix: 'never', resources: 'as-is' },
    nameOf: (_server: string, tool: string) => tool,
  },
}

const found = (views: Views, words: string) => [...views.calls.values()].filter((one) => readFilter(words).matches(one))

async function start(t: Test, group: object) {
  const [old, fresh] = [await LegacyHttp.start(t), await ModernHttp.start(t)]
  const ring = tickingRing()
  const mcpServers = {
    old: { url: old.url, tools: { allow: ['echo', 'log'] } },
    fresh: { url: fresh.url, tools: { deny: ['echo', 'log'] } },
    gone: { url: DOWN },
  }
  const settings = { mcpServers, groups: { team: group } }
  const recorder = new EventRecorder((trace, text) => ring.record(trace, text))
  return { ...createBridge(t, {}, settings, { recorder }), ring }
}

for (const [what, { group, nameOf: named }] of Object.entries(GROUPS))
  for (const kind of CLIENTS.filter(({ transport }) => transport !== 'HTTP+SSE'))
    t.test(`${nameOf(kind)} client, ${what}: calls belong to their servers and to the group`, async (t) => {
      const { bridge, log, ring } = await start(t, group)
      if (kind.transport !== 'stdio') await bridge.listen({ kind: 'http', host: '127.0.0.1', port: 0, path: '/mcp' })
      const client = connect(kind, { url: bridge.groupUrls.get('team') ?? '', bridge, log }, {})
      await client.open()
      await client.call('tools/list')
      for (const name of [named('old', 'echo'), named('old', 'log'), named('fresh', 'contents')])
        await client.call('tools/call', { name, arguments: {} })
      await client.close()
      await bridge.close()
      const views = viewsOf(eventsIn(ring))
      const tools = found(views, 'method:tools/call')
      t.same(
        tools.map(({ server, members }) => [server, members]),
        [
          ['team', ['old']],
          ['team', ['old']],
          ['team', ['fresh']],
        ],
      )
      t.same(tools.map(whereOf), ['team › old', 'team › old', 'team › fresh'])
      const [list] = found(views, 'method:tools/list')
      t.same([...(list?.members ?? [])].sort(), ['fresh', 'old'], 'a list belongs to all servers that were asked')
      for (const server of ['team', 'old', 'fresh']) {
        const calls = found(views, `server:=${server}`)
        t.equal(views.servers.get(server)?.calls, calls.length, `${server} counts the calls that are found by its name`)
        t.ok(calls.length > 0)
      }
      t.ok(views.servers.get('team')?.isGroup)
      t.same(views.servers.get('team')?.side, undefined, 'a group has no era')
    })

t.test(
  'a call that a server of the group was not sent belongs to that server: refused, or not available',
  async (t) => {
    const { bridge, ring } = await start(t, {})
    await bridge.listen({ kind: 'http', host: '127.0.0.1', port: 0, path: '/mcp' })
    const url = bridge.groupUrls.get('team') ?? ''
    for (const name of ['fresh__echo', 'gone__x', 'old__act']) await call(url, 'tools/call', { name, arguments: {} })
    const views = viewsOf(eventsIn(ring))
    for (const [server, name] of [
      ['fresh', 'fresh__echo'],
      ['gone', 'gone__x'],
      ['old', 'old__act'],
    ]) {
      const failed = found(views, `server:=${server} status:fault`)
      t.same(
        failed.map((one) => one.name),
        [name],
      )
      t.equal(views.servers.get(server as string)?.failed, 1)
    }
    t.equal(views.servers.get('team')?.failed, 3)
  },
)

t.test('a name that is a part of another one is found alone with =', async (t) => {
  const ring = tickingRing()
  const call = {
    kind: 'call',
    what: 'begun',
    principal: 'bob',
    client: { era: 'modern' },
    method: 'x',
  } as const
  for (const [i, server] of ['orders', 'orders-2', 'old'].entries()) ring.record({ ...call, server, call: i + 1 })
  const views = viewsOf(eventsIn(ring))
  const servers = (words: string) => found(views, words).map(({ server }) => server)
  t.same(servers('server:orders'), ['orders', 'orders-2'])
  t.same(servers('server:=orders'), ['orders'])
  t.same(servers('server:=Orders,old'), ['orders', 'old'])
  t.same(servers('-server:=orders'), ['orders-2', 'old'])
  t.equal(readFilter('status:=ok').hint, undefined)
  t.match(readFilter('server:=').problem, /needs a value/)
})

t.test('servers of groups keep their names in the terminal, in archives, and among several bridges', async (t) => {
  const { bridge, ring } = await start(t, {})
  await bridge.listen({ kind: 'http', host: '127.0.0.1', port: 0, path: '/mcp' })
  const url = bridge.groupUrls.get('team') ?? ''
  await call(url, 'tools/call', { name: 'old__echo', arguments: {} })
  await call(url, 'tools/call', { name: 'fresh__echo', arguments: {} })
  const views = viewsOf(eventsIn(ring))
  const [sent, refused] = [...views.calls.values()] as [CallView, CallView]
  t.match(
    lineOf(sent, (_, text) => text),
    /old__echo {2}team › old {2}M 07-28 http → L 11-25 http/,
  )
  t.match(
    lineOf(refused, (_, text) => text),
    /fresh__echo {2}team › fresh {2}M 07-28 http → –/,
  )
  const archive = JSON.parse([...toHar([sent], { version: '0', withText: (message) => message })].join('')) as {
    log: { entries: { _hop: string; _server: string; request: { url: string } }[] }
  }
  t.match(
    archive.log.entries.find(({ _hop: hop }) => hop === 'server'),
    {
      _server: 'old',
      request: { url: 'http://old.invalid/tools/call/old__echo' },
    },
  )
  const merged = new Merged()
  const source = new MergedSource(merged, '4711')
  for (const seen of eventsIn(ring)) source.add(seen)
  const together = viewsOf(eventsIn(merged.ring))
  t.same(
    [...together.calls.values()].map(({ server, members }) => [server, members]),
    [
      ['team (4711)', ['old (4711)']],
      ['team (4711)', ['fresh (4711)']],
    ],
  )
})

t.test(
  'the bridge says which servers of a group have got calls, and counts those in progress at their server',
  async (t) => {
    const [old, fresh] = [await LegacyHttp.start(t), await ModernHttp.start(t)]
    const inspector = new Inspector(
      { token: TOKEN, payloads: 'off', callsPerSecond: 500, hide: [], try: false },
      { version: '0.0.0', log: pino({ level: 'silent' }), folder: undefined },
    )
    const mcpServers = { old: { url: old.url }, fresh: { url: fresh.url } }
    const { bridge } = createBridge(
      t,
      {},
      { mcpServers, groups: { team: {} } },
      { inspector, recorder: inspector.recorder },
    )
    await bridge.listen({ kind: 'http', host: '127.0.0.1', port: 0, path: '/mcp' })
    const url = bridge.groupUrls.get('team') ?? ''
    const stop = new AbortController()
    t.teardown(() => stop.abort())
    const waiting = call(
      url,
      'tools/call',
      { name: 'fresh__wait', arguments: { ms: 'held' } },
      { signal: stop.signal },
    ).catch(() => {})
    await call(url, 'tools/call', { name: 'old__echo', arguments: {} })
    const now = async () => {
      const response = await fetch(`${bridge.inspectUrl}/servers`, { headers: { authorization: `Bearer ${TOKEN}` } })
      return ((await response.json()) as { servers: (ServerNow & ServerView)[] }).servers
    }
    await until(
      async () => (await now()).some(({ name, calls }) => name === 'fresh' && calls === 1),
      'one is in progress',
    )
    t.match(
      (await now()).find(({ name }) => name === 'team'),
      { isGroup: true, members: ['fresh', 'old'], calls: 2 },
    )
    stop.abort()
    await waiting
  },
)
