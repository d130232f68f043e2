/** Several servers in one bridge: where each is served, what each has for itself, and how all of them are doing. */
import type { ServerResponse } from 'node:http'
import t from 'tap'
import { type ConfigError, type ConfigSources, parseSettings } from '../src/config/settings.js'
import { createBridge, startBridge } from './support/bridge.js'
import { until } from './support/eventually.js'
import { temporaryFile } from './support/folder.js'
import { LegacyClient } from './support/legacy-client.js'
import { LegacyHttp } from './support/legacy-http.js'
import { legacyStdio } from './support/legacy-stdio.js'
import { CLIENT_INFO, call, send } from './support/modern.js'
import { ModernHttp } from './support/modern-http.js'
import { SseClient } from './support/sse-client.js'

type Json = Record<string, unknown>
type Override = (arrived: object, response: ServerResponse) => boolean

const nothing: ConfigSources = { env: {}, read: () => '' }
const issuesOf = (input: object, elsewhere = nothing): string[] => {
  try {
    parseSettings(input, elsewhere)
    return []
  } catch (error) {
    return (error as ConfigError).issues.map(({ path, message }) => `${path} ${message}`)
  }
}
const get = (url: string, headers = {}) => send('GET', url, undefined, headers)
const at = (url: string, path: string) => new URL(path, url).href
const serverOf = (answer: { message: { result?: Json } }) => answer.message.result?.['serverInfo']

t.test('each of several servers has a path of its own, for every kind of client', async (t) => {
  const http = await LegacyHttp.start(t)
  const modern = await ModernHttp.start(t)
  const mcpServers = {
    pipe: legacyStdio(t).server,
    http: { url: http.url },
    new: { url: modern.url },
    off: { command: 'x', disabled: true },
  }
  const { url } = await startBridge(t, {}, { mcpServers })
  for (const name of ['pipe', 'http', 'new']) {
    const path = at(url, `/${name}/mcp`)
    t.match(await call(path, 'tools/call', { name: 'echo', arguments: { at: name } }), { status: 200 }, name)
    const legacy = await LegacyClient.open(path)
    t.match(await legacy.request('tools/list'), { status: 200 })
    const sse = await SseClient.open(path, '2024-11-05')
    t.match(await sse.request('tools/list'), { result: {} }, `${name} over HTTP+SSE`)
  }
  t.equal((await call(at(url, '/mcp'), 'tools/list')).status, 200, 'all of them together')
  t.equal((await call(at(url, '/off/mcp'), 'tools/list')).status, 404)
  const missing = await call(at(url, '/none/mcp'), 'tools/list')
  t.match(missing.message.error, { message: /endpoints are \/mcp, \/pipe\/mcp, \/http\/mcp, \/new\/mcp/ })
})

t.test('a session of one server is unknown to another', async (t) => {
  const mcpServers = { a: legacyStdio(t).server, b: legacyStdio(t).server }
  const { url } = await startBridge(t, {}, { mcpServers })
  const client = await LegacyClient.open(at(url, '/a/mcp'))
  t.equal((await client.request('ping')).status, 200)
  const elsewhere = await send('POST', at(url, '/b/mcp'), client.text('ping', undefined, {}), client.headers)
  t.equal(elsewhere.status, 404)
})

t.test('a single server is served at the address itself, and at its own path', async (t) => {
  const { url } = await startBridge(t, legacyStdio(t).server)
  const [here, there] = [await call(url, 'server/discover'), await call(at(url, '/test/mcp'), 'server/discover')]
  t.equal(here.status, 200)
  t.same(serverOf(there), serverOf(here))
  const client = await LegacyClient.open(url)
  const moved = await send('POST', at(url, '/test/mcp'), client.text('ping', undefined, {}), client.headers)
  t.equal(moved.status, 200, 'it is the same session by either')
})

