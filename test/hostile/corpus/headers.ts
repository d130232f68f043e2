/**
 * Requests whose headers are wrong, or say something else than the body. Each is a call of `act`, which leaves its key behind
 * where it runs: `KEY` in a request stands for a key of its own, `{session}` for the id of a legacy session that is open.
 */
import { envelope } from '../../support/modern.js'
import { type Era, KEY, type Request, requestOf } from './input.js'

type Lines = Record<string, string | undefined>

const body = (era: Era) =>
  JSON.stringify({
    jsonrpc: '2.0',
    id: 'the id',
    method: 'tools/call',
    params: { name: 'act', arguments: { key: KEY }, ...(era === 'modern' && { _meta: envelope() }) },
  })

const COMMON: Lines = {
  host: '{host}',
  authorization: '{authorization}',
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
}
const GOOD: Record<Era, Lines> = {
  modern: { ...COMMON, 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'act' },
  legacy: { ...COMMON, 'mcp-protocol-version': '2025-11-25', 'mcp-session-id': '{session}' },
}

/** Values of one header that are refused, in both eras. */
const REFUSED: [header: string, values: (string | undefined)[]][] = [
  ['content-type', [undefined, '', 'text/plain', 'application/json, text/plain', 'application/json\ta', 'text/json']],
  ['content-type', ['application/json; charset=utf-16', 'application/x-www-form-urlencoded', 'multipart/form-data']],
  ['content-type', [`text/plain${' '.repeat(4_000)}x`]],
  ['content-encoding', ['gzip', 'br', 'deflate', 'gzip, gzip', 'x-unknown']],
  ['origin', ['https://evil.example', 'null', 'http://localhost.evil.example', 'http://127.0.0.1@evil.example']],
  ['origin', ['http://127.0.0.1:1', 'file://', 'http://xn--lcalhost-2za.example', 'http://[::1', 'javascript:']],
  ['host', [undefined, 'evil.example', 'localhost.evil.example', '127.0.0.1@evil.example', '169.254.169.254', '']],
  ['host', ['127.0.0.1.evil.example', 'evil.example:80', '[::ffff:1.2.3.4]']],
  [
    'authorization',
    [undefined, '', 'Bearer', 'Bearer ', 'Basic YTpi', 'Bearer wrong', 'bearer  x', 'Bearer a, Bearer b'],
  ],
  ['authorization', [`Bearer ${'x'.repeat(7_000)}`, 'Bearer {token}x', 'Token {token}', '{token}']],
  ['mcp-protocol-version', ['2099-01-01', '1999-01-01', 'x', '2026-07-28, 2025-11-25', '26-07-28', '２０２６-07-28']],
  ['mcp-protocol-version', [`2026-07-28${','.repeat(3_000)}`, `x${' '.repeat(5_000)}x`]],
]

const REFUSED_OF: Record<Era, [header: string, values: (string | undefined)[]][]> = {
  modern: [
    ['mcp-method', [undefined, '', 'tools/list', 'TOOLS/CALL', 'tools/call, tools/call', 'tools/call x', 'initialize']],
    ['mcp-method', ['=?base64?dG9vbHMvY2FsbA?=x', '__proto__', 'x'.repeat(7_000)]],
    [
      'mcp-name',
      [undefined, '', 'echo', 'ACT', 'act, act', 'act act', 'a\u0301ct', '=?base64?ZWNobw==?=', '=?base64?*?='],
    ],
    ['mcp-name', ['=?BASE64?YWN0?= ', '=?base64?YWN0', '=?base64??=', 'x'.repeat(7_000)]],
    ['mcp-session-id', []],
    ['accept', ['text/html', 'application/json;q=0, text/event-stream;q=0', 'image/*']],
  ],
  legacy: [
    ['mcp-session-id', ['', 'x', '{session}x', '../x', '__proto__', 'x'.repeat(7_000), '{session}, {session}']],
    ['mcp-session-id', ['{foreign}', 'null', 'undefined', '0']],
    ['accept', ['text/html', 'image/*']],
  ],
}

