/** What is no request of HTTP/1.1, or several that look like one. Nothing of it may run `act`. */
import { envelope } from '../../support/modern.js'
import { KEY, type Request } from './input.js'

const BODY = JSON.stringify({
  jsonrpc: '2.0',
  id: 'the id',
  method: 'tools/call',
  params: { name: 'act', arguments: { key: KEY }, _meta: envelope() },
})
const LINES = [
  'host: {host}',
  'authorization: {authorization}',
  'content-type: application/json',
  'accept: application/json, text/event-stream',
  'mcp-protocol-version: 2026-07-28',
  'mcp-method: tools/call',
  'mcp-name: act',
]

const LENGTH = Buffer.byteLength(BODY)
const HEX = LENGTH.toString(16)
const chunked = `${HEX}\r\n${BODY}\r\n0\r\n\r\n`

const request = (first: string, lines: readonly string[], body: string) =>
  `${[first, ...lines].join('\r\n')}\r\n\r\n${body}`
const post = (lines: readonly string[], body = BODY) => request('POST {path} HTTP/1.1', [...LINES, ...lines], body)
const own = `content-length: ${LENGTH}`

/** Requests that are refused, or to which the connection is ended. */
const REFUSED: [name: string, bytes: string][] = [
  ['a length and chunks', post([own, 'transfer-encoding: chunked'], chunked)],
  ['chunks and a length', post(['transfer-encoding: chunked', own], chunked)],
  ['two lengths that differ', post([own, 'content-length: 5'])],
  ['a negative length', post(['content-length: -1'])],
  ['a length with a plus', post([`content-length: +${LENGTH}`])],
  ['a hexadecimal length', post([`content-length: 0x${HEX}`])],
  ['an empty length', post(['content-length: '])],
  ['a list of lengths', post([`content-length: ${LENGTH}, ${LENGTH}`])],
  ['a length of 30 digits', post([`content-length: ${'9'.repeat(30)}`])],
  ['a length of 5 MB', post(['content-length: 5000000'], '')],
  ['chunks that are none', post(['transfer-encoding: chunked'])],
  ['a chunk with a negative size', post(['transfer-encoding: chunked'], `-1\r\n${BODY}`)],
  ['a chunk of 20 hexadecimal digits', post(['transfer-encoding: chunked'], `${'f'.repeat(20)}\r\n${BODY}`)],
  ['a transfer encoding that there is not', post(['transfer-encoding: x'], chunked)],
  ['chunked twice', post(['transfer-encoding: chunked, chunked'], chunked)],
  ['chunked, not at the end', post(['transfer-encoding: chunked, identity'], chunked)],
  ['xchunked', post(['transfer-encoding: xchunked'], chunked)],
  ['a space before the colon', post(['content-length : 3', own])],
  ['a header without colon', post(['nonsense', own])],
  ['a header without name', post([': x', own])],
  ['a NUL in a header', post(['x-a: a\0b', own])],
  ['a line feed alone in a header', post(['x-a: a\nx-b: b', own]).replace('\r\nx-a', '\r\nx-a')],
  ['a carriage return in a header', post(['x-a: a\rx-b: b', own])],
  ['a header that goes on in the next line', post(['x-a: a\r\n b', own])],
  ['headers of 17 KiB', post([`x-a: ${'a'.repeat(17 * 1024)}`, own])],
  ['a header of 200 KB', post([`x-a: ${'a'.repeat(200_000)}`, own])],
  ['a target of 20 KB', request(`POST {path}?${'a'.repeat(20_000)} HTTP/1.1`, [...LINES, own], BODY)],
  ['a version that there is not', request('POST {path} HTTP/9.9', [...LINES, own], BODY)],
  ['a version in small letters', request('POST {path} http/1.1', [...LINES, own], BODY)],
  ['no version', request('POST {path}', [...LINES, own], BODY)],
  ['a method that there is not', request('FROB {path} HTTP/1.1', [...LINES, own], BODY)],
  ['a method in small letters', request('post {path} HTTP/1.1', [...LINES, own], BODY)],
  ['CONNECT', request('CONNECT evil.example:443 HTTP/1.1', LINES, '')],
  ['TRACE', request('TRACE {path} HTTP/1.1', LINES, '')],
  ['PUT', request('PUT {path} HTTP/1.1', [...LINES, own], BODY)],
  ['PATCH', request('PATCH {path} HTTP/1.1', [...LINES, own], BODY)],
  ['a whole address of somebody else', request('POST http://evil.example{path} HTTP/1.1', [...LINES, own], BODY)],
  ['a path with a NUL', request('POST {path}%00 HTTP/1.1', [...LINES, own], BODY)],
  ['a path that climbs', request('POST /..{path} HTTP/1.1', [...LINES, own], BODY)],
  ['a path that is no escape', request('POST {path}%zz HTTP/1.1', [...LINES, own], BODY)],
  ['a path with a backslash', request('POST \\evil HTTP/1.1', [...LINES, own], BODY)],
  ['a star', request('OPTIONS * HTTP/1.1', LINES, '')],
  ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0'],
  ['TLS', '\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03hello there, this is no hello\r\n\r\n'],
  ['a line of Redis', '*1\r\n$4\r\nPING\r\n\r\n'],
  ['SMTP', 'EHLO evil.example\r\nMAIL FROM:<a@b>\r\n\r\n'],
  ['an answer', 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'],
  ['noise', '\x80\x81\x82\xff\xfe\0\0\0\0\r\n\r\n'],
]

/** What may be served, or not. */
const ANY: [name: string, bytes: string][] = [
  ['a name of 10 KB', post([`${'a'.repeat(10_000)}: x`, own])],
  ['chunks', post(['transfer-encoding: chunked'], chunked)],
  [
    'chunks with extensions',
    post(['transfer-encoding: chunked'], `${HEX};a=b;${'c'.repeat(200)}\r\n${BODY}\r\n0\r\n\r\n`),
  ],
  [
    'a chunk extension of 20 KB',
    post(['transfer-encoding: chunked'], `${HEX};${'c'.repeat(20_000)}\r\n${BODY}\r\n0\r\n\r\n`),
  ],
  ['trailers', post(['transfer-encoding: chunked'], `${HEX}\r\n${BODY}\r\n0\r\nmcp-method: tools/list\r\n\r\n`)],
  [
    'trailers of 20 KB',
    post(['transfer-encoding: chunked'], `${HEX}\r\n${BODY}\r\n0\r\nx: ${'t'.repeat(20_000)}\r\n\r\n`),
  ],
  ['the same length twice', post([own, own])],
  ['lines that end in a line feed alone', post([own]).replaceAll('\r\n', '\n')],
  ['empty lines before it', `\r\n\r\n${post([own])}`],
  ['HTTP/1.0', request('POST {path} HTTP/1.0', [...LINES, own], BODY)],
  ['HTTP/1.0 with chunks', request('POST {path} HTTP/1.0', [...LINES, 'transfer-encoding: chunked'], chunked)],
  ['a whole address', request('POST http://{host}{path} HTTP/1.1', [...LINES, own], BODY)],
  ['a length that is too small', post([`content-length: ${LENGTH - 10}`])],
  ['two requests at once', `${post([own])}${post([own])}`],
  ['20 requests at once', post([own]).repeat(20)],
  [
    'a request within the body of another',
    post([`content-length: ${LENGTH + 10}`], `${BODY}          GET / HTTP/1.1\r\n\r\n`),
  ],
  ['OPTIONS', request('OPTIONS {path} HTTP/1.1', [...LINES, 'origin: https://evil.example'], '')],
  [
    'a preflight',
    request(
      'OPTIONS {path} HTTP/1.1',
      [...LINES.slice(0, 1), 'origin: https://evil.example', 'access-control-request-method: POST'],
      '',
    ),
  ],
  ['HEAD', request('HEAD {path} HTTP/1.1', LINES, '')],
  ['GET', request('GET {path} HTTP/1.1', LINES, '')],
  ['GET of another path', request('GET /.env HTTP/1.1', LINES, '')],
  ['GET of the metrics', request('GET /metrics HTTP/1.1', LINES.slice(0, 1), '')],
  ['DELETE', request('DELETE {path} HTTP/1.1', LINES, '')],
]

export function* framing(): Iterable<Request> {
  const make = ([name, bytes]: [string, string], want: Request['want']) =>
    ({ kind: 'framing', name, bytes: Buffer.from(bytes, 'latin1'), want, broken: true }) as const
  for (const row of REFUSED) yield make(row, 'refused')
  for (const row of ANY) yield make(row, 'any')
}

/** Good requests of which only a part is ever sent. */
export function* halves(): Iterable<Request> {
  const whole = Buffer.from(post([own]))
  const head = whole.indexOf('\r\n\r\n')
  for (const end of [1, 5, 20, head - 4, head + 1, head + 3, head + 4, head + 5, head + 100, whole.length - 20])
    yield { kind: 'halves', name: `the first ${end} bytes`, bytes: whole.subarray(0, end), want: 'any', broken: true }
}
