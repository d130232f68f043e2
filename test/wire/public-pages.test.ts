/** The pages that the bridge itself serves: as programs that look first (HEAD) and pages of other origins ask for them. */
import { fastify } from 'fastify'
import t, { type Test } from 'tap'
import { createBridge as embedded } from '../../src/app/embed/create.js'
import { mcpBridge } from '../../src/app/embed/fastify.js'
import { Metrics } from '../../src/services/telemetry/metrics.js'
import { startBridge } from '../support/bridge.js'
import { startCompany } from '../support/company.js'
import { until } from '../support/eventually.js'
import { freePort } from '../support/free-port.js'
import { startGuarded } from '../support/guarded-bridge.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { type Answer, send } from '../support/modern.js'
import { PlainHttp } from '../support/plain-http.js'
import { TokenIssuer } from '../support/token-issuer.js'

const RESOURCE = '/.well-known/oauth-protected-resource'
const SERVER = '/.well-known/oauth-authorization-server'

/** What a browser asks before a page of another origin may read a document, as the official clients request it. */
const PREFLIGHT = {
  origin: 'https://page.example',
  'access-control-request-method': 'GET',
  'access-control-request-headers': 'mcp-protocol-version',
}

/** An answer without what differs between two of them. */
function asPromised({ status, headers }: Answer): unknown {
  const { date: _date, connection: _connection, 'keep-alive': _keepAlive, ...others } = headers
  // Each visitor comes back from the identity provider with another secret.
  const { location, 'set-cookie': cookies } = others
  const own = {
    ...(location && { location: String(location).split('?')[0] }),
    ...(cookies && { 'set-cookie': cookies.length }),
  }
  return { status, headers: { ...others, ...own } }
}

async function looks(t: Test, url: string, status: number): Promise<void> {
  const whole = await send('GET', url, undefined, {})
  t.equal(whole.status, status, url)
  const looked = await send('HEAD', url, undefined, {})
  t.equal(looked.text, '', url)
  t.same(asPromised(looked), asPromised(whole), url)
}

async function readyAt(origin: string): Promise<void> {
  await until(async () => (await send('GET', `${origin}/readyz`, undefined, {})).status === 200)
}

async function allows(t: Test, url: string, headers = {}): Promise<void> {
  const asked = await send('OPTIONS', url, undefined, { ...PREFLIGHT, ...headers })
  t.equal(asked.status, 204, url)
  t.equal(asked.headers['access-control-allow-origin'], '*', url)
  t.match(asked.headers['access-control-allow-methods'], /\bGET\b/, url)
  t.match(asked.headers['access-control-allow-headers'], /^\*/, url)
  const read = await send('GET', url, undefined, { origin: PREFLIGHT.origin, 'mcp-protocol-version': '2025-11-25' })
  t.equal(read.status, 200, url)
  t.equal(read.headers['access-control-allow-origin'], '*', url)
}

/** A bridge that protects its endpoints, and publishes its servers. */
async function publishing(t: Test, settings: object = {}) {
  const issuer = await TokenIssuer.start(t)
  const auth = { issuers: [{ issuer: issuer.url }] }
  const { url } = await startGuarded(t, { auth, publish: {}, ...settings }, {}, ['test', 'stock'])
  return { origin: new URL(url).origin, issuer }
}

const DOCUMENTS = [
  `${RESOURCE}/mcp`,
  `${RESOURCE}/test/mcp`,
  `${RESOURCE}/stock/mcp`,
  SERVER,
  '/.well-known/mcp.json',
  '/.well-known/ai-catalog.json',
  '/mcp/server-card',
  '/test/mcp/server-card',
]

t.test('HEAD is answered as GET, without a body, at every page of the bridge', async (t) => {
  const { origin } = await publishing(t)
  await readyAt(origin)
  for (const path of ['/healthz', '/readyz', ...DOCUMENTS]) await looks(t, origin + path, 200)
  await looks(t, `${origin}/.well-known/mcp.json.jws`, 404)
  const metrics = new Metrics({ version: '0.0.0' })
  const admin = await startBridge(t, legacyStdio(t).server, { admin: 'http://127.0.0.1:0' }, { metrics })
  const at = String(admin.bridge.adminUrl)
  await readyAt(at)
  for (const path of ['/healthz', '/readyz']) await looks(t, at + path, 200)
  const measured = await send('HEAD', `${at}/metrics`, undefined, {})
  t.match([measured.status, measured.headers['content-type'], measured.text], [200, /^text\/plain/, ''])
})

t.test('HEAD at an endpoint is no page: it says which methods there are', async (t) => {
  const { url } = await startBridge(t, legacyStdio(t).server)
  const { origin } = new URL(url)
  for (const [path, allow] of Object.entries({ '/mcp': 'GET, POST, DELETE', '/sse': 'GET' })) {
    const { status, headers } = await send('HEAD', origin + path, undefined, {})
    t.same([status, headers['allow']], [405, allow], path)
  }
})