/** What may be taken or not. */
const ANY: [header: string, values: (string | undefined)[]][] = [
  [
    'accept',
    [undefined, '*/*', 'application/*', 'text/event-stream', 'application/json;q=0.1', ',,,,', 'a'.repeat(5_000)],
  ],
  ['accept', [Array(1_000).fill('text/event-stream;q=0.5').join()]],
  [
    'content-type',
    [
      `application/json;${';'.repeat(2_000)}a=b`,
      'application/json;charset=UTF-8',
      'APPLICATION/JSON',
      'application/json ;  charset = "utf-8"',
    ],
  ],
  ['traceparent', ['x', '00-00000000000000000000000000000000-0000000000000000-00', 'x'.repeat(6_000)]],
  ['baggage', ['a=b', '='.repeat(5_000), 'a=%ZZ']],
  ['mcp-param-x', ['y', '=?base64?!!?=']],
  ['last-event-id', ['x', '9999999999999999999', '\u00e9', 'p1-1']],
  ['x-forwarded-for', ['127.0.0.1', 'x'.repeat(2_000)]],
  ['x-forwarded-host', ['evil.example']],
  ['forwarded', ['for=127.0.0.1;host=evil.example;proto=https']],
  ['x-http-method-override', ['DELETE']],
  ['transfer-encoding', ['identity']],
  ['expect', ['100-continue', 'the-unexpected']],
  ['upgrade', ['websocket', 'h2c']],
  ['connection', ['close', 'upgrade', 'authorization', 'keep-alive, mcp-session-id', 'x'.repeat(3_000)]],
  ['cookie', ['a=b', 'a'.repeat(6_000)]],
  ['range', ['bytes=0-', 'bytes=99999999999999999999-']],
  ['te', ['trailers, deflate;q=0.5']],
  ['mcp-tool-name', ['x']],
]

export function* headers(era: Era): Iterable<Request> {
  for (const [header, values] of [...REFUSED, ...REFUSED_OF[era]])
    for (const value of values) yield request(era, header, value, 'refused')
  for (const [header, values] of ANY) for (const value of values) yield request(era, header, value, 'any')
  for (const header of Object.keys(GOOD[era])) {
    const lines = [...linesOf(GOOD[era]), `${header}: ${GOOD[era][header]}`]
    // Repetitions of the others say the same, and are joined where that is what they are for.
    const want = ['host', 'authorization'].includes(header) ? 'refused' : 'any'
    const contradicts = want === 'refused' || header.startsWith('mcp-') ? 'refused' : 'any'
    yield {
      kind: 'headers',
      name: `${header} twice`,
      bytes: requestOf(['POST {path} HTTP/1.1', ...lines], body(era)),
      want,
    }
    const other = [...linesOf(GOOD[era]), `${header}: other`]
    yield {
      kind: 'headers',
      name: `${header} twice, not the same`,
      bytes: requestOf(['POST {path} HTTP/1.1', ...other], body(era)),
      want: contradicts,
    }
  }
  for (const [name, count, want] of [
    ['99', 90, 'any'],
    ['101', 101, 'refused'],
    ['1,005', 1_005, 'refused'],
  ] as const) {
    const many = [...Array.from({ length: count }, (_, n) => `x-${n}: 1`), ...linesOf(GOOD[era])]
    yield {
      kind: 'headers',
      name: `${name} of them`,
      bytes: requestOf(['POST {path} HTTP/1.1', ...many], body(era)),
      want,
    }
  }
}

/** Headers after which a connection may end before all has been sent. */
const ENDING = ['host', 'upgrade', 'expect']

function request(era: Era, header: string, value: string | undefined, want: Request['want']): Request {
  const lines = linesOf({ ...GOOD[era], [header]: value })
  const shown = value === undefined ? 'missing' : JSON.stringify(value.slice(0, 60))
  const bytes = requestOf(['POST {path} HTTP/1.1', ...lines], body(era))
  return {
    kind: 'headers',
    name: `${header}: ${shown}`,
    bytes,
    want,
    broken: ENDING.includes(header),
  }
}

function linesOf(lines: Lines): string[] {
  return Object.entries(lines).flatMap(([name, value]) => (value === undefined ? [] : [`${name}: ${value}`]))
}
