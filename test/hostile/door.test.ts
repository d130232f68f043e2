/** What is refused before it becomes a call: the answer arrives, is JSON-RPC, and leaves a line and a count. */
import { request as httpRequest } from 'node:http'
import { connect } from 'node:net'
import t, { type Test } from 'tap'
import { Listener } from '../../src/app/listener.js'
import { Fault } from '../../src/base/fault/fault.js'
import { Refusals } from '../../src/clients/http/refusals.js'
import { Metrics } from '../../src/services/telemetry/metrics.js'
import { startBridge } from '../support/bridge.js'
import { openStream } from '../support/events.js'
import { repeatUntil, until } from '../support/eventually.js'
import { LegacyClient } from '../support/legacy-client.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { call, envelope, headersFor, post } from '../support/modern.js'
import { ModernHttp } from '../support/modern-http.js'
import { raw, requestText } from '../support/raw.js'

const META = JSON.stringify(envelope())
const LIST = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":${META}}}`
const MODERN = Object.entries(headersFor('tools/list')).map(([name, value]) => `${name}: ${value}`)
const TOKEN = 'alice-0123456789abcdef'

async function start(t: Test, settings: object = {}) {
  const legacy = await LegacyHttp.start(t)
  const metrics = new Metrics({ version: '0' })
  const started = await startBridge(t, { url: legacy.url }, settings, { metrics })
  const { host } = new URL(started.url)
  const refused = async (reason: string) => {
    const lines = (await metrics.text([])).split('\n').filter((line) => line.startsWith('mcp_bridge_refusals_total'))
    const ofReason = lines.filter((line) => line.includes(`reason="${reason}"`))
    return ofReason.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
  }
  return {
    ...started,
    legacy,
    host,
    refused,
    lines: () => started.log.filter(({ event }) => event === 'request_refused'),
  }
}

const admin = (settings: object = {}) => ({ admin: 'http://127.0.0.1:0', ...settings })

t.test('refuses a request target that names another host', async (t) => {
  const { url, bridge, host, legacy } = await start(t, admin())
  for (const line of ['POST http://evil.example/mcp HTTP/1.1', `POST ${url} HTTP/1.1`, 'POST mcp HTTP/1.1']) {
    const answer = await raw(url, [requestText([`host: ${host}`, ...MODERN], LIST, line)])
    t.equal(answer.status, 400, line)
    t.match(JSON.parse(answer.body), { jsonrpc: '2.0', error: { code: -32600 } }, line)
  }
  const adminUrl = String(bridge.adminUrl)
  const told = await raw(adminUrl, [`GET ${adminUrl}/metrics HTTP/1.1\r\nhost: ${new URL(adminUrl).host}\r\n\r\n`])
  t.equal(told.status, 400)
  t.equal(legacy.received.length, 0)
})

t.test('refuses an invalid target, and a request without a version, in JSON-RPC', async (t) => {
  const { url, host, refused, legacy } = await start(t)
  for (const line of ['POST /mcp%zz HTTP/1.1', 'POST /%c3%28 HTTP/1.1', 'POST /mcp', 'GET /mcp']) {
    const answer = await raw(url, [requestText([`host: ${host}`, ...MODERN], LIST, line)])
    t.equal(answer.status, 400, line)
    t.match(JSON.parse(answer.body), { jsonrpc: '2.0', error: { code: -32600 } }, line)
    t.notMatch(answer.body, /FST_/, line)
  }
  t.equal(await refused('invalidRequest'), 4)
  t.equal(legacy.received.length, 0)
})