t.test('HEAD shows the pages of sign-in, and ends none', async (t) => {
  const { origin, tokenOf } = await startCompany(t)
  await looks(t, `${origin}/sign-in`, 303)
  await looks(t, `${origin}/sign-in/test`, 303)
  // Whoever looks at a link in a chat must not use up what it carries.
  t.equal((await send('HEAD', `${origin}/sign-in/callback/test?code=x&state=y`, undefined, {})).status, 404)
  t.ok(await tokenOf('alice'))
})

t.test('HEAD is answered at a facade', async (t) => {
  const issuer = await TokenIssuer.start(t)
  const facade = { clientId: 'bridge', scopes: ['mcp'] }
  const auth = { issuers: [{ issuer: issuer.url, audience: 'bridge', facade }] }
  const { url } = await startGuarded(t, { auth })
  const { origin } = new URL(url)
  for (const path of [SERVER, `${SERVER}/oauth`]) {
    await looks(t, origin + path, 200)
    await allows(t, origin + path)
  }
  await looks(t, `${origin}/oauth/authorize`, 401)
})

t.test('pages of all origins may ask for public documents, and read them', async (t) => {
  for (const allowedOrigins of [[], ['https://app.example']]) {
    const { origin } = await publishing(t, { allowedOrigins })
    for (const path of DOCUMENTS) {
      await allows(t, origin + path)
      await allows(t, origin + path, { 'access-control-request-method': 'HEAD' })
    }
    await allows(t, origin + SERVER, { origin: 'https://app.example' })
  }
})

t.test('pages of other origins may not ask for anything else', async (t) => {
  const { origin } = await publishing(t)
  for (const path of ['/mcp', '/sse', '/metrics', '/sign-in', '/nothing'])
    t.equal((await send('OPTIONS', origin + path, undefined, PREFLIGHT)).status, 403, path)
})

t.test('the documents of a server that signs in its own clients are public, too', async (t) => {
  const { origin: there, url: server } = await PlainHttp.start(t, ({ path, method }, response) => {
    if (path !== `${RESOURCE}/mcp` || method !== 'GET') response.writeHead(404).end()
    else response.writeHead(200, { 'content-type': 'application/json', 'content-length': 44 }).end(document)
  })
  const document = JSON.stringify({ resource: `${there}/mcp` }).padEnd(44)
  const { url } = await startBridge(t, { url: server }, { auth: { passthrough: true } })
  const { origin } = new URL(url)
  for (const path of ['/mcp', '/test/mcp']) {
    await looks(t, origin + RESOURCE + path, 200)
    await allows(t, origin + RESOURCE + path)
    t.match((await send('GET', origin + RESOURCE + path, undefined, {})).message, { resource: origin + path })
  }
})

t.test('a bridge in an application answers HEAD and browsers that ask first', async (t) => {
  const issuer = await TokenIssuer.start(t)
  const port = await freePort()
  const origin = `http://127.0.0.1:${port}`
  const options = {
    mcpServers: { it: legacyStdio(t).server },
    publicUrl: origin,
    auth: { issuers: [{ issuer: issuer.url }] },
    allowedOrigins: ['https://app.example'],
  }
  const app = fastify({ forceCloseConnections: true, exposeHeadRoutes: false })
  app.register(mcpBridge, options)
  await app.listen({ host: '127.0.0.1', port })
  t.teardown(() => app.close())
  const bridge = await embedded(options)
  t.teardown(() => bridge.close())
  for (const path of [`${RESOURCE}/mcp`, `${RESOURCE}/it/mcp`, SERVER]) {
    await looks(t, origin + path, 200)
    await allows(t, origin + path)
    const looked = await bridge.fetch(new Request(origin + path, { method: 'HEAD' }))
    t.same([looked.status, await looked.text()], [200, ''], path)
    const asked = await bridge.fetch(new Request(origin + path, { method: 'OPTIONS', headers: PREFLIGHT }))
    t.match([asked.status, asked.headers.get('access-control-allow-origin')], [204, '*'], path)
  }
  const own = { ...PREFLIGHT, origin: 'https://app.example', 'access-control-request-method': 'POST' }
  const asked = await send('OPTIONS', `${origin}/mcp`, undefined, own)
  t.match([asked.status, asked.headers['access-control-allow-origin']], [204, 'https://app.example'])
})

t.test('an application is not asked who sends what a browser asks first', async (t) => {
  const principal = () => {
    throw new Error('no credentials')
  }
  const options = { mcpServers: { it: legacyStdio(t).server }, allowedOrigins: ['https://app.example'], principal }
  const app = fastify()
  app.register(mcpBridge, { prefix: '/tools', ...options })
  t.teardown(() => app.close())
  await app.ready()
  const headers = { ...PREFLIGHT, origin: 'https://app.example', host: 'localhost' }
  const asked = await app.inject({ method: 'OPTIONS', url: '/tools', headers })
  t.match([asked.statusCode, asked.headers['access-control-allow-origin']], [204, 'https://app.example'])
  t.equal((await app.inject({ method: 'POST', url: '/tools', headers, payload: '{}' })).statusCode, 500)
  const bridge = await embedded(options)
  t.teardown(() => bridge.close())
  t.equal((await bridge.fetch(new Request('http://localhost/mcp', { method: 'OPTIONS', headers }))).status, 204)
})
