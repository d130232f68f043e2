/** Bad input in a session, whole, byte by byte, and cut in the middle: a clear answer, and the session goes on. */
import { connect } from 'node:net'
import t from 'tap'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { LegacyClient } from '../support/legacy-client.js'
import { ModernHttp } from '../support/modern-http.js'
import { raw, requestText } from '../support/raw.js'

const PING = '{"jsonrpc":"2.0","id":"the id","method":"ping"}'
const LINES = { get: 'GET /mcp HTTP/1.1', delete: 'DELETE /mcp HTTP/1.1', put: 'PUT /mcp HTTP/1.1' }

type Case = [name: string, body: string | Buffer, status: number, code: number, headers?: string[], line?: string]

const cases: Case[] = [
  ['nothing', '', 400, -32700],
  ['half a message', PING.slice(0, -1), 400, -32700],
  ['two messages', `${PING}${PING}`, 400, -32700],
  ['no UTF-8', Buffer.from([0x7b, 0xc0, 0xaf, 0x7d]), 400, -32700],
  ['a text', '"ping"', 400, -32600],
  [
    'nested 65 deep',
    `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":${'['.repeat(64)}${']'.repeat(64)}}}`,
    400,
    -32600,
  ],
  ['the id null', PING.replace('"the id"', 'null'), 400, -32600],
  ['a fraction for an id', PING.replace('"the id"', '1.5'), 400, -32600],
  ['the id twice', PING.replace('"id":"the id"', '"id":1,"id":2'), 400, -32600],
  ['no answer and no request', '{"jsonrpc":"2.0","id":1}', 400, -32600],
  ['an empty array', '[]', 400, -32600],
  ['an array', `[${PING}]`, 400, -32600],
  [
    'a claim without the header for it',
    PING.replace('}', ',"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}'),
    400,
    -32020,
  ],
  ['a version that there is not', PING, 400, -32600, ['mcp-protocol-version: 2024-99-99']],
  ['two versions', PING, 400, -32020, ['mcp-protocol-version: 2025-11-25', 'mcp-protocol-version: 2025-06-18']],
  ['two sessions', PING, 400, -32020, ['mcp-session-id: another']],
  ['PUT', PING, 405, -32600, [], LINES.put],
  ['GET for what is no stream', '', 406, -32600, ['accept: application/json'], LINES.get],
  ['GET from nowhere', '', 405, -32600, ['last-event-id: p9-9'], LINES.get],
  ['GET from two places', '', 400, -32020, ['last-event-id: p1-1', 'last-event-id: p1-2'], LINES.get],
  ['DELETE of a modern client', '', 405, -32600, ['mcp-protocol-version: 2026-07-28'], LINES.delete],
]

t.test('bad input in a session gets a clear error', async (t) => {
  const modern = await ModernHttp.start(t)
  const { url, log } = await startBridge(t, { url: modern.url })
  const client = await LegacyClient.open(url)
  await client.call('echo')
  const before = modern.received.length
  for (const [name, body, status, code, more = [], line] of cases) {
    const accepts = more.some((header) => header.startsWith('accept:'))
      ? []
      : ['accept: application/json, text/event-stream']
    const headers = [
      'host: 127.0.0.1',
      'content-type: application/json',
      ...accepts,
      `mcp-session-id: ${client.session}`,
    ]
    const request = requestText([...headers, ...more], body, line)
    for (const [way, pieces] of ways(request)) {
      const answer = await raw(url, pieces)
      t.equal(answer.status, status, `${name}, ${way}`)
      t.equal(
        (JSON.parse(answer.body) as { error: { code: number } }).error.code,
        code,
        `${name}, ${way}: ${answer.body}`,
      )
      t.notMatch(answer.body, /"id":null/, name)
      t.notMatch(answer.head, /mcp-session-id/i, name)
    }
  }
  t.equal(modern.received.length, before, 'nothing of it has reached the server')
  t.same(
    log.filter(({ level }) => Number(level) >= 50),
    [],
  )
  t.equal((await client.request('ping')).status, 200, 'and the session goes on')
})

t.test('an incomplete message of a client that leaves is ignored', async (t) => {
  const modern = await ModernHttp.start(t)
  const { url } = await startBridge(t, { url: modern.url })
  const client = await LegacyClient.open(url)
  const headers = ['host: 127.0.0.1', 'content-type: application/json', `mcp-session-id: ${client.session}`]
  const body = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"act"}}'
  const { hostname, port } = new URL(url)
  let gone = 0
  for (const part of [10, 200, requestText(headers, body).length - 1]) {
    const socket = connect(Number(port), hostname)
    socket.on('close', () => gone++).on('error', () => {})
    socket.write(requestText(headers, body).subarray(0, part), () => socket.destroy())
  }
  await until(() => gone === 3)
  t.equal((await client.request('ping')).status, 200)
  t.equal(modern.of('tools/call').length, 0)
})

function ways(request: Buffer): [name: string, pieces: Buffer[]][] {
  const cut = Math.floor(request.length / 2)
  return [
    ['whole', [request]],
    ['byte by byte', Array.from(request, (_, at) => request.subarray(at, at + 1))],
    ['cut in the middle', [request.subarray(0, cut), request.subarray(cut)]],
  ]
}
