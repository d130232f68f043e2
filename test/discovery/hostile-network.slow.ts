/** What hostile names, addresses and servers try, none of which comes to anything, nor anywhere near a trap. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import type { Failure } from '../../src/base/net/failure.js'
import { type FetchOptions, guardedFetch } from '../../src/base/net/fetch.js'
import { parseJson } from '../../src/services/discovery/sources/server-json.js'
import { serveNames } from '../support/dns.js'
import { INSIDE, MALFORMED } from '../support/spellings.js'
import { makeCa, type ServerOptions } from '../support/tls.js'
import { setTrap } from '../support/trap.js'

const trap = await setTrap(t)
const ca = await makeCa()
const good = await ca.serverOptions(['mcp.example'])
const PUBLIC = '93.184.215.14'

/** A time limit that nothing exceeds that ends by itself; and one that ends what does not, yet is enough for its beginning. */
const AMPLE = 600_000
const SCARCE = 10_000
const limitFor = (reason: string) => (reason === 'timeout' ? SCARCE : AMPLE)

/** As if what is fetched were to be read: what is no JSON is refused there at the latest. */
async function read(url: string, options: FetchOptions): Promise<unknown> {
  const { bytes } = await guardedFetch(url, options)
  return parseJson(bytes)
}

/** Fails where it should, and does not say what it was sent. */
async function refused(t: Test, name: string, answer: Promise<unknown>, phase: string, reason?: string): Promise<void> {
  const error = await answer.then(
    (value) => ({ message: `it was taken: ${JSON.stringify(value)?.slice(0, 100)}` }),
    (thrown: Failure) => thrown,
  )
  t.match(error, { name: 'Failure', phase, ...(reason !== undefined && { reason }) }, name)
  t.notMatch(error.message, /secret/, `${name}: nothing is told`)
}

const nobodyCame = async (t: Test) => t.same(await trap.caught(), [], 'nobody came to the trap')

t.test('the trap is reachable in each of the tried ways', async (t) => {
  const own = await setTrap(t)
  const ways: FetchOptions[] = [
    { allowed: ['127.0.0.0/8'] },
    { allowed: ['inside.example'], resolve: async () => ['127.0.0.1'] },
    { allowLoopback: true },
  ]
  const urls = [`https://127.1:${own.port}/`, `https://inside.example:${own.port}/`, `https://localhost:${own.port}/`]
  for (const [index, options] of ways.entries())
    await t.rejects(guardedFetch(urls[index] as string, options), { name: 'Failure', phase: 'tls' })
  t.ok((await own.caught()).length >= 3)
})

t.test('reaches no spelling of a private address', async (t) => {
  for (const [name, host] of INSIDE)
    await refused(t, name, read(`https://${host}:${trap.port}/`, { ca: ca.cert }), 'guard')
  for (const [name, host] of MALFORMED)
    await refused(t, name, read(`https://${host}:${trap.port}/`, { ca: ca.cert }), 'url', 'malformed')
  await nobodyCame(t)
})

