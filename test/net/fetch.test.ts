import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TLSSocket } from 'node:tls'
import t, { type Test } from 'tap'
import {
  checkDestination,
  DOCUMENT_BYTES,
  type FetchOptions,
  guardedFetch,
  guardedRequest,
} from '../../src/base/net/fetch.js'
import { serveNames } from '../support/dns.js'
import { makeCa, serveTls } from '../support/tls.js'

const ca = await makeCa()
const certificate = await ca.serverOptions(['mcp.example', '127.0.0.1'])

/** Reaches servers of the test, and says so as an operator would. */
const inside: FetchOptions = {
  ca: ca.cert,
  allowed: ['mcp.example', '127.0.0.0/8'],
  resolve: async () => ['127.0.0.1'],
}

const failing = (phase: string, reason: string, transient = false) => ({
  name: 'Failure',
  phase,
  reason,
  transient,
})

const plain = async (t: Test, answer = 'plain') => {
  const server = createServer((_request, response) => response.end(answer))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  return (server.address() as AddressInfo).port
}

t.test('a request does not identify its sender', async (t) => {
  const server = await serveTls(t, certificate, (request, response) => {
    response.setHeader('set-cookie', 'seen=1').end(JSON.stringify(request.headers))
  })
  const url = `https://mcp.example:${server.port}/.well-known/mcp.json?a=1`
  const { bytes, ...rest } = await guardedFetch(url, inside)
  t.match(rest, { url, address: '127.0.0.1', headers: { 'set-cookie': 'seen=1' } })
  await guardedFetch(url, inside)
  const { headers } = { headers: JSON.parse(Buffer.from(bytes).toString()) as Record<string, string> }
  t.same(headers, {
    host: `mcp.example:${server.port}`,
    connection: 'close',
    accept: 'application/json',
    'accept-encoding': 'identity',
    'user-agent': 'mcp-bridge',
  })
  t.same(server.asked, ['/.well-known/mcp.json?a=1', '/.well-known/mcp.json?a=1'])
  t.equal(server.accepted, 2, 'each on a connection of its own')
})

t.test('a server needs a certificate for its own address', async (t) => {
  const server = await serveTls(t, certificate, (_request, response) => response.end('{}'))
  t.match(await guardedFetch(`https://127.0.0.1:${server.port}/`, inside), { address: '127.0.0.1' })
  const other = await serveTls(t, await ca.serverOptions(['mcp.example']), (_request, response) => response.end('{}'))
  await t.rejects(guardedFetch(`https://127.0.0.1:${other.port}/`, inside), failing('tls', 'certificate'))
})

t.test('sends a host name in the handshake, and no IP address', async (t) => {
  const server = await serveTls(t, certificate, ({ socket }, response) => {
    const { servername } = socket as TLSSocket & { servername?: string | false }
    response.end(JSON.stringify(servername))
  })
  for (const [host, name] of [
    ['mcp.example', 'mcp.example'],
    ['127.0.0.1', false],
  ]) {
    const { bytes } = await guardedFetch(`https://${host}:${server.port}/`, inside)
    t.equal(JSON.parse(Buffer.from(bytes).toString()), name)
  }
})

t.test('a host with a trailing dot is the host without it', async (t) => {
  const server = await serveTls(t, certificate, (request, response) => response.end(request.headers.host))
  const { bytes } = await guardedFetch(`https://mcp.example.:${server.port}/`, inside)
  t.equal(Buffer.from(bytes).toString(), `mcp.example:${server.port}`)
})

t.test('uses the addresses of a name server as they are', async (t) => {
  const server = await serveTls(t, certificate, (_request, response) => response.end('{}'))
  const names = await serveNames(t, { 'mcp.example': { A: [['127.0.0.1']] } })
  const { address } = await guardedFetch(`https://mcp.example:${server.port}/`, { ...inside, resolve: names.resolve })
  t.equal(address, '127.0.0.1')
  t.same([...names.asked].sort(), ['A mcp.example', 'AAAA mcp.example'], 'asked once, and not again to connect')
})

t.test('one reachable address of several is enough', async (t) => {
  const server = await serveTls(t, certificate, (_request, response) => response.end('{}'))
  const resolve = async () => ['127.0.0.2', '127.0.0.1']
  const { address } = await guardedFetch(`https://mcp.example:${server.port}/`, { ...inside, resolve })
  t.equal(address, '127.0.0.1')
})

