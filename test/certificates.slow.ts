/** Servers with an authority of their own, and servers that want a certificate of the bridge. */
import { spawn, spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { execPath } from 'node:process'
import type { TLSSocket } from 'node:tls'
import t, { type Test } from 'tap'
import { pemOfServer, signInTls } from '../src/app/certificates.js'
import { guardedFetch } from '../src/base/net/fetch.js'
import { parseSettings } from '../src/config/settings.js'
import { startBridge } from './support/bridge.js'
import { run } from './support/cli.js'
import { until } from './support/eventually.js'
import { temporaryFile } from './support/folder.js'
import { modernServer, offers } from './support/found.js'
import { call } from './support/modern.js'
import { ForwardProxy } from './support/proxy.js'
import { type CertificateOptions, makeCa, serveTls } from './support/tls.js'

const ca = await makeCa()
const clients = await makeCa('Authority of clients')
const DAY = 86_400_000
const PAST = { notBefore: new Date(Date.now() - 2 * DAY), notAfter: new Date(Date.now() - DAY) }

const file = (t: Test, content: string) => temporaryFile(t, 'some.pem', content)

/** A modern server over TLS. */
async function serve(t: Test, options: CertificateOptions = {}, clientCa?: string) {
  const shown: string[] = []
  const answer = modernServer(offers())
  const server = await serveTls(
    t,
    await ca.serverOptions(['127.0.0.1', 'mcp.acme.test'], options),
    (request, response) => {
      shown.push(String((request.socket as TLSSocket).getPeerCertificate().subject?.CN))
      // Each request on a connection of its own.
      response.setHeader('connection', 'close')
      answer(request, response)
    },
    clientCa === undefined ? {} : { clientCa },
  )
  return { url: `https://127.0.0.1:${server.port}/mcp`, shown, server }
}

async function clientFiles(t: Test, name: string, options: CertificateOptions = {}, authority = clients) {
  const { cert, key } = await authority.serverOptions([name], { client: true, ...options })
  return { cert: file(t, cert), key: file(t, key) }
}

/** Without them, a server of Node.js hangs up where others say what is wrong. */
const NO_OPENSSL = spawnSync('openssl', ['version']).error ? 'no openssl here' : false

/** A TLS server that tells clients in the handshake what is wrong with their certificate. */
async function opensslServer(t: Test): Promise<number> {
  const { cert, key } = await ca.serverOptions(['127.0.0.1'])
  const args = ['s_server', '-www', '-accept', '127.0.0.1:0', '-cert', file(t, cert), '-key', file(t, key)]
  const child = spawn('openssl', [...args, '-CAfile', file(t, clients.cert), '-Verify', '1', '-verify_return_error'])
  t.teardown(() => child.kill('SIGKILL'))
  let said = ''
  child.stdout.on('data', (chunk: Buffer) => {
    said += chunk.toString()
  })
  const accepts = /^ACCEPT 127\.0\.0\.1:(\d+)/m
  await until(() => accepts.test(said), 'openssl listens')
  return Number(accepts.exec(said)?.[1])
}

const flags = (entry: { ca?: string; cert?: string; key?: string }) => [
  ...(entry.ca ? ['--ca', entry.ca] : []),
  ...(entry.cert ? ['--client-cert', entry.cert] : []),
  ...(entry.key ? ['--client-key', entry.key] : []),
]

const read = (url: string) => call(url, 'tools/call', { name: 'read', arguments: {} })

t.test('"ca" makes a server with a private authority trusted, and no other one', async (t) => {
  const { url } = await serve(t)
  const bridge = await startBridge(t, { url, ca: file(t, ca.cert) })
  t.equal((await read(bridge.url)).status, 200)
  const wrong = await startBridge(t, { url, ca: file(t, (await makeCa('Another')).cert) })
  t.match((await read(wrong.url)).text, /issued by an unknown authority|self-signed/)
})

t.test('a server that requires a certificate gets the one of its entry, also through a proxy', async (t) => {
  const { url, shown, server } = await serve(t, {}, clients.cert)
  const entry = { url, ca: file(t, ca.cert), ...(await clientFiles(t, 'bridge.acme.test')) }
  const bridge = await startBridge(t, entry)
  t.equal((await read(bridge.url)).status, 200)
  t.same([...new Set(shown)], ['bridge.acme.test'])
  const proxy = await ForwardProxy.start(t)
  const behind = await startBridge(
    t,
    { ...entry, url: `https://mcp.acme.test:${server.port}/mcp` },
    {},
    { env: { HTTPS_PROXY: proxy.url } },
  )
  t.equal((await read(behind.url)).status, 200)
  t.ok(proxy.tunnels.length > 0)
})

t.test('changed files are used for the next connection, and unusable ones are reported', async (t) => {
  const { url, shown } = await serve(t, {}, clients.cert)
  const files = await clientFiles(t, 'first.acme.test')
  const { url: bridge, log } = await startBridge(t, { url, ca: file(t, ca.cert), ...files })
  t.equal((await read(bridge)).status, 200)
  const next = await clients.serverOptions(['second.acme.test'], { client: true })
  writeFileSync(files.cert, next.cert)
  t.equal((await read(bridge)).status, 200, 'the certificate has been replaced, and the key not yet')
  t.equal(shown.at(-1), 'first.acme.test')
  const problem = log.filter(({ event }) => event === 'certificate_unusable')
  t.match(problem, [{ option: 'mcpServers.test.key', why: /is not the private key of the certificate/ }])
  writeFileSync(files.key, next.key)
  await until(async () => {
    await read(bridge)
    return shown.at(-1) === 'second.acme.test'
  }, 'the new certificate')
})

t.test('a certificate error is explained in words, with the next step', async (t) => {
  const trusted = { ca: file(t, ca.cert) }
  const good = await serve(t)
  const expired = await serve(t, PAST)
  const future = await serve(t, { notBefore: new Date(Date.now() + DAY), notAfter: new Date(Date.now() + 2 * DAY) })
  const selfSigned = await serve(t, { selfSigned: true })
  const asking = await serve(t, {}, clients.cert)
  const cases: [name: string, url: string, entry: { ca?: string; cert?: string; key?: string }, says: RegExp][] = [
    ['no authority', good.url, {}, /issued by an unknown authority[\s\S]*Set "ca" in its entry, or --ca/],
    ['self-signed', selfSigned.url, {}, /is self-signed[\s\S]*Set "ca"/],
    ['expired', expired.url, trusted, /has expired[\s\S]*Renew the certificate of the server/],
    ['not valid yet', future.url, trusted, /is not valid yet[\s\S]*Check the clocks/],
    [
      'another name',
      good.url.replace('127.0.0.1', 'localhost'),
      trusted,
      /for another host name[\s\S]*a host name that/,
    ],
    ['no certificate', asking.url, trusted, /requires a client certificate[\s\S]*--client-cert and --client-key/],
  ]
  for (const [name, url, entry, pattern] of cases) {
    const { code, stderr } = await run(t, ['probe', url, '--no-oauth', ...flags(entry)])
    t.equal(code, 1, name)
    t.match(stderr, pattern, name)
  }
  t.match(await run(t, ['probe', good.url, '--no-oauth', ...flags(trusted)]), { code: 0 })
})

t.test(
  'a server that refuses a client certificate gives a reason, and the bridge reports it',
  { skip: NO_OPENSSL },
  async (t) => {
    const trusted = { ca: file(t, ca.cert) }
    const port = await opensslServer(t)
    const url = `https://127.0.0.1:${port}/mcp`
    const cases: [name: string, more: { cert?: string; key?: string }, says: RegExp][] = [
      ['none', {}, /requires a client certificate[\s\S]*--client-cert and --client-key/],
      [
        'of another authority',
        await clientFiles(t, 'x', {}, ca),
        /does not trust the authority of the client certificate/,
      ],
      ['expired', await clientFiles(t, 'x', PAST), /client certificate has expired/],
    ]
    for (const [name, more, pattern] of cases) {
      const { code, stderr } = await run(t, ['probe', url, '--no-oauth', ...flags({ ...trusted, ...more })])
      t.equal(code, 1, name)
      t.match(stderr, pattern, name)
    }
  },
)

t.test('unusable files make the configuration invalid, and the error names the option', async (t) => {
  const { url } = await serve(t)
  const { cert, key } = await clientFiles(t, 'x')
  const { key: other } = await clientFiles(t, 'x')
  const check = async (entry: object) => {
    const config = temporaryFile(t, 'mcp.json', JSON.stringify({ mcpServers: { corp: { url, ...entry } } }, null, 2))
    return run(t, ['check', '--config', config])
  }
  const cases: [name: string, entry: object, says: RegExp][] = [
    ['no file', { ca: '/absent.pem' }, /mcp\.json:\d+:\d+.*mcpServers\.corp\.ca.*there is no file \/absent\.pem/],
    ['another key', { cert, key: other }, /mcpServers\.corp\.key.*is not the private key/],
    ['no key', { cert }, /mcpServers\.corp.*key.*is required with "cert"/],
    ['no certificate', { key }, /mcpServers\.corp.*cert.*is required with "key"/],
    ['no TLS', { url: 'http://mcp.acme.test/mcp', ca: cert }, /mcpServers\.corp\.ca.*is for https:\/\/ addresses/],
  ]
  for (const [name, entry, pattern] of cases) {
    const { code, stdout, stderr } = await check(entry)
    t.equal(code, 78, name)
    t.match(stdout + stderr, pattern, name)
  }
  t.match(await check({ cert, key, ca: file(t, ca.cert) }), { code: 0 })
  const flagged = await run(t, ['probe', url, '--ca', '/absent.pem'])
  t.match(flagged, { code: 78, stderr: /--ca.*there is no file \/absent\.pem/ })
  const program = await run(t, ['--ca', '/absent.pem', '--', execPath])
  t.match(program, { code: 2, stderr: /--ca is for servers with an address/ })
})

t.test(
  'requests of a sign-in trust the authority of the server, and only the server gets the certificate',
  async (t) => {
    const shown: Record<string, unknown> = {}
    const named = async (name: string) => {
      const own = await ca.serverOptions([name])
      const { port } = await serveTls(
        t,
        own,
        (request, response) => {
          shown[name] = (request.socket as TLSSocket).getPeerCertificate().subject?.CN
          response.end('{}')
        },
        // Asks, and takes nobody's.
        { clientCa: clients.cert, optional: true },
      )
      return `https://${name}:${port}/`
    }
    const [server, issuer] = [await named('mcp.acme.test'), await named('login.acme.test')]
    const entry = { url: server, ca: file(t, ca.cert), ...(await clientFiles(t, 'bridge')) }
    const settings = parseSettings({ mcpServers: { corp: entry } }, { env: {}, read: String }).mcpServers['corp']
    if (!settings) throw new TypeError('no settings')
    const tlsFor = signInTls(server, pemOfServer('corp', settings, undefined))
    const inside = { allowed: ['127.0.0.1'], resolve: async () => ['127.0.0.1'] }
    for (const url of [server, issuer]) {
      await t.rejects(guardedFetch(url, inside), { name: 'Failure', phase: 'tls', reason: 'certificate' })
      t.match(await guardedFetch(url, { ...inside, tlsFor }), { url })
    }
    t.same(shown, { 'mcp.acme.test': 'bridge', 'login.acme.test': undefined })
  },
)