t.test('no trick with an address reaches a private one', async (t) => {
  const { port } = trap
  const cases: [name: string, url: string, phase: string, reason?: string][] = [
    ['a public user of a host inside', `https://mcp.example@127.0.0.1:${port}/`, 'url', 'credentials'],
    ['with a password', `https://mcp.example:443@127.0.0.1:${port}/`, 'url', 'credentials'],
    ['an encoded @', `https://mcp.example%40127.0.0.1:${port}/`, 'url', 'malformed'],
    ['a backslash for a slash', `https:\\\\127.0.0.1:${port}\\`, 'url', 'malformed'],
    ['a backslash before an @', `https://mcp.example\\@127.0.0.1:${port}/`, 'url', 'malformed'],
    ['a fragment before an @', `https://127.0.0.1:${port}#@mcp.example/`, 'url', 'fragment'],
    ['a fragment', 'https://mcp.example/#secret', 'url', 'fragment'],
    ['an empty fragment', 'https://mcp.example/#', 'url', 'fragment'],
    ['one slash', `https:/127.0.0.1:${port}/`, 'guard'],
    ['no slash', `https:127.0.0.1:${port}`, 'guard'],
    ['many slashes', `https://////127.0.0.1:${port}/`, 'guard'],
    ['a tab in the address', `https://127.0.\t0.1:${port}/`, 'url', 'malformed'],
    ['a line break in the address', `https://127.0.0.1\r\n:${port}/`, 'url', 'malformed'],
    ['a NUL in the host', 'https://mcp.example\u0000.evil.example/', 'url', 'malformed'],
    ['a space before it', ` https://127.0.0.1:${port}/`, 'url', 'malformed'],
    ['port 0', 'https://mcp.example:0/', 'url', 'port'],
    ['port 65536', 'https://mcp.example:65536/', 'url', 'malformed'],
    ['a negative port', 'https://mcp.example:-1/', 'url', 'malformed'],
    ['a host that is too long', `https://${'a.'.repeat(200)}example/`, 'url', 'malformed'],
    ['no host', 'https://', 'url', 'malformed'],
    ['plain HTTP inside', `http://127.0.0.1:${port}/`, 'url', 'scheme'],
    ['plain HTTP outside', 'http://mcp.example/', 'url', 'scheme'],
    ['a file', 'file:///etc/passwd', 'url', 'scheme'],
    ['a file of a host', `file://127.0.0.1:${port}/etc/passwd`, 'url'],
    ['FTP', `ftp://127.0.0.1:${port}/`, 'url', 'scheme'],
    ['data', 'data:application/json,{}', 'url', 'scheme'],
    ['a script', 'javascript:fetch("https://127.0.0.1")', 'url', 'scheme'],
    ['Gopher', `gopher://127.0.0.1:${port}/_GET%20/`, 'url', 'scheme'],
    ['a web socket', `wss://127.0.0.1:${port}/`, 'url', 'scheme'],
    ['a blob', `blob:https://127.0.0.1:${port}/1`, 'url', 'scheme'],
    ['a socket of Unix', 'unix:/var/run/docker.sock', 'url', 'scheme'],
    ['no scheme', `//127.0.0.1:${port}/`, 'url', 'malformed'],
    ['nothing', '', 'url', 'malformed'],
  ]
  for (const [name, url, phase, reason] of cases) {
    await refused(t, name, read(url, { ca: ca.cert, resolve: async () => [PUBLIC] }), phase, reason)
  }
  await nobodyCame(t)
})

t.test('refuses names that resolve to private addresses', async (t) => {
  const names = await serveNames(t, {
    'loopback.example': { A: [['127.0.0.1']] },
    '127.0.0.1.nip.example': { A: [['127.0.0.1']] },
    'loopback6.example': { AAAA: [['::1']] },
    'private.example': { A: [['10.1.2.3']] },
    'metadata.example': { A: [['169.254.169.254']] },
    'zero.example': { A: [['0.0.0.0']] },
    'mapped.example': { AAAA: [['::ffff:127.0.0.1']] },
    'nat64.example': { AAAA: [['64:ff9b::7f00:1']] },
    'local6.example': { AAAA: [['fd00::1']] },
    'mixed.example': { A: [[PUBLIC, '127.0.0.1']] },
    'mixed-last.example': { A: [[PUBLIC, '1.1.1.1', '8.8.8.8', '192.168.0.1']] },
    'families.example': { A: [[PUBLIC]], AAAA: [['::1']] },
    'families-other.example': { A: [['127.0.0.1']], AAAA: [['2606:4700:4700::1111']] },
    'alias.example': { CNAME: 'loopback.example' },
    'alias-of-localhost.example': { CNAME: 'localhost' },
    localhost: { A: [['127.0.0.1']] },
    'many.example': { A: [[...Array.from({ length: 24 }, (_, index) => `93.184.215.${index + 1}`), '127.0.0.1']] },
    // Public for who looks first, inside for who looks again.
    'second-look.example': { A: [['127.0.0.1'], [PUBLIC]] },
  })
  const hosts = [
    'loopback.example',
    '127.0.0.1.nip.example',
    'loopback6.example',
    'private.example',
    'metadata.example',
    'zero.example',
    'mapped.example',
    'nat64.example',
    'local6.example',
    'mixed.example',
    'mixed-last.example',
    'families.example',
    'families-other.example',
    'alias.example',
    'alias-of-localhost.example',
    'many.example',
    'second-look.example',
    'LOOPBACK.example',
    'loopback.example.',
  ]
  for (const host of hosts)
    await refused(t, host, read(`https://${host}:${trap.port}/`, names), 'guard', 'internal-address')
  await nobodyCame(t)
})

