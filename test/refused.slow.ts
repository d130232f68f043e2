/** Servers that cannot be used: what a person is told of them, and what to do next. */

import { writeFileSync } from 'node:fs'
import { createServer as createHttp } from 'node:http'
import { createServer as createHttps } from 'node:https'
import { type AddressInfo, createServer as createTcp, type Server } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { run, says, startProgram } from './support/cli.js'
import { temporaryFolder } from './support/folder.js'
import { makeCa } from './support/tls.js'

async function listening(t: Test, server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  return (server.address() as AddressInfo).port
}

const answering = (t: Test, status: number, headers: Record<string, string> = {}) =>
  listening(
    t,
    createHttp((_request, response) => {
      response.writeHead(status, headers).end('<h1>internal.example</h1>')
    }),
  )

const statuses: [name: string, status: number, headers: Record<string, string>, next: RegExp][] = [
  ['a credential is missing', 401, {}, /Give it a credential with --header "Authorization: Bearer …"/],
  ['nothing is there', 404, {}, /Check the path of the address: most servers are at \/mcp/],
  [
    'it is elsewhere',
    301,
    { location: 'https://elsewhere.example/mcp?key=canary' },
    /The server redirects: use the address https:\/\/elsewhere\.example\/mcp instead\./,
  ],
  ['it has failed', 500, {}, /Look for the reason in its own log/],
  ['it is down', 503, {}, /try again later/],
]

t.test('prints a refusal over HTTP with the address, the status and what to try', async (t) => {
  await Promise.all(
    statuses.map(async ([name, status, headers, next]) => {
      const port = await answering(t, status, headers)
      const { code, stdout, stderr } = await run(t, ['probe', `http://127.0.0.1:${port}/mcp?token=canary`])
      t.equal(code, 1, name)
      t.equal(stdout, '')
      t.match(stderr, new RegExp(`http://127\\.0\\.0\\.1:${port}/mcp answered with HTTP ${status}\\.`), name)
      t.match(stderr, next, name)
      t.notMatch(
        stderr,
        /canary|mcp-bridge probe|^\s+at /m,
        `${name}: no secret, no advice to do the same again, no stack`,
      )
    }),
  )
})

t.test('logs a refusal with the same, for programs', async (t) => {
  const port = await answering(t, 404)
  const program = startProgram(t, ['--listen', 'http://127.0.0.1:0/mcp', '--upstream', `http://127.0.0.1:${port}/mcp`])
  const [line] = await says(program, /^.*server unavailable; retrying.*$/m)
  t.match(JSON.parse(line), {
    level: 40,
    server: '127.0.0.1',
    target: `http://127.0.0.1:${port}/mcp`,
    status: 404,
    next: /Check the path/,
  })
})

t.test('a mistake with TLS is one sentence, with the next step', async (t) => {
  const ca = await makeCa()
  const hour = 3_600_000
  const expired = {
    selfSigned: true,
    notBefore: new Date(Date.now() - 2 * hour),
    notAfter: new Date(Date.now() - hour),
  }
  const tls = async (...options: Parameters<typeof ca.serverOptions>) =>
    listening(t, createHttps(await ca.serverOptions(...options)))
  const address = ['127.0.0.1'] as const
  const plain = await answering(t, 200)
  const closing = await listening(
    t,
    createTcp((socket) => socket.destroy()),
  )
  const ssh = await listening(
    t,
    createTcp((socket) => {
      socket.on('error', () => {})
      socket.write('SSH-2.0-OpenSSH_9.6\r\n')
    }),
  )
  const cases: [name: string, url: string, what: RegExp, next: RegExp, env?: Record<string, string>][] = [
    [
      'TLS to a plain port',
      `https://127.0.0.1:${plain}/mcp`,
      /does not use TLS on this port$/m,
      /http:\/\/ instead of/,
    ],
    [
      'plain to a port of TLS',
      `http://127.0.0.1:${await tls(address)}/mcp`,
      /was closed before the answer/,
      /https:\/\//,
    ],
    ['closed at once', `http://127.0.0.1:${closing}/mcp`, /was closed before the answer/, /the log of the server/],
    ['another protocol', `http://127.0.0.1:${ssh}/mcp`, /The answer is not HTTP$/m, /Check the port/],
    [
      'self-signed',
      `https://127.0.0.1:${await tls(address, { selfSigned: true })}/mcp`,
      /certificate is self-signed$/m,
      /NODE_EXTRA_CA_CERTS=/,
    ],
    [
      'an authority of its own',
      `https://127.0.0.1:${await tls(address)}/mcp`,
      /was issued by an unknown authority$/m,
      /NODE_EXTRA_CA_CERTS=/,
    ],
    [
      'expired',
      `https://127.0.0.1:${await tls(address, expired)}/mcp`,
      /certificate has expired$/m,
      /Renew the certificate/,
    ],
    [
      'another name',
      `https://127.0.0.1:${await tls(['other.example'])}/mcp`,
      /certificate is for another host name$/m,
      /a host name that the certificate contains/,
      { NODE_EXTRA_CA_CERTS: fileWith(t, ca.cert) },
    ],
  ]
  await Promise.all(
    cases.map(async ([name, url, what, next, env = {}]) => {
      const { code, stderr } = await run(t, ['probe', url], env)
      t.equal(code, 1, name)
      t.match(stderr, what, name)
      t.match(stderr, next, name)
      t.notMatch(stderr, /:error:|^\s+at /m, name)
    }),
  )
})

t.test('gives up a silent server after timeouts.probe, and prints what it waits for', async (t) => {
  const port = await listening(
    t,
    createTcp((socket) => socket.on('error', () => {})),
  )
  const file = fileWith(
    t,
    JSON.stringify({
      mcpServers: { silent: { url: `http://127.0.0.1:${port}/mcp` } },
      timeouts: { probe: 1_500, initialize: 3_600_000 },
    }),
  )
  const { code, stderr } = await run(t, ['probe', '--config', file])
  t.equal(code, 1)
  t.match(stderr, /waits up to 1\.5 s for server\/discover, then up to 1\.5 s for initialize/)
  t.match(stderr, /The server "silent" is not available: No answer to initialize in 1500 ms/)
  t.notMatch(stderr, /mcp-bridge probe/)
})

function fileWith(t: Test, text: string): string {
  const file = join(temporaryFolder(t), 'file')
  writeFileSync(file, text)
  return file
}