t.test('refuses what Node cannot parse as a request in JSON-RPC, and counts it', async (t) => {
  const { url, host, refused, lines } = await start(t)
  const rows: [name: string, bytes: string, status: number, reason: string][] = [
    ['rubbish', 'hello\r\n\r\n', 400, 'invalidRequest'],
    ['a method that is none', `FETCH /mcp HTTP/1.1\r\nhost: ${host}\r\n\r\n`, 400, 'invalidRequest'],
    ['TLS', '\u0016\u0003\u0001\u0002\u0000\u0001\u0000', 400, 'invalidRequest'],
    [
      'a header with a control character',
      `GET /mcp HTTP/1.1\r\nhost: ${host}\r\na: \u0001\r\n\r\n`,
      400,
      'invalidRequest',
    ],
    [
      'two lengths',
      `POST /mcp HTTP/1.1\r\nhost: ${host}\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab`,
      400,
      'invalidRequest',
    ],
    [
      'a length and chunks',
      `POST /mcp HTTP/1.1\r\nhost: ${host}\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
      400,
      'invalidRequest',
    ],
    [
      '20 KiB of headers',
      `GET /mcp HTTP/1.1\r\nhost: ${host}\r\na: ${'x'.repeat(20_000)}\r\n\r\n`,
      431,
      'tooManyHeaders',
    ],
    [
      'an expectation of its own',
      `GET /mcp HTTP/1.1\r\nhost: ${host}\r\nexpect: tea\r\n\r\n`,
      417,
      'expectationFailed',
    ],
  ]
  for (const [name, bytes, status, reason] of rows) {
    const before = await refused(reason)
    const answer = await raw(url, [bytes])
    t.equal(answer.status, status, name)
    t.match(answer.head, /content-type: application\/json/i, name)
    t.match(JSON.parse(answer.body), { jsonrpc: '2.0', error: { code: -32600 } }, name)
    t.equal(await refused(reason), before + 1, name)
  }
  t.ok(lines().every(({ from }) => from === '127.0.0.1'))
})

t.test('checks headers past the 1,000th, on any version of Node.js', async (t) => {
  const { url, host, bridge, legacy } = await start(t, admin({ auth: { tokens: { alice: TOKEN } } }))
  const many = Array.from({ length: 1_005 }, (_, i) => `${'abcdefghij'.charAt(i % 10)}: 1`)
  const hidden = ['origin: http://evil.example', `authorization: Bearer ${TOKEN}`]
  const at = String(bridge.adminUrl)
  const rows: [string, string, string][] = [
    [url, 'POST /mcp HTTP/1.1', host],
    [url, 'GET /sse HTTP/1.1', host],
    [url, 'GET /nowhere HTTP/1.1', host],
    [at, 'GET /metrics HTTP/1.1', new URL(at).host],
    [at, 'GET /healthz HTTP/1.1', new URL(at).host],
  ]
  for (const [to, line, name] of rows) {
    const body = line.startsWith('POST') ? LIST : ''
    const answer = await raw(to, [requestText([`host: ${name}`, ...many, ...hidden, ...MODERN], body, line)])
    t.equal(answer.status, 431, `${line} (Node.js ${process.version})`)
    t.match(JSON.parse(answer.body), { error: { code: -32600, message: /at most 100/ } }, line)
  }
  t.equal(legacy.received.length, 0)
})

t.test('a client that is still sending gets the refusal of a large request', async (t) => {
  const { url, refused } = await start(t)
  const size = 12 * 1024 * 1024
  const bodies: [string, Record<string, string>][] = [
    ['by its own word', { 'content-length': String(size) }],
    ['in chunks', { 'transfer-encoding': 'chunked' }],
    ['by its own word, and no more after it', { 'content-length': String(size), connection: 'close' }],
    ['in chunks, and no more after it', { 'transfer-encoding': 'chunked', connection: 'close' }],
  ]
  let sent = 0
  for (const [name, headers] of bodies) {
    for (let i = 0; i < 15; i++) {
      const answer = await upload(url, size, { ...headersFor('tools/list'), ...headers })
      t.equal(answer.status, 413, `${name}, ${i}: ${answer.text}`)
      t.match(
        JSON.parse(answer.text),
        { error: { code: -32600, message: /4194304 bytes \(limits\.bodyBytes\)/ } },
        name,
      )
      sent++
    }
  }
  t.equal(await refused('bodyTooLarge'), sent)
})

t.test('a client that is still sending gets any refusal', async (t) => {
  const { url } = await start(t, { auth: { tokens: { alice: TOKEN } } })
  const size = 12 * 1024 * 1024
  const own = { 'content-length': String(size), connection: 'close' }
  const rows: [status: number, path: string, headers: Record<string, string>][] = [
    [401, '/mcp', headersFor('tools/list')],
    [403, '/mcp', { ...headersFor('tools/list'), host: 'evil.example' }],
    [404, '/nowhere', { ...headersFor('tools/list'), authorization: `Bearer ${TOKEN}` }],
    [415, '/mcp', { 'content-type': 'text/plain', authorization: `Bearer ${TOKEN}` }],
  ]
  for (const [status, path, headers] of rows) {
    for (let i = 0; i < 5; i++)
      t.equal((await upload(new URL(path, url).href, size, { ...headers, ...own })).status, status, `${status}, ${i}`)
  }
})

t.test('cuts off a client that sends too much after a refusal', async (t) => {
  const { url, host } = await start(t)
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  let closed = false
  let sent = 0
  socket
    .on('error', () => {})
    .on('close', () => {
      closed = true
    })
  socket.resume()
  socket.write(`POST /mcp HTTP/1.1\r\nhost: ${host}\r\n${MODERN.join('\r\n')}\r\ncontent-length: 1000000000\r\n\r\n`)
  const piece = Buffer.alloc(1024 * 1024, 'x')
  const more = () => {
    while (!closed && sent < 900) {
      sent++
      if (!socket.write(piece)) return
    }
  }
  socket.on('drain', more)
  more()
  await until(() => closed, 'the end of the connection')
  t.ok(sent >= 32, `${sent} MiB were taken`)
  t.ok(sent < 900, `${sent} MiB were taken`)
})

t.test('a client that sends Expect: 100-continue is refused before it sends a body', async (t) => {
  const { url, host } = await start(t, { auth: { tokens: { alice: TOKEN } } })
  const asking = (length: number, ...headers: string[]) =>
    `POST /mcp HTTP/1.1\r\n${[`host: ${host}`, ...MODERN, ...headers, 'expect: 100-continue', `content-length: ${length}`].join('\r\n')}\r\n\r\n`
  const authorized = `authorization: Bearer ${TOKEN}`
  for (const [name, text, status] of [
    ['too much', asking(10_000_000, authorized), 413],
    ['without a token', asking(LIST.length), 401],
  ] as const) {
    const answer = await raw(url, [text])
    t.equal(answer.status, status, name)
    t.match(answer.head, /connection: close/i, name)
  }
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  t.teardown(() => socket.destroy())
  let said = ''
  socket.setEncoding('utf8').on('data', (chunk: string) => {
    said += chunk
  })
  socket.write(asking(LIST.length, authorized))
  await until(() => said.includes('100 Continue'), 'being asked for the rest')
  t.notMatch(said, /HTTP\/1\.1 [2-5]/)
  socket.write(LIST)
  await until(() => /HTTP\/1\.1 200 OK.*"tools"/s.test(said), 'the answer')
})

t.test('a method that no header can carry is an error of the client', async (t) => {
  const modern = await ModernHttp.start(t)
  const { url, bridge, log } = await startBridge(t, { url: modern.url })
  await bridge.server.warmUp()
  const client = await LegacyClient.open(url)
  const before = modern.received.length
  for (const method of ['tools/\u0000list', 'x\r\ny: z', 'größe/list', ' tools/list', '\u007f']) {
    const answer = await client.request(method)
    t.match(answer, { status: 200, message: { error: { code: -32600 } } }, JSON.stringify(method))
  }
  t.equal(modern.received.length, before, 'the server hears nothing of it')
  const lines = log.filter(({ event, fault }) => event === 'call' && fault !== undefined)
  t.equal(lines.length, 5)
  for (const line of lines) t.match(line, { level: 30, blame: 'caller' })
})

t.test('a malformed notification gets a status and no message', async (t) => {
  const { url } = await start(t)
  const modern = await post(
    url,
    '{"jsonrpc":"2.0","method":"notifications/x","params":7}',
    headersFor('notifications/x'),
  )
  t.same([modern.status, modern.text], [202, ''])
  const modernHttp = await ModernHttp.start(t)
  const client = await LegacyClient.open((await startBridge(t, { url: modernHttp.url })).url)
  const legacy = await client.post('{"jsonrpc":"2.0","method":"notifications/x","params":7}')
  t.same([legacy.status, legacy.text], [400, ''])
})

t.test('refuses a request that arrives too slowly, in JSON-RPC', async (t) => {
  const told: Fault[] = []
  const front = { routing: () => t.fail('half a request is no request') }
  const refused = (fault: Fault) => told.push(fault)
  const within = { headers: 200, request: 400 }
  const listener = new Listener(front, { maxConnections: 10, write: 30_000, refused, within })
  t.teardown(() => listener.close())
  const origin = await listener.listen({ host: '127.0.0.1', port: 0 })
  const answer = await raw(origin, ['POST /mcp HTTP/1.1\r\nhost: '])
  t.equal(answer.status, 408)
  t.match(JSON.parse(answer.body), { jsonrpc: '2.0', error: { code: -32600, message: /30 s/ } })
  t.same(
    told.map(({ fault }) => fault),
    ['requestTimeout'],
  )
})

t.test('information for operators is not for pages that reach the bridge by another name', async (t) => {
  const { bridge } = await start(t, admin({ allowedHosts: ['metrics.example'] }))
  const at = String(bridge.adminUrl)
  const { port } = new URL(at)
  const rows: [path: string, headers: Record<string, string>, status: number][] = [
    ['/metrics', { host: 'evil.example' }, 403],
    ['/metrics', { host: `evil.example:${port}` }, 403],
    ['/readyz', { host: 'evil.example' }, 403],
    ['/nowhere', { host: 'evil.example' }, 403],
    ['/metrics', { origin: 'http://evil.example' }, 403],
    ['/metrics', { origin: 'null' }, 403],
    ['/healthz', { host: 'evil.example' }, 200],
    ['/metrics', {}, 200],
    ['/metrics', { host: `localhost:${port}` }, 200],
    ['/metrics', { host: '10.1.2.3:9090' }, 200],
    ['/metrics', { host: '[fd00::1]:9090' }, 200],
    ['/metrics', { host: 'METRICS.example:9090' }, 200],
    ['/nowhere', {}, 404],
  ]
  for (const [path, headers, status] of rows) {
    const answer = await openStream('GET', at + path, headers)
    await answer.ended()
    t.equal(answer.status, status, `${path} ${JSON.stringify(headers)}`)
    if (status !== 200) t.match(JSON.parse(answer.text), { jsonrpc: '2.0', error: { code: -32600 } })
  }
})

t.test('every refused request leaves a log line and a count, with a reason from the table', async (t) => {
  const { url, refused, log } = await start(t, { auth: { tokens: { alice: TOKEN } } })
  const own = { ...headersFor('tools/list'), authorization: `Bearer ${TOKEN}` }
  const rows: [
    reason: string,
    status: number,
    path: string,
    headers: Record<string, string | undefined>,
    body?: string,
  ][] = [
    ['unauthorized', 401, '/mcp?secret=1', { ...own, authorization: undefined }],
    ['foreignHost', 403, '/mcp', { ...own, host: 'evil.example' }],
    ['foreignOrigin', 403, '/mcp', { ...own, origin: 'https://evil.example' }],
    ['noSuchPath', 404, '/nowhere', own],
    ['notAcceptable', 406, '/mcp', { ...own, accept: 'text/plain' }],
    ['unsupportedMediaType', 415, '/mcp', { ...own, 'content-type': 'text/plain' }],
    ['notJson', 400, '/mcp', own, '{'],
    ['invalidRequest', 400, '/mcp', own, '[]'],
    ['headerMismatch', 400, '/mcp', { ...own, 'mcp-method': 'x' }, LIST],
    ['notJson', 400, '/message?sessionId=x', own, '{'],
  ]
  for (const [reason, status, path, headers, body = LIST] of rows) {
    const before = await refused(reason)
    const lines = log.length
    const answer = await post(new URL(path, url).href, body, headers)
    if (path.startsWith('/message')) {
      t.equal(answer.status, 404)
      continue
    }
    t.equal(answer.status, status, reason)
    t.equal(await refused(reason), before + 1, `${reason} is counted`)
    const line = log.slice(lines).find(({ event }) => event === 'request_refused')
    t.match(
      line,
      { level: 30, fault: reason, status, method: 'POST', path: path.split('?')[0], from: '127.0.0.1' },
      reason,
    )
  }
  t.notMatch(JSON.stringify(log), new RegExp(`secret|${TOKEN}`), 'and nothing secret')
  t.match(
    log.find(({ fault }) => fault === 'notJson'),
    { server: 'test' },
    'the server that it was for is named',
  )
})

t.test('of a flood of refusals, counts all, logs five, and logs the number of the rest', async (t) => {
  const { url, bridge, log, refused, lines } = await start(t)
  for (let i = 0; i < 50; i++) await post(url, '{', headersFor('tools/list'))
  t.equal(await refused('notJson'), 50)
  t.equal(lines().length, 5)
  await bridge.close()
  const [rest, ...more] = log.filter(({ event }) => event === 'refusals_left_out')
  t.match(rest, { level: 30, fault: 'notJson', status: 400, from: '127.0.0.1', more: 45 })
  t.same(more, [])
})

t.test('each kind of refusal has its own lines, and new ones after a quiet interval', async (t) => {
  const log: Record<string, unknown>[] = []
  const note = (fields: object) => log.push({ ...fields })
  const refusals = new Refusals({ info: note, error: note }, undefined, 20)
  t.teardown(() => refusals.close())
  for (let i = 0; i < 8; i++) refusals.note(new Fault('notJson', 'no'), {})
  refusals.note(new Fault('unauthorized', 'no'), {})
  t.equal(log.length, 6)
  await until(() => log.length > 6)
  t.match(log[6], { event: 'refusals_left_out', fault: 'notJson', more: 3 })
  await repeatUntil(
    () => refusals.note(new Fault('notJson', 'again'), {}),
    () => log.some(({ why }) => why === 'again'),
  )
})

t.test('a request that is logged as a call is not logged as a refusal', async (t) => {
  const { url, refused, log } = await start(t, { limits: { calls: 1 } })
  const leaving = new AbortController()
  const waiting = call(url, 'tools/call', { name: 'wait', arguments: { ms: 60_000 } }, { signal: leaving.signal })
  waiting.catch(() => {})
  await until(() => log.length > 0)
  const answers = await Promise.all([1, 2, 3].map((id) => call(url, 'tools/list', {}, { id })))
  t.ok(answers.some(({ status }) => status === 503))
  leaving.abort()
  const total = await refused('overloaded')
  t.ok(Number.isNaN(total) || total === 0)
  t.notOk(log.some(({ event }) => event === 'request_refused'))
})

/** Sends a body of some size, and gives what comes back, even while it is sent. */
function upload(url: string, size: number, headers: Record<string, string>): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(url, { method: 'POST', headers, agent: false }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk
      })
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }))
      response.on('error', reject)
    })
    request.on('error', (error) => reject(new Error(`${error.message} instead of an answer`)))
    const piece = Buffer.alloc(64 * 1024, ' ')
    let left = size
    const more = () => {
      while (left > 0) {
        left -= piece.length
        if (!request.write(piece)) return
      }
      request.end()
    }
    request.on('drain', more)
    more()
  })
}