t.test('allows plain HTTP only for the loopback, in development', async (t) => {
  const port = await plain(t)
  const { bytes } = await guardedFetch(`http://127.0.0.1:${port}/`, { allowLoopback: true })
  t.equal(Buffer.from(bytes).toString(), 'plain')
  const { address } = await guardedFetch(`http://localhost:${port}/`, { allowLoopback: true })
  t.equal(address, '127.0.0.1')
  const cases: [name: string, url: string, options: FetchOptions, failure: ReturnType<typeof failing>][] = [
    ['without the flag', `http://127.0.0.1:${port}/`, inside, failing('url', 'scheme')],
    [
      'elsewhere',
      `http://mcp.example:${port}/`,
      { allowLoopback: true, resolve: async () => ['93.184.215.14'] },
      failing('guard', 'plain-http'),
    ],
  ]
  for (const [name, url, options, failure] of cases) await t.rejects(guardedFetch(url, options), failure, name)
})

t.test('distinguishes statuses by whether a retry may help', async (t) => {
  const cases: [status: number, reason: string, transient: boolean][] = [
    [201, 'status', false],
    [204, 'status', false],
    [206, 'status', false],
    [301, 'redirect', false],
    [304, 'status', false],
    [400, 'status', false],
    [401, 'status', false],
    [403, 'status', false],
    [404, 'absent', false],
    [410, 'absent', false],
    [408, 'unavailable', true],
    [425, 'unavailable', true],
    [429, 'unavailable', true],
    [500, 'unavailable', true],
    [502, 'unavailable', true],
    [503, 'unavailable', true],
    [504, 'unavailable', true],
  ]
  const server = await serveTls(t, certificate, (request, response) => {
    response.writeHead(Number(request.url?.slice(1))).end()
  })
  for (const [status, reason, transient] of cases) {
    const answer = guardedFetch(`https://mcp.example:${server.port}/${status}`, inside)
    await t.rejects(answer, failing('http', reason, transient), String(status))
  }
})

t.test('a document may be as large as its bound, not larger', async (t) => {
  const server = await serveTls(t, certificate, (request, response) => {
    const bytes = Buffer.alloc(DOCUMENT_BYTES + (request.url?.includes('more') ? 1 : 0), 'x')
    if (request.url?.includes('chunked')) response.write('')
    response.end(bytes)
  })
  const at = (path: string) => guardedFetch(`https://mcp.example:${server.port}/${path}`, inside)
  for (const path of ['whole', 'chunked']) t.equal((await at(path)).bytes.length, DOCUMENT_BYTES, path)
  for (const path of ['more', 'more-chunked']) await t.rejects(at(path), failing('body', 'too-large'), path)
})

t.test('shows the certificate of a connection before a request is sent', async (t) => {
  const server = await serveTls(t, certificate, (_request, response) => response.end('{}'))
  const url = `https://mcp.example:${server.port}/`
  const seen: unknown[] = []
  const secured = (socket: TLSSocket, host: string) => seen.push([socket.authorized, socket.isSessionReused(), host])
  await guardedFetch(url, { ...inside, secured })
  await guardedFetch(url, { ...inside, secured })
  const fresh = [true, false, 'mcp.example']
  t.same(seen, [fresh, fresh], 'each connection, and none takes up the session of another')
  const refuse = () => {
    throw new Error('not this key')
  }
  await t.rejects(guardedFetch(url, { ...inside, secured: refuse }), {
    ...failing('tls', 'pin'),
    message: 'not this key',
  })
  t.equal(server.asked.length, 2)
})

t.test('a connection failure says whether a retry may help', async (t) => {
  const port = await plain(t)
  const cases: [name: string, url: string, options: FetchOptions, failure: ReturnType<typeof failing>][] = [
    ['nobody listens', 'https://127.0.0.1:1/', inside, failing('connect', 'refused', true)],
    [
      'the name is not known',
      'https://mcp.example/',
      { ...inside, resolve: async () => Promise.reject(Object.assign(new Error('no'), { code: 'ENOTFOUND' })) },
      failing('resolve', 'unknown-host', false),
    ],
    [
      'the name has no address',
      'https://mcp.example/',
      { ...inside, resolve: async () => [] },
      failing('resolve', 'unknown-host'),
    ],
    [
      'the name server does not answer',
      'https://mcp.example/',
      { ...inside, resolve: async () => Promise.reject(Object.assign(new Error('no'), { code: 'EAI_AGAIN' })) },
      failing('resolve', 'resolver', true),
    ],
    [
      'the name server is silent',
      'https://mcp.example/',
      { ...inside, timeLimit: 200, resolve: () => new Promise(() => {}) },
      failing('resolve', 'timeout', true),
    ],
    ['what listens speaks no TLS', `https://127.0.0.1:${port}/`, inside, failing('tls', 'handshake')],
  ]
  for (const [name, url, options, failure] of cases) await t.rejects(guardedFetch(url, options), failure, name)
})