t.test('names that change their address reach no private one', async (t) => {
  const names = await serveNames(t, {
    'rebinding.example': { A: [[PUBLIC], ['127.0.0.1']] },
    'listed.example': { A: [['127.0.0.1'], ['10.1.2.3']] },
  })
  // What was checked is what is connected to. In the place of the Internet is a server of our own, which is not taken for it.
  const internet = await standIn(t)
  const asked = () => names.asked.filter((one) => one === 'A rebinding.example').length
  const first = guardedFetch(`https://rebinding.example:${trap.port}/`, { ...names, dial: internet.dial })
  await refused(t, 'public, then inside', first, 'connect', 'elsewhere')
  t.same(internet.dialled, [[PUBLIC]])
  t.equal(asked(), 1, 'nobody looks a second time')
  await refused(t, 'asked again', read(`https://rebinding.example:${trap.port}/`, names), 'guard', 'internal-address')
  // The same with the connections of the system: an address that is listed, and one that is not.
  const listed = await standIn(t)
  const url = `https://listed.example:${listed.port}/`
  await refused(t, 'listed, then not', guardedFetch(url, { ...names, allowed: ['127.0.0.1'] }), 'tls')
  t.equal(listed.came, 1)
  await refused(t, 'asked again, not listed', read(url, { ...names, allowed: ['127.0.0.1'] }), 'guard')
  // A resolver that answers with what is not an address, or with a spelling that others read differently.
  for (const answer of ['127.1', '0x7f.0.0.1', '2130706433', 'loopback.example', '', '127.0.0.1:80', 'fe80::1%lo'])
    await refused(
      t,
      `the answer ${JSON.stringify(answer)}`,
      read(`https://mcp.example:${trap.port}/`, { resolve: async () => [answer] }),
      'guard',
    )
  // A list that changes after it was checked.
  const list = [PUBLIC]
  const dial = (addresses: readonly string[]) => {
    list.splice(0, 1, '127.0.0.1')
    return internet.dial(addresses)
  }
  const changing = guardedFetch(`https://mcp.example:${trap.port}/`, { resolve: async () => list, dial })
  await refused(t, 'a list that is changed', changing, 'connect', 'elsewhere')
  t.same(internet.dialled, [[PUBLIC], [PUBLIC]])
  t.equal(internet.received, 0, 'not a byte was sent')
  await nobodyCame(t)
})

