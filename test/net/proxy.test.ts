import { once } from 'node:events'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import t from 'tap'
import { checkDestination, type FetchOptions, guardedFetch } from '../../src/base/net/fetch.js'
import { openTunnel, ProxyFailure, proxiesOf } from '../../src/base/net/proxy.js'
import { freePort } from '../support/free-port.js'
import { ForwardProxy } from '../support/proxy.js'
import { makeCa, serveTls } from '../support/tls.js'

const PUBLIC = '93.184.215.14'
const ca = await makeCa()
const certificate = await ca.serverOptions(['mcp.example'])

t.test('NO_PROXY exempts hosts with their subdomains, addresses, networks and ports', async (t) => {
  const cases: [noProxy: string, url: string, proxied: boolean][] = [
    ['', 'https://mcp.example/', true],
    ['mcp.example', 'https://mcp.example/', false],
    ['MCP.example', 'https://mcp.EXAMPLE:8443/', false],
    ['mcp.example', 'https://a.mcp.example/', false],
    ['mcp.example', 'https://amcp.example/', true],
    ['.mcp.example', 'https://mcp.example/', false],
    ['*.mcp.example', 'https://a.mcp.example/', false],
    ['mcp.example:443', 'https://mcp.example/', false],
    ['mcp.example:443', 'https://mcp.example:8443/', true],
    ['other.example, mcp.example', 'https://mcp.example/', false],
    ['other.example mcp.example', 'https://mcp.example/', false],
    ['*', 'https://mcp.example/', false],
    ['10.0.0.0/8', 'https://10.1.2.3/', false],
    ['10.0.0.0/8', 'https://11.1.2.3/', true],
    ['10.0.0.0/8', 'https://mcp.example/', true],
    ['10.1.2.3', 'https://10.1.2.3:8443/', false],
    ['10.1.2.3:443', 'https://10.1.2.3:8443/', true],
    ['fd00::/8', 'https://[fd00::1]/', false],
    ['[fd00::1]:443', 'https://[fd00:0::1]/', false],
    ['fd00::1', 'https://[fd00::1]:8443/', false],
    ['', 'https://localhost/', false],
    ['', 'https://a.localhost/', false],
    ['', 'http://127.0.0.2:3000/', false],
    ['', 'http://[::1]:3000/', false],
    ['', 'http://[::ffff:127.0.0.1]:3000/', false],
    ['', 'http://0.0.0.0:3000/', false],
  ]
  for (const [NO_PROXY, url, proxied] of cases) {
    const proxyOf = proxiesOf({ HTTPS_PROXY: 'http://proxy:3128', HTTP_PROXY: 'http://proxy:3128', NO_PROXY })
    t.equal(proxyOf(new URL(url)) !== undefined, proxied, `${url} with NO_PROXY=${NO_PROXY}`)
  }
})

t.test('each scheme has its own variable, and the lower-case spelling wins', async (t) => {
  const [https, http] = [new URL('https://mcp.example/'), new URL('http://mcp.example/')]
  t.equal(proxiesOf({})(https), undefined)
  t.equal(proxiesOf({ HTTP_PROXY: 'http://proxy:3128' })(https), undefined)
  t.equal(proxiesOf({ HTTPS_PROXY: 'http://proxy:3128' })(http), undefined)
  t.equal(proxiesOf({ HTTPS_PROXY: '' })(https), undefined)
  t.match(proxiesOf({ HTTPS_PROXY: 'http://upper:1', https_proxy: 'http://lower:1' })(https), {
    variable: 'https_proxy',
    origin: 'http://lower:1',
  })
  t.match(proxiesOf({ HTTP_PROXY: 'proxy:3128' })(http), { variable: 'HTTP_PROXY', origin: 'http://proxy:3128' })
  t.equal(proxiesOf({ HTTPS_PROXY: 'http://proxy', NO_PROXY: '*', no_proxy: 'a' })(https)?.origin, 'http://proxy')
})

t.test('percent-decodes user and password, and sends them as Basic', async (t) => {
  const { authorization, origin } = proxiesOf({ HTTPS_PROXY: 'http://u%40x:p%3A1%@proxy:3128' })(
    new URL('https://mcp.example/'),
  ) as { authorization: string; origin: string }
  t.equal(origin, 'http://proxy:3128')
  t.equal(Buffer.from(authorization.replace('Basic ', ''), 'base64').toString(), 'u@x:p%3A1%')
})