t.test('a request can be aborted', async (t) => {
  const server = await serveTls(t, certificate, () => {})
  const stop = new AbortController()
  const answer = guardedFetch(`https://mcp.example:${server.port}/`, { ...inside, signal: stop.signal })
  const reason = new Error('enough')
  setTimeout(() => stop.abort(reason), 100)
  await t.rejects(answer, reason)
  await t.rejects(guardedFetch(`https://mcp.example:${server.port}/`, { ...inside, signal: stop.signal }), reason)
})

t.test('failures contain neither the query nor anything that a server sent', async (t) => {
  const server = await serveTls(t, certificate, (_request, response) => {
    response.writeHead(302, { location: 'https://elsewhere.example:8443/secret-path?secret=1' }).end('secret-body')
  })
  const error = await guardedFetch(`https://mcp.example:${server.port}/?secret=query`, inside).catch(
    (one: Error) => one,
  )
  t.match(error, { message: `mcp.example:${server.port} redirects to https://elsewhere.example:8443. Redirects` })
  t.notMatch((error as Error).message, /secret/)
})

t.test('posts a form unchanged, and returns the whole answer, whatever its status', async (t) => {
  const server = await serveTls(t, certificate, (request, response) => {
    const { method, headers } = request
    request.setEncoding('utf8').on('data', (body: string) => {
      response.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify({ method, headers, body }))
    })
  })
  const body = 'grant_type=authorization_code&resource=https%3A%2F%2Fa.example'
  const { status, bytes } = await guardedRequest(`https://mcp.example:${server.port}/token`, {
    ...inside,
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded', authorization: 'Basic YTpi' },
    body,
  })
  t.equal(status, 400)
  t.match(JSON.parse(Buffer.from(bytes).toString()), {
    method: 'POST',
    body,
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      authorization: 'Basic YTpi',
      'accept-encoding': 'identity',
    },
  })
})

t.test('a redirect of a form is an answer, and nothing is sent to its target', async (t) => {
  const server = await serveTls(t, certificate, (_request, response) =>
    response.writeHead(307, { location: '/else' }).end(),
  )
  const { status } = await guardedRequest(`https://mcp.example:${server.port}/token`, {
    ...inside,
    method: 'POST',
    body: 'a=1',
  })
  t.equal(status, 307)
  t.same(server.asked, ['/token'])
})

t.test('refuses an answer beyond its bound', async (t) => {
  const server = await serveTls(t, certificate, (_request, response) => response.end('x'.repeat(1_001)))
  const url = `https://mcp.example:${server.port}/`
  await t.rejects(guardedRequest(url, { ...inside, maxBytes: 1_000 }), failing('body', 'too-large'))
  t.equal((await guardedRequest(url, { ...inside, maxBytes: 1_001 })).bytes.length, 1_001)
})

t.test('checks an address for a browser like one to fetch', async (t) => {
  const rebound = { resolve: async () => ['93.184.215.14', '10.0.0.1'] }
  await t.rejects(checkDestination('https://mcp.example/a', rebound), failing('guard', 'internal-address'))
  await t.rejects(checkDestination('https://[::1]/a'), failing('guard', 'internal-address'))
  await t.rejects(checkDestination('http://mcp.example/a', inside), failing('url', 'scheme'))
  await t.rejects(checkDestination('javascript:alert(1)'), failing('url', 'scheme'))
  await t.rejects(checkDestination('https://localhost/a'), failing('guard', 'internal-name'))
  const public_ = { resolve: async () => ['93.184.215.14'] }
  t.match(await checkDestination('https://mcp.example/a?b=1', public_), { href: 'https://mcp.example/a?b=1' })
  t.match(await checkDestination('http://localhost:1/a', { allowLoopback: true, resolve: async () => ['127.0.0.1'] }), {
    port: '1',
  })
})