/** A server in the place of one that is not to be reached from a test. */
async function standIn(t: Test) {
  let came = 0
  const dialled: (readonly string[])[] = []
  let received = 0
  const server = createServer((socket) => {
    came++
    socket.on('error', () => {})
    socket.on('data', (bytes) => {
      received += bytes.length
      socket.destroy()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  const dial = (addresses: readonly string[]) => {
    dialled.push(addresses)
    return connect(port, '127.0.0.1')
  }
  return {
    port,
    dialled,
    dial,
    get came() {
      return came
    },
    get received() {
      return received
    },
  }
}

/** A server that says, byte by byte, what a test wants. */
async function speak(t: Test, options: Partial<ServerOptions>, say: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>()
  const server = createTlsServer(options, (socket) => {
    socket.on('error', () => {})
    // It answers when it has been asked.
    socket.once('data', () => say(socket))
  })
  server.on('connection', (socket) => sockets.add(socket.on('error', () => {})))
  server.on('tlsClientError', () => {})
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return `https://mcp.example:${(server.address() as AddressInfo).port}/`
}

/** The test's own servers are inside: this is how they are reached, and the trap would be as well. */
const inside: FetchOptions = { ca: ca.cert, allowed: ['127.0.0.0/8'], resolve: async () => ['127.0.0.1'] }

const answer =
  (head: string, body: string | Buffer = '') =>
  (socket: Socket) => {
    socket.write(`HTTP/1.1 ${head}\r\n\r\n`)
    socket.end(body)
  }

t.test('redirects reach no private address', async (t) => {
  const inward = `https://127.0.0.1:${trap.port}/secret`
  const cases: [name: string, head: string][] = [
    ...[300, 301, 302, 303, 305, 307, 308].map((status): [string, string] => [
      `${status} inside`,
      `${status} Moved\r\nLocation: ${inward}`,
    ]),
    ['to another host', `302 Found\r\nLocation: https://trap.example:${trap.port}/secret`],
    ['to the same host', '302 Found\r\nLocation: /secret'],
    ['to plain HTTP', `302 Found\r\nLocation: http://127.0.0.1:${trap.port}/secret`],
    ['without TLS and host', `302 Found\r\nLocation: //127.0.0.1:${trap.port}/secret`],
    ['to a file', '302 Found\r\nLocation: file:///secret'],
    ['to a script', '302 Found\r\nLocation: javascript:secret'],
    ['with a user', `302 Found\r\nLocation: https://secret:secret@127.0.0.1:${trap.port}/`],
    ['to two places', `302 Found\r\nLocation: ${inward}\r\nLocation: ${inward}`],
    ['to nowhere', '302 Found'],
    ['to what is not an address', '302 Found\r\nLocation: https://[secret'],
    ['with a body', `302 Found\r\nLocation: ${inward}\r\nContent-Length: 2`],
  ]
  for (const [name, head] of cases) {
    const url = await speak(t, good, answer(head, name === 'with a body' ? '{}' : ''))
    await refused(t, name, read(url, inside), 'http', 'redirect')
  }
  const others: [name: string, head: string][] = [
    ['by a header', `200 OK\r\nRefresh: 0; url=${inward}\r\nContent-Type: text/html`],
    ['by where it says it is', `200 OK\r\nContent-Location: ${inward}`],
    ['by a link', `200 OK\r\nLink: <${inward}>; rel="canonical"`],
    ['to another service', `200 OK\r\nAlt-Svc: h2="127.0.0.1:${trap.port}"`],
  ]
  for (const [name, head] of others) {
    const url = await speak(t, good, answer(head, `<meta http-equiv="refresh" content="0; url=${inward}">`))
    await refused(t, name, read(url, inside), 'document', 'malformed')
  }
  await nobodyCame(t)
})

t.test('refuses servers without a valid certificate', async (t) => {
  const stranger = await makeCa('Somebody else')
  const hour = 3_600_000
  const cases: [name: string, options: Partial<ServerOptions>, reason: string][] = [
    ['of another host', await ca.serverOptions(['other.example']), 'certificate'],
    ['of a host below', await ca.serverOptions(['www.mcp.example']), 'certificate'],
    ['of all hosts below', await ca.serverOptions(['*.mcp.example']), 'certificate'],
    ['of everything', await ca.serverOptions(['*']), 'certificate'],
    ['of the address only', await ca.serverOptions(['127.0.0.1']), 'certificate'],
    ['with a NUL in the name', await ca.serverOptions(['mcp.example\0.evil.example']), 'certificate'],
    ['signed by itself', await ca.serverOptions(['mcp.example'], { selfSigned: true }), 'certificate'],
    ['expired', await ca.serverOptions(['mcp.example'], { notAfter: new Date(Date.now() - hour) }), 'certificate'],
    [
      'not yet valid',
      await ca.serverOptions(['mcp.example'], { notBefore: new Date(Date.now() + hour) }),
      'certificate',
    ],
    ['of another authority', await stranger.serverOptions(['mcp.example']), 'certificate'],
    ['of another authority by the same name', await (await makeCa()).serverOptions(['mcp.example']), 'certificate'],
    ['none', {}, 'handshake'],
  ]
  for (const [name, options, reason] of cases) {
    let asked = false
    const url = await speak(t, options, () => {
      asked = true
    })
    await refused(t, name, read(url, inside), 'tls', reason)
    t.notOk(asked, `${name}: nothing was asked`)
  }
  const url = await speak(t, good, answer('200 OK', '{}'))
  const { NODE_TLS_REJECT_UNAUTHORIZED: before } = process.env
  process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0'
  t.teardown(() => {
    if (before === undefined) delete process.env['NODE_TLS_REJECT_UNAUTHORIZED']
    else process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = before
  })
  const { ca: _ca, ...withoutCa } = inside
  await refused(t, 'though the environment would take anything', read(url, withoutCa), 'tls', 'certificate')
  await nobodyCame(t)
})

t.test('hostile handshakes end in time', async (t) => {
  const cases: [name: string, begin: (socket: Socket) => void, reason: string][] = [
    ['that stall', () => {}, 'timeout'],
    ['that stall after a byte', (socket) => socket.write('\x16'), 'timeout'],
    ['in plain text', (socket) => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}'), 'handshake'],
    ['of another protocol', (socket) => socket.write('SSH-2.0-OpenSSH_9.9\r\n'), 'handshake'],
    ['that end at once', (socket) => socket.end(), 'closed'],
    ['that are reset', (socket) => socket.once('data', () => socket.resetAndDestroy()), 'closed'],
  ]
  const waiting: Promise<void>[] = []
  for (const [name, begin, reason] of cases) {
    const server = createServer((socket) => {
      socket.on('error', () => {})
      begin(socket)
      t.teardown(() => socket.destroy())
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.teardown(() => server.close())
    const url = `https://mcp.example:${(server.address() as AddressInfo).port}/`
    const done = refused(t, name, read(url, { ...inside, timeLimit: limitFor(reason) }), 'tls', reason)
    if (reason === 'timeout') waiting.push(done)
    else await done
  }
  await Promise.all(waiting)
  await nobodyCame(t)
})

t.test('bounds hostile answers', async (t) => {
  const bomb = Buffer.alloc(64 * 1024 * 1024)
  const large = Buffer.alloc(300_000, 'x')
  const drip = (piece: string, milliseconds: number) => (socket: Socket) => {
    const timer = setInterval(() => socket.write(piece), milliseconds)
    socket.on('close', () => clearInterval(timer))
  }
  const both =
    (...parts: ((socket: Socket) => void)[]) =>
    (socket: Socket) => {
      for (const part of parts) part(socket)
    }
  const write = (text: string | Buffer) => (socket: Socket) => void socket.write(text)
  const flood = (text: string) => (socket: Socket) => {
    const more = () => {
      while (!socket.destroyed && socket.write(text));
    }
    socket.on('drain', more)
    more()
  }
  const head = 'HTTP/1.1 200 OK\r\n'
  const cases: [name: string, say: (socket: Socket) => void, phase: string, reason: string][] = [
    ['that is silent', () => {}, 'http', 'timeout'],
    ['that hangs up', (socket) => socket.end(), 'http', 'closed'],
    ['that hangs up in its head', (socket) => socket.end('HTTP/1.1 200 OK\r\nContent-'), 'http', 'closed'],
    ['whose length is too large', answer('200 OK\r\nContent-Length: 262145', large), 'body', 'too-large'],
    ['whose length is absurd', answer('200 OK\r\nContent-Length: 9007199254740993'), 'body', 'too-large'],
    ['whose length is no number', answer('200 OK\r\nContent-Length: secret', '{}'), 'http', 'malformed'],
    ['whose length is negative', answer('200 OK\r\nContent-Length: -1', '{}'), 'http', 'malformed'],
    ['with two lengths', answer('200 OK\r\nContent-Length: 2\r\nContent-Length: 3', '{}'), 'http', 'malformed'],
    [
      'with a length and chunks',
      answer('200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked', '2\r\n{}\r\n0\r\n\r\n'),
      'http',
      'malformed',
    ],
    ['that is longer than it says', answer('200 OK\r\nContent-Length: 4', '{"secret":1}'), 'document', 'malformed'],
    ['that is shorter than it says', answer('200 OK\r\nContent-Length: 100', '{}'), 'body', 'truncated'],
    ['without a length and an end', both(write(`${head}\r\n`), flood('x'.repeat(16_384))), 'body', 'too-large'],
    [
      'in chunks without end',
      both(write(`${head}Transfer-Encoding: chunked\r\n\r\n`), flood(`1000\r\n${'x'.repeat(4_096)}\r\n`)),
      'body',
      'too-large',
    ],
    [
      'in tiny chunks',
      both(write(`${head}Transfer-Encoding: chunked\r\n\r\n`), flood('1\r\nx\r\n'.repeat(1_000))),
      'body',
      'too-large',
    ],
    [
      'with a chunk that is too large',
      answer('200 OK\r\nTransfer-Encoding: chunked', 'fffffffffffffffff\r\n'),
      'body',
      'malformed',
    ],
    ['whose chunks are none', answer('200 OK\r\nTransfer-Encoding: chunked', 'secret\r\n'), 'body', 'malformed'],
    ['whose chunks end early', answer('200 OK\r\nTransfer-Encoding: chunked', '10\r\n{}'), 'body', 'truncated'],
    [
      'with extensions of chunks without end',
      both(write(`${head}Transfer-Encoding: chunked\r\n\r\n1;`), flood('x'.repeat(4_096))),
      'body',
      'too-large',
    ],
    ['drop by drop', both(write(`${head}Content-Length: 1000\r\n\r\n`), drip('x', 50)), 'body', 'timeout'],
    ['that stalls in its body', write(`${head}Content-Length: 10\r\n\r\n{`), 'body', 'timeout'],
    ['whose head comes drop by drop', both(write(head), drip('x', 50)), 'http', 'timeout'],
    ['in gzip', answer('200 OK\r\nContent-Encoding: gzip', gzipSync('{}')), 'http', 'encoding'],
    ['in deflate', answer('200 OK\r\nContent-Encoding: deflate', deflateSync('{}')), 'http', 'encoding'],
    ['in Brotli', answer('200 OK\r\nContent-Encoding: br', brotliCompressSync('{}')), 'http', 'encoding'],
    ['in Zstandard', answer('200 OK\r\nContent-Encoding: zstd', '(secret'), 'http', 'encoding'],
    ['in several encodings', answer('200 OK\r\nContent-Encoding: gzip, gzip, gzip', 'secret'), 'http', 'encoding'],
    [
      'in an encoding beside none',
      answer('200 OK\r\nContent-Encoding: identity\r\nContent-Encoding: gzip', 'secret'),
      'http',
      'encoding',
    ],
    [
      'in an encoding of its transfer',
      answer('200 OK\r\nTransfer-Encoding: gzip, chunked', '2\r\n{}\r\n0\r\n\r\n'),
      'http',
      'encoding',
    ],
    ['in a gzip bomb', answer('200 OK\r\nContent-Encoding: gzip', gzipSync(bomb)), 'http', 'encoding'],
    ['in a gzip bomb that does not say so', answer('200 OK', gzipSync(bomb)), 'document', 'malformed'],
    ['with a header that is too long', answer(`200 OK\r\nX-Secret: ${'x'.repeat(20_000)}`, '{}'), 'http', 'headers'],
    ['with too many headers', answer(`200 OK\r\n${'X-Secret: secret\r\n'.repeat(2_000)}X: y`, '{}'), 'http', 'headers'],
    ['with headers without end', both(write(head), flood('X-Secret: secret\r\n'.repeat(100))), 'http', 'headers'],
    ['with a status line without end', flood('HTTP/1.1 200 '.padEnd(4_096, 'x')), 'http', 'headers'],
    [
      'with trailers without end',
      both(
        write(`${head}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n`),
        flood('X-Secret: secret\r\n'.repeat(100)),
      ),
      'http',
      'headers',
    ],
    ['always still to come', flood('HTTP/1.1 103 Early Hints\r\nLink: </secret>\r\n\r\n'), 'http', 'headers'],
    ['that says to go on', answer('100 Continue\r\n\r\nHTTP/1.1 200 OK', '{}'), 'http', 'closed'],
    [
      'that changes the protocol',
      answer('101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade'),
      'http',
      'closed',
    ],
    [
      'split in two by a line break',
      answer('200 OK\r\nX: y\r\n\r\n', 'HTTP/1.1 200 OK\r\n\r\n{"secret":1}'),
      'document',
      'malformed',
    ],
    ['with a bare line feed', answer('200 OK\nContent-Length: 2', '{}'), 'http', 'malformed'],
    ['with a NUL in a header', answer('200 OK\r\nX: secret\0', '{}'), 'http', 'malformed'],
    ['with a space before a colon', answer('200 OK\r\nContent-Length : 2', '{}'), 'http', 'malformed'],
    ['of HTTP/0.9', write('{"secret": 1}\n'), 'http', 'malformed'],
    ['of HTTP/2', write('\0\0\0\x04\0\0\0\0\0'), 'http', 'malformed'],
    ['of another protocol', write('220 mail.example ESMTP\r\n'), 'http', 'malformed'],
    ['without content', answer('204 No Content'), 'http', 'status'],
    ['without content, and with some', answer('204 No Content\r\nContent-Length: 2', '{}'), 'http', 'status'],
    ['in part', answer('206 Partial Content\r\nContent-Range: bytes 0-1/2', '{}'), 'http', 'status'],
    ['not modified', answer('304 Not Modified'), 'http', 'status'],
    ['not modified, with a body', answer('304 Not Modified\r\nContent-Length: 2', '{}'), 'http', 'status'],
    [
      'that wants credentials',
      answer('401 Unauthorized\r\nWWW-Authenticate: Basic realm="secret"', '{}'),
      'http',
      'status',
    ],
    ['that wants credentials of a proxy', answer('407 Proxy\r\nProxy-Authenticate: Basic', '{}'), 'http', 'status'],
    ['of a status that there is not', answer('999 Secret', '{}'), 'http', 'unavailable'],
    ['of a status that is none', answer('20 OK', '{}'), 'http', 'malformed'],
    [
      'that is a page',
      answer('200 OK\r\nContent-Type: text/html', '<!doctype html><p>secret'),
      'document',
      'malformed',
    ],
    ['that is not UTF-8', answer('200 OK', Buffer.from([0x22, 0xff, 0xfe, 0x22])), 'document', 'malformed'],
    ['that is empty', answer('200 OK\r\nContent-Length: 0'), 'document', 'malformed'],
    ['that is two documents', answer('200 OK', '{}{"secret":1}'), 'document', 'malformed'],
    ['nested without end', answer('200 OK', '['.repeat(200_000)), 'document', 'malformed'],
  ]
  const before = process.memoryUsage().rss
  const waiting: Promise<void>[] = []
  for (const [name, say, phase, reason] of cases) {
    const url = await speak(t, good, say)
    const done = refused(t, `an answer ${name}`, read(url, { ...inside, timeLimit: limitFor(reason) }), phase, reason)
    if (reason === 'timeout') waiting.push(done)
    else await done
  }
  await Promise.all(waiting)
  t.ok(process.memoryUsage().rss - before < 200 * 1024 * 1024, 'and none is kept')
  await nobodyCame(t)
})

t.test('gives up a stalled body sooner than one that makes progress', async (t) => {
  const url = await speak(t, good, (socket) => void socket.write('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{'))
  // The time limit of a body that moves is longer than this test may last.
  await refused(t, 'stalled', read(url, { ...inside, timeLimit: 3_600_000 }), 'body', 'timeout')
})
