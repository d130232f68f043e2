/** Clients that reach the bridge through a reverse proxy, which says in headers under which host and path they know it. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { startBridge } from '../support/bridge.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { listenUntilEnd } from '../support/listen-until-end.js'
import { call, send } from '../support/modern.js'
import { startReverseProxy } from '../support/reverse-proxy.js'
import { SseClient } from '../support/sse-client.js'

const TRUSTED = { trustedProxies: ['127.0.0.0/8'] }
const REVISION = '2024-11-05'

/** Names of servers: an only one is at the path of the bridge, too. */
const SERVERS = ['test', 'other']

t.test('HTTP+SSE works behind the prefix that a trusted proxy names', async (t) => {
  const legacy = await LegacyHttp.start(t)
  const mcpServers = Object.fromEntries(SERVERS.map((name) => [name, { url: legacy.url }]))
  const { url } = await startBridge(t, {}, { ...TRUSTED, mcpServers, groups: { team: { servers: SERVERS } } })
  const rows: [prefix: string, header: string, paths: string[]][] = [
    ['/tools', '/tools', ['/test/mcp', '/other/mcp', '/team/mcp']],
    ['/tools', '/tools/', ['/test/mcp']],
    ['/a/b-c.d', '/a/b-c.d', ['/test/mcp']],
    ['/outer/inner', '/outer, /inner', ['/test/mcp']],
    ['', '/', ['/test/mcp']],
    ['', '', ['/test/mcp']],
  ]
  for (const [prefix, header, paths] of rows) {
    const proxy = await startReverseProxy(t, url, { prefix, headers: { 'x-forwarded-prefix': header } })
    for (const path of paths) {
      const client = await SseClient.open(proxy + prefix + path, REVISION)
      t.equal(new URL(client.messagesUrl).origin, proxy)
      const name = path.startsWith('/team') ? 'test__echo' : 'echo'
      t.match(await client.request('tools/call', { name, arguments: {} }), { result: { content: [{}] } }, header + path)
      client.stream.leave()
    }
  }
})

t.test('a prefix counts only from a trusted proxy, and only if it is a path', async (t) => {
  const legacy = await LegacyHttp.start(t)
  const trusting = await startBridge(t, { url: legacy.url }, TRUSTED)
  const wrong = [
    '//evil.example',
    'https://evil.example',
    'evil.example',
    '/a b',
    '/a?b',
    '/a#b',
    '/\\evil',
    `/${'x'.repeat(300)}`,
  ]
  for (const prefix of wrong) {
    const { stream } = await SseClient.connect(trusting.url, { 'x-forwarded-prefix': prefix })
    t.match(stream.events[0]?.data, /^\/message\?/, prefix)
  }
  for (const settings of [{}, { trustedProxies: ['10.0.0.0/8', '::1'] }]) {
    const { url } = await startBridge(t, { url: legacy.url }, settings)
    const { stream } = await SseClient.connect(url, { 'x-forwarded-prefix': '/tools' })
    t.match(stream.events[0]?.data, /^\/message\?/, JSON.stringify(settings))
  }
})

t.test('the path of publicUrl is the prefix, whatever a proxy says', async (t) => {
  const legacy = await LegacyHttp.start(t)
  const mcpServers = Object.fromEntries(SERVERS.map((name) => [name, { url: legacy.url }]))
  for (const publicUrl of ['https://public.example/tools', 'https://public.example/tools/test/mcp']) {
    const { url } = await startBridge(t, {}, { ...TRUSTED, mcpServers, publicUrl })
    for (const name of SERVERS) {
      const at = new URL(`/${name}/mcp`, url).href
      const { stream } = await SseClient.connect(at, { 'x-forwarded-prefix': '/elsewhere' })
      t.match(stream.events[0]?.data, new RegExp(`^/tools/${name}/message\\?`), publicUrl)
    }
  }
})

