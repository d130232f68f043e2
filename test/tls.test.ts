/** A bridge that clients reach over TLS. */
import { writeFileSync } from 'node:fs'
import { Agent, get, request } from 'node:https'
import { connect as connectPlain } from 'node:net'
import { join } from 'node:path'
import { connect, type TLSSocket } from 'node:tls'
import t, { type Test } from 'tap'
import { run, says, startProgram } from './support/cli.js'
import { until } from './support/eventually.js'
import { temporaryFolder } from './support/folder.js'
import { envelope, headersFor } from './support/modern.js'
import { ModernHttp } from './support/modern-http.js'
import { makeCa } from './support/tls.js'

const ca = await makeCa()

/** A bridge with a certificate of its own. */
async function start(t: Test, more: readonly string[] = []) {
  const folder = temporaryFolder(t)
  const [cert, key] = [join(folder, 'tls.crt'), join(folder, 'tls.key')]
  const show = async (name: string) => {
    const next = await ca.serverOptions([name, 'localhost', '127.0.0.1'])
    writeFileSync(cert, next.cert)
    writeFileSync(key, next.key)
  }
  await show('first')
  const server = await ModernHttp.start(t)
  const files = ['--tls-cert', cert, '--tls-key', key]
  const program = startProgram(t, [
    ...['--listen', 'https://127.0.0.1:0/mcp', '--log-format', 'json', ...files, ...more, server.url],
  ])
  const [, url = ''] = await says(program, /"url":"(https:[^"]+)".*"listening"/)
  return { program, url: new URL(url), show, cert, key }
}

/** Sends a request. Resolves to its status, its body, and the name on the certificate. */
function ask(url: URL, agent: Agent, headers: Record<string, string> = {}) {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: { _meta: envelope() } })
  return new Promise<{ status: number; text: string; name: unknown }>((resolve, reject) => {
    const options = { method: 'POST', agent, ca: ca.cert, headers: { ...headersFor('tools/list'), ...headers } }
    request(url, options, (response) => {
      const name = (response.socket as TLSSocket).getPeerCertificate().subject?.CN
      let text = ''
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk
      })
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text, name }))
    })
      .on('error', reject)
      .end(body)
  })
}

/** One connection for each request, and no sessions of TLS, which show no certificate. */
const fresh = () => new Agent({ keepAlive: false, maxCachedSessions: 0 })

t.test('clients reach a bridge over TLS, and pages of its own origin may call it', async (t) => {
  const { program, url } = await start(t)
  t.match(await ask(url, fresh()), { status: 200, name: 'first' })
  t.match(await ask(url, fresh(), { origin: url.origin }), { status: 200 })
  t.match(await ask(url, fresh(), { origin: url.origin.replace('https', 'http') }), { status: 403 })
  t.match(program.stderr(), `curl -s ${url.href}`)
})

t.test('new connections get a changed certificate, and open ones stay', async (t) => {
  const { program, url, show, cert } = await start(t)
  const kept = new Agent({ keepAlive: true, maxSockets: 1, maxCachedSessions: 0 })
  t.teardown(() => kept.destroy())
  t.match(await ask(url, kept), { name: 'first' })
  await show('second')
  await until(async () => (await ask(url, fresh())).name === 'second', 'the new certificate')
  t.match(await ask(url, kept), { status: 200, name: 'first' }, 'on the connection from before')
  writeFileSync(cert, 'nonsense')
  await until(() => program.stderr().includes('"certificate_unusable"'), 'the log')
  t.match(program.stderr(), /"option":"tls\.cert","why":"[^"]*is not a PEM file"/)
  t.match(await ask(url, fresh()), { status: 200, name: 'second' })
})

t.test('logs a failed handshake, which affects no other connection', async (t) => {
  const { program, url } = await start(t)
  const plain = connectPlain(Number(url.port), '127.0.0.1')
  plain.on('error', () => {}).write('GET / HTTP/1.1\r\nhost: localhost\r\n\r\n')
  await until(() => program.stderr().includes('ERR_SSL_HTTP_REQUEST'), 'the refusal')
  const distrusting = connect({ port: Number(url.port), host: '127.0.0.1' })
  await new Promise((resolve) => distrusting.once('error', resolve))
  t.match(await ask(url, fresh()), { status: 200 })
  await until(() => plain.destroyed || plain.closed, 'the end of the connection')
})

t.test('admin can have TLS, too', async (t) => {
  const { program } = await start(t, ['--admin', 'https://127.0.0.1:0'])
  const [, admin = ''] = await says(program, /"url":"(https:[^"]+)".*"serving health/)
  const status = await new Promise((resolve, reject) => {
    get(new URL('/readyz', admin), { ca: ca.cert, agent: fresh() }, (response) => {
      response.resume()
      resolve(response.statusCode)
    }).on('error', reject)
  })
  t.equal(status, 200)
})

t.test('TLS without a certificate, and a certificate without TLS, are invalid', async (t) => {
  const { cert, key } = await start(t)
  const server = 'http://127.0.0.1:1/mcp'
  const files = ['--tls-cert', cert, '--tls-key', key]
  const cases: [name: string, args: readonly string[], says: RegExp][] = [
    ['no certificate', ['--listen', 'https://127.0.0.1:0'], /--listen.*begins with https:\/\/, which requires .*tls/],
    ['no TLS', files, /is for https:\/\/ addresses: begin .*listen.* with https:\/\//],
    ['no key', ['--listen', 'https://127.0.0.1:0', '--tls-cert', cert], /tls.*key/],
    [
      'a file that is none',
      ['--listen', 'https://127.0.0.1:0', '--tls-cert', cert, '--tls-key', cert],
      /--tls-key.*has no private key/,
    ],
  ]
  for (const [name, args, pattern] of cases)
    t.match(await run(t, [...args, '--upstream', server]), { code: 78, stderr: pattern }, name)
})