t.test('a failed tunnel names the cause, without the password', async (t) => {
  const target = { host: 'mcp.example', port: 443 }
  const secret = 'correct-horse'
  const refusing = await ForwardProxy.start(t, { refuse: 403 })
  const failing = await ForwardProxy.start(t, { refuse: 503 })
  const locked = await ForwardProxy.start(t, { credentials: 'user:another' })
  const silent = createTcpServer(() => {})
  const closing = createTcpServer((socket) => socket.destroy())
  for (const server of [silent, closing]) {
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.teardown(() => server.close())
  }
  const portOf = (server: typeof silent) => (server.address() as AddressInfo).port
  const cases: [address: string, reason: string, transient: boolean, message: RegExp][] = [
    [`127.0.0.1:${refusing.port}`, 'refused', false, /answered CONNECT mcp\.example:443 with HTTP 403/],
    [`127.0.0.1:${failing.port}`, 'unavailable', true, /with HTTP 503/],
    [`127.0.0.1:${locked.port}`, 'credentials', false, /with HTTP 407/],
    [`127.0.0.1:${portOf(silent)}`, 'timeout', true, /did not answer CONNECT/],
    [`127.0.0.1:${portOf(closing)}`, 'unavailable', true, /closed the connection/],
    [`127.0.0.1:${await freePort()}`, 'unreachable', true, /cannot be reached \(ECONNREFUSED\)/],
    ['proxy.invalid:1', 'unreachable', true, /cannot be reached \(E/],
  ]
  for (const [address, reason, transient, message] of cases) {
    const proxy = proxiesOf({ HTTPS_PROXY: `http://user:${secret}@${address}` })(new URL('https://mcp.example/'))
    if (!proxy) throw new TypeError('no proxy')
    const error = await openTunnel(proxy, target, { timeout: reason === 'timeout' ? 300 : 60_000 }).then(
      () => undefined,
      (failure: unknown) => failure,
    )
    t.match(error, { phase: 'proxy', reason, transient, message, code: `ERR_PROXY_${reason.toUpperCase()}` }, address)
    t.ok(error instanceof ProxyFailure)
    t.match((error as Error).message, /^The proxy http:\/\/[^ @]+ \(HTTPS_PROXY\) /)
    t.notMatch(`${(error as Error).stack}${JSON.stringify(error)}`, secret)
  }
  for (const address of ['socks5://user:correct-horse@proxy:1080', 'http://', '::: correct-horse']) {
    const proxy = proxiesOf({ HTTPS_PROXY: address })(new URL('https://mcp.example/'))
    if (!proxy) throw new TypeError('no proxy')
    await t.rejects(openTunnel(proxy, target), {
      reason: 'invalid',
      message: 'HTTPS_PROXY is not an http:// or https:// address',
    })
  }
})

t.test('an aborted tunnel leaves no connection to the proxy', async (t) => {
  let open = 0
  const silent = createTcpServer((socket) => {
    open++
    socket.on('error', () => {}).on('close', () => open--)
  })
  silent.listen(0, '127.0.0.1')
  await once(silent, 'listening')
  t.teardown(() => silent.close())
  const { port } = silent.address() as AddressInfo
  const proxy = { variable: 'HTTPS_PROXY', origin: `http://127.0.0.1:${port}` }
  const stop = new AbortController()
  const tunnel = openTunnel(proxy, { host: 'mcp.example', port: 443 }, { signal: stop.signal })
  await once(silent, 'connection')
  stop.abort(new Error('enough'))
  await t.rejects(tunnel, { message: 'enough' })
  while (open > 0) await new Promise((resolve) => setImmediate(resolve))
  await t.rejects(openTunnel(proxy, { host: 'mcp.example', port: 443 }, { signal: stop.signal }), { message: 'enough' })
})

t.test('fetches a document through a proxy, and verifies its certificate', async (t) => {
  const server = await serveTls(t, certificate, (_request, response) => response.end('there'))
  for (const tls of [undefined, await ca.serverOptions(['127.0.0.1'])]) {
    const proxy = await ForwardProxy.start(t, { credentials: 'user:p%40ss', ...(tls && { tls }) })
    const url = `https://mcp.example:${server.port}/`
    const options: FetchOptions = {
      ca: ca.cert,
      resolve: async () => [PUBLIC],
      proxyOf: proxiesOf({ HTTPS_PROXY: proxy.url }),
    }
    // The proxy's certificate is verified like any other, and this authority is known for the server only.
    if (tls) {
      await t.rejects(guardedFetch(url, options), { name: 'Failure', phase: 'proxy', reason: 'unreachable' })
      continue
    }
    const { bytes } = await guardedFetch(url, options)
    t.equal(Buffer.from(bytes).toString(), 'there')
    t.same(proxy.tunnels, [`mcp.example:${server.port}`])
    t.notOk(proxy.received[0]?.headers['authorization'])
    const other = `https://other.example:${server.port}/`
    await t.rejects(guardedFetch(other, options), { name: 'Failure', phase: 'tls', reason: 'certificate' })
  }
})

t.test('the guard checks hosts before a proxy is used', async (t) => {
  const proxy = await ForwardProxy.start(t)
  const proxyOf = proxiesOf({ HTTPS_PROXY: proxy.url, HTTP_PROXY: proxy.url })
  const reaching = (answer: readonly string[]): FetchOptions => ({ proxyOf, resolve: async () => answer })
  const cases: [url: string, options: FetchOptions, reason: string][] = [
    ['https://10.1.2.3/', reaching([]), 'internal-address'],
    ['https://169.254.169.254/', reaching([]), 'internal-address'],
    ['https://[fd00::1]/', reaching([]), 'internal-address'],
    ['https://[::ffff:10.0.0.1]/', reaching([]), 'internal-address'],
    ['https://2130706433/', reaching([]), 'internal-address'],
    ['https://localhost/', reaching([]), 'internal-name'],
    ['https://inside.example/', reaching(['10.1.2.3']), 'internal-address'],
    ['https://inside.example/', reaching([PUBLIC, '10.1.2.3']), 'internal-address'],
    ['http://mcp.example/', { ...reaching([PUBLIC]), allowLoopback: true }, 'plain-http'],
  ]
  for (const [url, options, reason] of cases) {
    await t.rejects(guardedFetch(url, options), { name: 'Failure', phase: 'guard', reason }, url)
    if (url.startsWith('https:'))
      await t.rejects(checkDestination(url, options), { name: 'Failure', phase: 'guard', reason }, url)
  }
  t.same(proxy.received, [])
})

t.test('leaves a host that only the proxy can resolve to the proxy', async (t) => {
  const server = await serveTls(t, certificate, (_request, response) => response.end('there'))
  const proxy = await ForwardProxy.start(t)
  const unknown = Object.assign(new Error('no such host'), { code: 'ENOTFOUND' })
  const resolvers: [name: string, resolve: () => Promise<readonly string[]>][] = [
    ['unknown', () => Promise.reject(unknown)],
    ['no address', async () => []],
    ['no answer', () => new Promise(() => {})],
  ]
  const url = `https://mcp.example:${server.port}/`
  for (const [name, resolve] of resolvers) {
    const options = { ca: ca.cert, resolve, proxyOf: proxiesOf({ HTTPS_PROXY: proxy.url }), timeLimit: 60_000 }
    t.equal(Buffer.from((await guardedFetch(url, options)).bytes).toString(), 'there', name)
    t.match(await checkDestination(url, options), { href: url }, name)
  }
  await t.rejects(guardedFetch(url, { resolve: async () => [] }), {
    name: 'Failure',
    phase: 'resolve',
    reason: 'unknown-host',
  })
})

t.test('reaches a host in NO_PROXY, and this machine, directly', async (t) => {
  const server = await serveTls(t, certificate, (_request, response) => response.end('there'))
  const proxy = await ForwardProxy.start(t)
  const url = `https://mcp.example:${server.port}/`
  const here = { ca: ca.cert, allowed: ['127.0.0.1'], resolve: async () => ['127.0.0.1'] }
  const proxyOf = proxiesOf({ HTTPS_PROXY: proxy.url, NO_PROXY: 'mcp.example' })
  t.match(await guardedFetch(url, { ...here, proxyOf }), { address: '127.0.0.1' })
  t.match(await guardedFetch(url, { ...here, proxyOf: proxiesOf({ HTTPS_PROXY: proxy.url }) }), {
    address: '127.0.0.1',
  })
  t.same(proxy.received, [])
})