t.test('the host that a trusted proxy names counts in place of the one of its connection', async (t) => {
  const legacy = await LegacyHttp.start(t)
  const settings = { ...TRUSTED, allowedHosts: ['public.example'], allowedOrigins: ['https://app.example'] }
  const { url } = await startBridge(t, { url: legacy.url }, settings)
  const direct = await startBridge(t, { url: legacy.url }, { ...settings, trustedProxies: [] })
  const rows: [headers: Record<string, string>, trusting: number, direct: number][] = [
    [{ host: 'bridge:8080', 'x-forwarded-host': 'public.example' }, 200, 403],
    [{ host: 'bridge:8080', 'x-forwarded-host': 'public.example:8443' }, 200, 403],
    [{ host: 'bridge:8080', 'x-forwarded-host': 'evil.example, public.example' }, 200, 403],
    [{ host: 'bridge:8080', 'x-forwarded-host': 'public.example, evil.example' }, 403, 403],
    [{ host: 'public.example', 'x-forwarded-host': 'evil.example' }, 403, 200],
    [{ host: 'public.example', 'x-forwarded-host': '' }, 200, 200],
    [{ host: 'public.example' }, 200, 200],
  ]
  for (const [headers, ...statuses] of rows) {
    const found = [url, direct.url].map(async (one) => (await call(one, 'tools/list', {}, { headers })).status)
    t.same(await Promise.all(found), statuses, JSON.stringify(headers))
  }
  // A page at the address of the bridge itself may call it.
  const page = {
    host: 'bridge:8080',
    origin: 'https://public.example:8443',
    'x-forwarded-host': 'Public.example:8443',
    'x-forwarded-proto': 'https',
  }
  t.equal((await call(url, 'tools/list', {}, { headers: page })).status, 200)
  const plain = { ...page, 'x-forwarded-proto': 'http' }
  t.equal((await call(url, 'tools/list', {}, { headers: plain })).status, 403)
})

t.test('metadata and redirects of the server name the address that clients know', async (t) => {
  const resource = '/.well-known/oauth-protected-resource'
  const server = createServer(({ url: path = '' }, response) => {
    if (path.startsWith(resource)) response.setHeader('content-type', 'application/json').end('{"resource":"x"}')
    else if (path === '/files/old') response.writeHead(302, { location: `http://${origin}/files/new?a=1` }).end()
    else response.writeHead(401, { 'www-authenticate': 'Bearer' }).end()
  })
  await listenUntilEnd(t, server)
  const origin = `127.0.0.1:${(server.address() as AddressInfo).port}`
  const entry = { url: `http://${origin}/mcp`, era: 'modern', paths: ['/files/*'] }
  const auth = { passthrough: true }
  // The challenge names the document, which names the endpoint. A redirect stays behind the prefix.
  const check = async (publicUrl: string | undefined, prefix: string, place: (base: string) => [string, string]) => {
    const { url } = await startBridge(t, entry, { ...TRUSTED, auth, ...(publicUrl && { publicUrl }) })
    const headers = { 'x-forwarded-prefix': prefix, 'x-forwarded-host': '127.0.0.1', 'x-forwarded-proto': 'https' }
    const proxy = await startReverseProxy(t, url, { prefix, headers })
    const base = publicUrl === undefined ? 'https://127.0.0.1' : new URL(publicUrl).origin
    const [document, path] = place(base)
    const { status, headers: answered } = await call(`${proxy}${prefix}/mcp`, 'tools/list')
    t.match([status, answered['www-authenticate']], [401, `resource_metadata="${document}"`])
    // Well-known addresses are passed on as they are, except those behind the prefix.
    const asked = path.startsWith(prefix) ? proxy + path : new URL(path, url).href
    t.match((await send('GET', asked, undefined, {})).message, { resource: `${base}${prefix}/mcp` })
    const moved = await send('GET', `${proxy}${prefix}/files/old`, undefined, {})
    t.equal(moved.headers['location'], `${prefix}/files/new?a=1`)
  }
  await check(undefined, '/tools', (base) => [`${base}/tools${resource}/mcp`, `/tools${resource}/mcp`])
  await check('https://public.example/tools', '/tools', (base) => [
    `${base}${resource}/tools/mcp`,
    `${resource}/tools/mcp`,
  ])
  await check('https://public.example/tools/mcp', '/tools', (base) => [
    `${base}${resource}/tools/mcp`,
    `${resource}/mcp`,
  ])
})
