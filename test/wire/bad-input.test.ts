/** Bad input, whole, byte by byte, and cut inside a character: a clear answer, and the process goes on. */
import t from 'tap'
import { startBridge } from '../support/bridge.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { CAPABILITIES, call, envelope, VERSION } from '../support/modern.js'
import { type RawAnswer, raw, requestText } from '../support/raw.js'

const META = JSON.stringify(envelope())
const modern = (method = 'tools/list', ...more: string[]) => [
  'host: 127.0.0.1',
  'content-type: application/json',
  'accept: application/json, text/event-stream',
  'mcp-protocol-version: 2026-07-28',
  `mcp-method: ${method}`,
  ...more,
]
const message = (method: string, params = `{"_meta":${META}}`, id = '"the id"') =>
  `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${params}}`

/** What the answer has to be: an HTTP status, and the JSON-RPC code in its body where it has one. */
type Expected = [status: number | readonly number[], code?: number]
type Case = [name: string, request: Buffer, expected: Expected, id?: string]

const json: Case[] = [
  ['empty', requestText(modern(), ''), [400, -32700]],
  ['cut off', requestText(modern(), message('tools/list').slice(0, -1)), [400, -32700]],
  ['text after the message', requestText(modern(), `${message('tools/list')}x`), [400, -32700]],
  ['two messages', requestText(modern(), `${message('tools/list')}\n${message('tools/list')}`), [400, -32700]],
  ['a comment', requestText(modern(), `/* */${message('tools/list')}`), [400, -32700]],
  ['single quotes', requestText(modern(), "{'jsonrpc':'2.0'}"), [400, -32700]],
  ['NaN', requestText(modern(), message('tools/list', `{"_meta":${META},"x":NaN}`)), [400, -32700]],
  ['a trailing comma', requestText(modern(), '{"jsonrpc":"2.0",}'), [400, -32700]],
  ['overlong UTF-8', requestText(modern(), Buffer.from([0x7b, 0xc0, 0xaf, 0x7d])), [400, -32700]],
  ['a surrogate in UTF-8', requestText(modern(), Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22])), [400, -32700]],
  ['UTF-16', requestText(modern(), Buffer.from(message('tools/list'), 'utf16le')), [400, -32700]],
  [
    'a raw control character',
    requestText(modern(), message('tools/list', `{"_meta":${META},"x":"${'y'.repeat(500)}\u0001"}`)),
    [400, -32700],
  ],
  [
    'nested 65 deep',
    requestText(modern(), message('tools/list', `{"_meta":${META},"x":${'['.repeat(63)}${']'.repeat(63)}}`)),
    [400, -32600],
  ],
  ['nested 400,000 deep', requestText(modern(), '['.repeat(400_000)), [400, -32600]],
  [
    'a million values',
    requestText(modern(), message('tools/list', `{"_meta":${META},"x":[${'0,'.repeat(1_000_000)}0]}`)),
    [400, -32600],
  ],
  ['too large by its own word', requestText(modern(), 'x'.repeat(4 * 1024 * 1024 + 1)), [413, -32600]],
]