t.test('a server may have a path, time limits and a strictness of its own', async (t) => {
  const slow = { ...legacyStdio(t).server, path: '/tools/slow', timeouts: { call: 150 } }
  const { url } = await startBridge(t, {}, { mcpServers: { slow, other: legacyStdio(t).server } })
  const wait = { name: 'wait', arguments: { ms: 700 } }
  const given = await call(at(url, '/tools/slow'), 'tools/call', wait)
  t.match(given.message.error, { data: { reason: 'upstream_timeout' } })
  t.match((await call(at(url, '/other/mcp'), 'tools/call', wait)).message, { result: {} })
  t.equal((await call(at(url, '/slow/mcp'), 'tools/list')).status, 404)
})

t.test('two servers cannot have one address', async (t) => {
  const program = { command: 'x' }
  const withRedis = (redis: object) => ({ mcpServers: { a: program }, redis, stateKeys: ['k'.repeat(32)] })
  const cases: [object, RegExp][] = [
    [{ mcpServers: { a: { ...program, path: '/x' }, b: { ...program, path: '/x' } } }, /b\.path \/x is a path of a/],
    [{ mcpServers: { a: { ...program, path: '/metrics' } } }, /a\.path \/metrics is a path of the bridge itself/],
    [{ mcpServers: { a: { ...program, path: '/sse' } } }, /\/sse is where HTTP\+SSE clients connect/],
    [{ mcpServers: { a: program, b: { url: 'http://h/mcp', paths: ['/a/mcp'] } } }, /b\.paths \/a\/mcp is a path of a/],
    [{ mcpServers: { a: program, b: program }, groups: false, listen: 'stdio' }, /choose it with --server/],
    [{ mcpServers: { a: program }, groups: { g: {}, h: {} }, listen: 'stdio' }, /choose it with --group/],
    [{ mcpServers: { a: program }, groups: { b: { path: '/a/mcp' } } }, /groups\.b\.path \/a\/mcp is a path of a/],
    [{ mcpServers: { a: program }, groups: { a: {} } }, /groups\.a \/a\/mcp is a path of a/],
    [{ mcpServers: { a: { ...program, disabled: true } } }, /mcpServers has no enabled server/],
    [{ mcpServers: { a: program }, admin: 'stdio' }, /admin has to be an address/],
    [{ mcpServers: { a: program }, redis: { url: 'redis://h' } }, /stateKeys is required with "redis"/],
    [{ mcpServers: { a: program }, redis: { url: 'http://h' } }, /redis\.url has to be a redis:\/\//],
    [withRedis({}), /redis has to have the address of Redis in "url", or addresses of nodes in "cluster"/],
    [withRedis({ url: 'redis://h', cluster: ['redis://h'] }), /redis\.cluster replaces "url": remove one of them/],
    [withRedis({ sentinels: ['redis://h'], cluster: ['redis://h'] }), /redis\.sentinels cannot be combined with/],
    [withRedis({ url: 'redis://h', ca: 'ca.pem' }), /redis\.ca is for rediss:\/\/ addresses/],
    [withRedis({ url: 'rediss://h', cert: 'x.pem' }), /redis\.key is required with "cert"/],
    [withRedis({ cluster: ['rediss://h'], key: 'x.pem' }), /redis\.cert is required with "key"/],
  ]
  for (const [input, said] of cases) t.match(issuesOf(input).join('\n'), said)
})

t.test('reads secrets from files, and names missing ones without their content', async (t) => {
  const file = temporaryFile(t, 'token', 'top-secret\n')
  const server = (authorization: string) => ({
    mcpServers: { a: { url: 'https://h/mcp', headers: { authorization } } },
  })
  const read = (path: string) => {
    if (path !== file) throw new Error('ENOENT: no such file')
    return 'top-secret\n'
  }
  const { mcpServers } = parseSettings(server(`Bearer \${file:${file}}`), { env: {}, read })
  t.match(mcpServers, { a: { headers: { authorization: 'Bearer top-secret' } } })
  t.match(issuesOf(server('${file:/none}'), { env: {}, read }), [/a\.headers\.authorization cannot read \/none/])
})

t.test('health shows details only to those who may see them', async (t) => {
  const mcpServers = { good: legacyStdio(t).server, bad: { url: 'http://127.0.0.1:9/mcp' } }
  const { url, bridge } = await startBridge(t, {}, { mcpServers })
  const foreign = { host: 'pod-7.example' }
  t.match(await get(at(url, '/healthz'), foreign), { status: 200, text: '{"status":"ok"}' })
  t.match(await get(at(url, '/readyz'), foreign), { status: 503, text: '{"status":"starting"}' })
  await bridge.warmUp(() => {})
  t.match(await get(at(url, '/readyz'), foreign), { status: 200, text: '{"status":"ready"}' })
  t.equal((await get(at(url, '/metrics'), foreign)).status, 403, 'what is counted is not for pages of others')
})

t.test('a bridge without a reachable server is not ready, and notices when one is reachable', async (t) => {
  const http = await LegacyHttp.start(t)
  const { url } = await startBridge(t, { url: http.url })
  const asked = async () => (await get(at(url, '/readyz'))).status
  t.equal(await asked(), 503)
  let status = 503
  await until(() => {
    if (status === 503)
      asked()
        .then((now) => (status = now))
        .catch(() => {})
    return status === 200
  }, 'ready')
  t.ok(true)
})

t.test('finds a restarted server again without a call', async (t) => {
  const server = await LegacyHttp.start(t)
  const { url, bridge } = await startBridge(t, { url: server.url })
  const asked = async () => (await get(at(url, '/readyz'))).status
  await bridge.warmUp(() => {})
  t.equal(await asked(), 200)
  const start = await server.stop()
  t.match((await call(url, 'tools/list')).message.error, { data: { reason: 'upstream_unavailable' } })
  t.equal(await asked(), 503)
  await start()
  await until(async () => (await asked()) === 200, 'ready again')
})

for (const [era, start] of [
  ['legacy', (override: Override) => LegacyHttp.start(t, { override })],
  ['modern', (override: Override) => ModernHttp.start(t, { override })],
] as const) {
  t.test(`finds a ${era} server again without a call that was down for a while`, async (t) => {
    let away = false
    const server = await start((_arrived, response) => {
      if (away) response.destroy()
      return away
    })
    const { url, bridge } = await startBridge(t, { url: server.url })
    const asked = async () => (await get(at(url, '/readyz'))).status
    await bridge.warmUp(() => {})
    t.equal(await asked(), 200)
    away = true
    // Another client, for whom a session has to be opened where there are sessions.
    await call(url, 'tools/list', {}, { meta: { [CLIENT_INFO]: { name: 'another', version: '1' } } })
    if (era === 'legacy') t.equal(await asked(), 503)
    away = false
    await until(async () => (await asked()) === 200, 'ready again')
  })

  t.test(`a ${era} server that requires a credential for every answer counts as reachable`, async (t) => {
    const server = await start((_arrived, response) => {
      response.writeHead(401, { 'www-authenticate': 'Bearer' }).end()
      return true
    })
    const { url, bridge } = await startBridge(t, { url: server.url }, { auth: { passthrough: true } })
    await bridge.warmUp(() => {})
    t.equal((await get(at(url, '/readyz'))).status, 200)
  })
}

t.test('with an address of its own, health has its details there, and nowhere else', async (t) => {
  const mcpServers = { good: legacyStdio(t).server, bad: { url: 'http://127.0.0.1:9/mcp' } }
  const { bridge } = createBridge(t, {}, { mcpServers, admin: 'http://127.0.0.1:0' })
  const urls = await bridge.listen({ kind: 'http', host: '127.0.0.1', port: 0, path: '/mcp' })
  await bridge.warmUp(() => {})
  const [url] = urls.values()
  t.equal((await get(at(url as string, '/healthz'))).status, 404)
  const admin = bridge.adminUrl as string
  t.equal((await get(at(admin, '/healthz'), { host: 'x' })).status, 200)
  const ready = await get(at(admin, '/readyz'))
  t.match(JSON.parse(ready.text), {
    status: 'ready',
    servers: {
      good: { state: 'ready', era: 'legacy', calls: 0, parked: 0 },
      bad: { state: 'down', why: /Connection refused/ },
    },
  })
})