const envelopes: Case[] = [
  ['null', requestText(modern(), 'null'), [400, -32600]],
  ['a string', requestText(modern(), '"tools/list"'), [400, -32600]],
  ['a number', requestText(modern(), '7'), [400, -32600]],
  ['an empty array', requestText(modern(), '[]'), [400, -32600]],
  ['a batch', requestText(modern(), `[${message('tools/list')}]`), [400, -32600]],
  ['no version of JSON-RPC', requestText(modern(), '{"id":"the id","method":"tools/list"}'), [400, -32600], '"the id"'],
  ['the id null', requestText(modern(), message('tools/list', undefined, 'null')), [400, -32600]],
  ['a fraction for an id', requestText(modern(), message('tools/list', undefined, '1.5')), [400, -32600]],
  [
    'a fraction with an exponent for an id',
    requestText(modern(), message('tools/list', undefined, '15e-1')),
    [400, -32600],
  ],
  ['an integer of 65 digits for an id', requestText(modern(), message('tools/list', undefined, '1e64')), [400, -32600]],
  ['an object for an id', requestText(modern(), message('tools/list', undefined, '{}')), [400, -32600]],
  ['an id of 10 KB', requestText(modern(), message('tools/list', undefined, `"${'x'.repeat(10_000)}"`)), [400, -32600]],
  [
    'a method that is a number',
    requestText(modern(), '{"jsonrpc":"2.0","id":"the id","method":7}'),
    [400, -32600],
    '"the id"',
  ],
  ['a method of 1 MB', requestText(modern('x'), message('x'.repeat(1_000_000))), [400, -32020], '"the id"'],
  ['params that are an array', requestText(modern(), message('tools/list', '[]')), [400, -32602], '"the id"'],
  ['params that are null', requestText(modern(), message('tools/list', 'null')), [400, -32602], '"the id"'],
  ['_meta that is an array', requestText(modern(), message('tools/list', '{"_meta":[]}')), [400, -32602], '"the id"'],
  ['an answer', requestText(modern(), '{"jsonrpc":"2.0","id":1,"result":{}}'), [400, -32600]],
  [
    'the method twice',
    requestText(modern(), '{"jsonrpc":"2.0","id":"the id","method":"a","method":"b"}'),
    [400, -32600],
    '"the id"',
  ],
  [
    'params twice',
    requestText(modern(), message('tools/list').replace('"params"', '"params":{},"params"')),
    [400, -32600],
    '"the id"',
  ],
  [
    'the name twice',
    requestText(modern('tools/call', 'mcp-name: a'), message('tools/call', `{"name":"a","name":"b","_meta":${META}}`)),
    [400],
    '"the id"',
  ],
  [
    'the name twice, the last one as in the header',
    requestText(modern('tools/call', 'mcp-name: b'), message('tools/call', `{"name":"a","name":"b","_meta":${META}}`)),
    [400, -32600],
    '"the id"',
  ],
  [
    'a key of _meta twice',
    requestText(
      modern(),
      message('tools/list', `{"_meta":{"${VERSION}":"2026-07-28","${CAPABILITIES}":{},"a":1,"a":2}}`),
    ),
    [400, -32600],
    '"the id"',
  ],
  [
    'the version twice, once in disguise',
    requestText(
      modern(),
      message(
        'tools/list',
        `{"_meta":{"${VERSION}":"2026-07-28","${VERSION.replace('i', '\\u0069')}":"x","${CAPABILITIES}":{}}}`,
      ),
    ),
    [400, -32600],
    '"the id"',
  ],
  ['_meta in other case', requestText(modern(), message('tools/list', `{"_Meta":${META}}`)), [400, -32602], '"the id"'],
  [
    'capabilities that are a lie',
    requestText(
      modern(),
      message('tools/list', `{"_meta":{"${VERSION}":"2026-07-28","${CAPABILITIES}":{"roots":[]}}}`),
    ),
    [400, -32602],
    '"the id"',
  ],
]

const media: Case[] = [
  [
    'text/plain',
    requestText(
      modern().map((line) => line.replace('application/json', 'text/plain')),
      message('tools/list'),
    ),
    [415, -32600],
  ],
  [
    'no content type',
    requestText(
      modern().filter((line) => !line.startsWith('content-type')),
      message('tools/list'),
    ),
    [415, -32600],
  ],
  [
    'a tab after the type',
    requestText(
      modern().map((line) => line.replace('content-type: application/json', 'content-type: application/json\ta')),
      message('tools/list'),
    ),
    [415, -32600],
  ],
  [
    'two types',
    requestText(
      modern().map((line) =>
        line.replace('content-type: application/json', 'content-type: application/json, text/plain'),
      ),
      message('tools/list'),
    ),
    [415, -32600],
  ],
  [
    'another charset',
    requestText(
      modern().map((line) =>
        line.replace('content-type: application/json', 'content-type: application/json; charset=utf-16'),
      ),
      message('tools/list'),
    ),
    [415, -32600],
  ],
  ['compressed', requestText(modern('tools/list', 'content-encoding: gzip'), message('tools/list')), [415, -32600]],
  [
    'no events accepted',
    requestText(
      modern().map((line) => line.replace(', text/event-stream', '')),
      message('tools/list'),
    ),
    [406, -32600],
  ],
  [
    'JSON refused',
    requestText(
      modern().map((line) => line.replace('application/json, text', 'application/json;q=0, text')),
      message('tools/list'),
    ),
    [406, -32600],
  ],
]

const http: Case[] = [
  ['PUT', requestText(modern(), message('tools/list'), 'PUT /mcp HTTP/1.1'), [405, -32600]],
  ['TRACE', requestText(modern(), '', 'TRACE /mcp HTTP/1.1'), [[404, 405]]],
  ['another path', requestText(modern(), message('tools/list'), 'POST /other HTTP/1.1'), [404, -32600]],
  ['a path that climbs', requestText(modern(), message('tools/list'), 'POST /../mcp HTTP/1.1'), [404, -32600]],
  ['no host', requestText(modern().slice(1), message('tools/list')), [400]],
  ['a foreign host', requestText(['host: evil.example', ...modern().slice(1)], message('tools/list')), [403, -32600]],
  ['two hosts', requestText(['host: 127.0.0.1', ...modern()], message('tools/list')), [400]],
  [
    'a host with credentials',
    requestText(['host: 127.0.0.1@evil.example', ...modern().slice(1)], message('tools/list')),
    [403, -32600],
  ],
  [
    'a foreign origin',
    requestText(modern('tools/list', 'origin: https://evil.example'), message('tools/list')),
    [403, -32600],
  ],
  ['two content types', requestText([...modern(), 'content-type: text/plain'], message('tools/list')), [[400, 415]]],
  [
    'two authorizations',
    requestText([...modern(), 'authorization: Bearer a', 'authorization: Bearer b'], message('tools/list')),
    [400, -32600],
    '"the id"',
  ],
  [
    '101 headers',
    requestText([...modern(), ...Array.from({ length: 96 }, (_, n) => `x-${n}: 1`)], message('tools/list')),
    [431, -32600],
  ],
  [
    '1,005 headers, and then those that matter',
    requestText(
      [...Array.from({ length: 1_005 }, (_, n) => `x-${n}: 1`), ...modern(), 'origin: https://evil.example'],
      message('tools/list'),
    ),
    [[400, 403, 431]],
  ],
  ['headers of 17 KiB', requestText([...modern(), `x: ${'y'.repeat(17 * 1024)}`], message('tools/list')), [431]],
  [
    'a length and chunks',
    Buffer.from(
      `POST /mcp HTTP/1.1\r\n${modern().join('\r\n')}\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
    ),
    [400],
  ],
  [
    'a length with a sign',
    Buffer.from(`POST /mcp HTTP/1.1\r\n${modern().join('\r\n')}\r\ncontent-length: +5\r\n\r\n12345`),
    [400],
  ],
  [
    'two lengths',
    Buffer.from(
      `POST /mcp HTTP/1.1\r\n${modern().join('\r\n')}\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n12345`,
    ),
    [400],
  ],
  ['space before a colon', requestText(['host : 127.0.0.1', ...modern().slice(1)], message('tools/list')), [400]],
  ['NUL in a header', requestText(modern('tools/list', 'x: a\0b'), message('tools/list')), [400]],
  ['a TLS handshake', Buffer.from([0x16, 0x03, 0x01, 0x00, 0xa5, 0x01, 0x00, 0x00, 0xa1]), [400]],
  ['HTTP/2', Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), [400]],
]

const headers: Case[] = [
  [
    'no version',
    requestText(
      modern().filter((line) => !line.startsWith('mcp-protocol')),
      message('tools/list'),
    ),
    [400, -32020],
    '"the id"',
  ],
  [
    'two versions',
    requestText([...modern(), 'mcp-protocol-version: 2025-11-25'], message('tools/list')),
    [400, -32020],
    '"the id"',
  ],
  [
    'a list of versions',
    requestText(
      modern().map((line) => line.replace('2026-07-28', '2026-07-28, 2025-11-25')),
      message('tools/list'),
    ),
    [400, -32020],
    '"the id"',
  ],
  ['a method of another case', requestText(modern('Tools/list'), message('tools/list')), [400, -32020], '"the id"'],
  [
    'a name with a latin-1 letter',
    requestText(
      modern('prompts/get', 'mcp-name: caf\u00e9'),
      message('prompts/get', `{"name":"café","_meta":${META}}`),
    ),
    [400, -32020],
    '"the id"',
  ],
  [
    'a name in Base64 for URLs',
    requestText(
      modern('prompts/get', 'mcp-name: =?base64?Y2Fmw6k_?='),
      message('prompts/get', `{"name":"café","_meta":${META}}`),
    ),
    [400, -32020],
    '"the id"',
  ],
  [
    'a name of 10 KB',
    requestText(
      modern('prompts/get', `mcp-name: ${'x'.repeat(10_000)}`),
      message('prompts/get', `{"name":"x","_meta":${META}}`),
    ),
    [400, -32020],
    '"the id"',
  ],
]

function split(request: Buffer): [name: string, pieces: Buffer[]][] {
  const whole: [string, Buffer[]] = ['whole', [request]]
  if (request.length > 5_000) return [whole]
  const letter = request.findIndex((byte) => byte >= 0xc0)
  const cut = letter < 0 ? Math.floor(request.length / 2) : letter + 1
  return [
    whole,
    ['byte by byte', Array.from(request, (_, at) => request.subarray(at, at + 1))],
    ['cut in the middle', [request.subarray(0, cut), request.subarray(cut)]],
  ]
}

t.test('bad input gets a clear error', async (t) => {
  const legacy = await LegacyHttp.start(t)
  const { url, log } = await startBridge(t, { url: legacy.url })
  await call(url, 'tools/list')
  const before = legacy.received.length

  for (const [group, cases] of Object.entries({ json, envelopes, media, http, headers })) {
    t.test(group, async (t) => {
      for (const [name, request, [status, code], id] of cases) {
        for (const [way, pieces] of split(request)) {
          const answer = await raw(url, pieces)
          t.ok([status].flat().includes(answer.status), `${name}, ${way}: ${answer.status}`)
          checkBody(t, answer, code, id, `${name}, ${way}`)
        }
      }
    })
  }

  t.test('none of it reached the server, stays unanswered, or affected others', async (t) => {
    t.equal(legacy.received.length, before)
    t.same(
      log.filter(({ level }) => Number(level) >= 50),
      [],
    )
    t.equal((await call(url, 'tools/list')).status, 200)
    t.same(Object.getOwnPropertyNames(Object.prototype).includes('polluted'), false)
  })
})

function checkBody(
  t: import('tap').Test,
  { body, head }: RawAnswer,
  code: number | undefined,
  id: string | undefined,
  name: string,
): void {
  if (code === undefined) return
  t.match(head, /content-type: application\/json/i, name)
  t.ok(
    body.startsWith(id === undefined ? '{"jsonrpc":"2.0","error":' : `{"jsonrpc":"2.0","id":${id},"error":`),
    `${name}: ${body.slice(0, 100)}`,
  )
  t.equal((JSON.parse(body) as { error: { code: number } }).error.code, code, name)
  t.ok(body.length <= 2_048, 'the answer is short')
}

t.test('accepts unusual but valid input', async (t) => {
  const legacy = await LegacyHttp.start(t)
  const { url } = await startBridge(t, { url: legacy.url })
  const accepted: [name: string, request: Buffer][] = [
    [
      'a charset',
      requestText(
        modern().map((line) =>
          line.replace('content-type: application/json', 'content-type: Application/JSON; Charset="UTF-8"'),
        ),
        message('tools/list'),
      ),
    ],
    [
      'wildcards',
      requestText(
        modern().map((line) => line.replace('application/json, text/event-stream', 'text/*;q=0.5, */*')),
        message('tools/list'),
      ),
    ],
    [
      'no Accept',
      requestText(
        modern().filter((line) => !line.startsWith('accept')),
        message('tools/list'),
      ),
    ],
    [
      'nested 64 deep',
      requestText(modern(), message('tools/list', `{"_meta":${META},"x":${'['.repeat(62)}${']'.repeat(62)}}`)),
    ],
    ['white space everywhere', requestText(modern(), ` \r\n${message('tools/list').replaceAll('":', '" :\t')}\n`)],
    [
      '__proto__ for a name',
      requestText(modern(), message('tools/list', `{"_meta":${META},"__proto__":{"polluted":1},"constructor":1}`)),
    ],
    ['a lone surrogate, escaped', requestText(modern(), message('tools/list', `{"_meta":${META},"x":"\\ud800"}`))],
    [
      'a thousand keys in _meta',
      requestText(
        modern(),
        message(
          'tools/list',
          `{"_meta":{${META.slice(1, -1)},${Array.from({ length: 1000 }, (_, n) => `"v/k${n}":1`)}}}`,
        ),
      ),
    ],
    [
      'rubbish for a trace',
      requestText(modern(), message('tools/list', `{"_meta":{${META.slice(1, -1)},"traceparent":"rubbish"}}`)),
    ],
  ]
  for (const [name, request] of accepted) {
    for (const [way, pieces] of split(request)) t.equal((await raw(url, pieces)).status, 200, `${name}, ${way}`)
  }
})

t.test('does not wait without bound for a slow request', async (t) => {
  const legacy = await LegacyHttp.start(t)
  const { url } = await startBridge(t, { url: legacy.url })
  const slow = await raw(url, ['POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\nx-slow: '])
  t.equal(slow.status, 408)
  t.match(JSON.parse(slow.body), { jsonrpc: '2.0', error: { code: -32600 } })
})
