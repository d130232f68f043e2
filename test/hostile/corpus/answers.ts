/**
 * What servers answer that they should not. In all of it `{id}` stands for the id of the call, `{token}` for its progress token
 * and `{fill}` for 17 MiB, which is more than an answer may have.
 */

export interface BadAnswer {
  name: string
  /** The bytes, in Latin-1. */
  bytes: string
  /** What becomes of the connection or process after them. */
  after?: 'open' | 'end' | 'reset'
}

const result = (json: string) => `{"jsonrpc":"2.0","id":{id},"result":${json}}`
const error = (json: string) => `{"jsonrpc":"2.0","id":{id},"error":${json}}`
const good = result('{"content":[{"type":"text","text":"good"}],"resultType":"complete"}')
const progress = (token: string, n: string) =>
  `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":${token},"progress":${n}}}`
const nest = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`

/** Texts in the place of the answer: as a line, as the body, or as an event. */
export const TEXTS: [name: string, text: string][] = [
  ['nothing', ''],
  ['null', 'null'],
  ['a number', '7'],
  ['a text', '"good"'],
  ['HTML', '<html><body>502 internal-name.example</body></html>'],
  ['no result', '{"jsonrpc":"2.0","id":{id}}'],
  ['the result null', result('null')],
  ['the result a number', result('1')],
  ['the result an array', result('[]')],
  ['an empty result', result('{}')],
  ['a result and an error', good.replace(/\}$/, ',"error":{"code":1,"message":"x"}}')],
  ['the error null', error('null')],
  ['the error a text', error('"broken"')],
  ['an error without code', error('{"message":"x"}')],
  ['an error with a text for a code', error('{"code":"x","message":"x"}')],
  ['an error with a code of 1e400', error('{"code":1e400,"message":"x"}')],
  ['an error without message', error('{"code":-32000}')],
  ['an error with a message of 100 KB', error(`{"code":-32000,"message":"${'m'.repeat(100_000)}"}`)],
  ['an error of the bridge’s own kind', error('{"code":-32603,"message":"x","data":{"outcome":"not_executed"}}')],
  ['an error with nested data', error(`{"code":-32000,"message":"x","data":${nest(100)}}`)],
  ['no jsonrpc', good.replace('"jsonrpc":"2.0",', '')],
  ['jsonrpc 1.0', good.replace('2.0', '1.0')],
  ['the id twice', good.replace('"id":{id}', '"id":{id},"id":{id}')],
  ['the result twice', good.replace(/\}$/, ',"result":{}}')],
  ['another id', good.replace('{id}', '987654321')],
  ['the id as a text', good.replace('{id}', '"{id}"')],
  ['the id null', good.replace('{id}', 'null')],
  ['no id', good.replace('"id":{id},', '')],
  ['the id an object', good.replace('{id}', '{"a":1}')],
  ['an array', `[${good}]`],
  ['an empty array', '[]'],
  ['10,000 ones', `[${'1,'.repeat(10_000)}1]`],
  ['100 answers in one array', `[${Array(100).fill(good).join()}]`],
  ['cut off', good.slice(0, -10)],
  ['NaN', result('{"content":[],"x":NaN}')],
  ['a trailing comma', result('{"content":[],}')],
  ['no UTF-8', result('{"content":[{"type":"text","text":"\xff\xfe\xc0\xaf"}]}')],
  ['a NUL', result('{"content":[{"type":"text","text":"a\0b"}]}')],
  ['a byte order mark', `\xef\xbb\xbf${good}`],
  ['UTF-16', Buffer.from(good, 'utf16le').toString('latin1')],
  ['300 levels', result(`{"content":[],"structuredContent":{"x":${nest(300)}}}`)],
  ['20,000 levels', result(`{"content":[],"x":${nest(20_000)}}`)],
  ['50,000 keys', result(`{"content":[],"x":{${Array.from({ length: 50_000 }, (_, n) => `"k${n}":1`).join()}}}`)],
  ['1 MB of spaces', `${' '.repeat(1_000_000)}${good}`],
  ['200,000 escapes', result(`{"content":[{"type":"text","text":"${'\\u0041'.repeat(200_000)}"}]}`)],
  ['17 MiB', result('{"content":[{"type":"text","text":"{fill}"}]}')],
  ['17 MiB without an end', '{"jsonrpc":"2.0","id":{id},"result":{"content":[{"type":"text","text":"{fill}'],
  ['content that is none', result('{"content":"none"}')],
  ['content null', result('{"content":null}')],
  ['content of nulls', result('{"content":[null,1,"x",[],{}]}')],
  ['content of a kind that there is not', result('{"content":[{"type":"hologram","data":{"x":1}}]}')],
  ['an image without data', result('{"content":[{"type":"image"}]}')],
  ['a resource that is a number', result('{"content":[{"type":"resource","resource":7}]}')],
  ['structured content that is an array', result('{"content":[],"structuredContent":[1,2]}')],
  ['structured content null', result('{"content":[],"structuredContent":null}')],
  ['isError a text', result('{"content":[],"isError":"yes"}')],
  ['__proto__', result('{"content":[],"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}')],
  ['_meta a number', result('{"content":[],"_meta":7}')],
  ['a kind of result that there is not', result('{"content":[],"resultType":"maybe"}')],
  ['a question without questions', result('{"resultType":"input_required"}')],
  ['questions that are none', result('{"resultType":"input_required","inputRequests":[1,2],"requestState":7}')],
  [
    'a question of a method that there is not',
    result('{"resultType":"input_required","inputRequests":{"a":{"method":"x/y"}}}'),
  ],
  ['a task that nobody wanted', result('{"resultType":"task","taskId":"x","status":"working"}')],
  ['hints for caching that are none', result('{"content":[],"ttlMs":-1e400,"cacheScope":"everybody"}')],
  ['two answers', `${good}\n${good}`],
  ['an answer and an error', `${good}\n${error('{"code":1,"message":"x"}')}`],
  ['an error and an answer', `${error('{"code":1,"message":"x"}')}\n${good}`],
  ['progress with a foreign token', `${progress('123456', '1')}\n${good}`],
  ['progress that is no number', `${progress('{token}', '"much"')}\n${good}`],
  ['progress that goes back', `${progress('{token}', '5')}\n${progress('{token}', '1')}\n${good}`],
  ['5,000 times progress', `${`${progress('{token}', '1')}\n`.repeat(5_000)}${good}`],
  ['progress after the answer', `${good}\n${progress('{token}', '9')}`],
  ['a notification that there is not', `{"jsonrpc":"2.0","method":"notifications/evil","params":{"x":1}}\n${good}`],
  ['a notification without method', `{"jsonrpc":"2.0","params":{}}\n${good}`],
  [
    'a log message of 200 KB',
    `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"${'l'.repeat(200_000)}"}}\n${good}`,
  ],
  ['a log message without level', `{"jsonrpc":"2.0","method":"notifications/message","params":{}}\n${good}`],
  [
    'the end of a call that there is not',
    `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}\n${good}`,
  ],
  ['a request that there is not', `{"jsonrpc":"2.0","id":"s1","method":"evil/run","params":{}}\n${good}`],
  [
    'a question that nobody can be asked',
    `{"jsonrpc":"2.0","id":"s2","method":"elicitation/create","params":{"message":"x"}}\n${good}`,
  ],
  [
    '500 requests',
    `${Array.from({ length: 500 }, (_, n) => `{"jsonrpc":"2.0","id":"r${n}","method":"ping"}\n`).join('')}${good}`,
  ],
  ['a request whose id is null', `{"jsonrpc":"2.0","id":null,"method":"ping"}\n${good}`],
  ['a tool list that is broken', `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":7}\n${good}`],
]

const head = (status: string, ...lines: string[]) => `${[`HTTP/1.1 ${status}`, ...lines].join('\r\n')}\r\n\r\n`
const JSON_TYPE = 'content-type: application/json'
const EVENTS = 'content-type: text/event-stream'
const closing = 'connection: close'
const page = '<html><body>proxy internal-name.example says no</body></html>'
const whole = (status: string, type: string, body: string, ...more: string[]) =>
  head(status, `content-type: ${type}`, closing, ...more) + body

/** Answers of servers over HTTP, to the letter. */
export const HTTP: BadAnswer[] = [
  { name: 'nothing and the end', bytes: '', after: 'end' },
  { name: 'nothing and a reset', bytes: '', after: 'reset' },
  { name: 'nothing at all', bytes: '', after: 'open' },
  { name: 'noise', bytes: '\x80\x00\xff\r\n\r\n', after: 'end' },
  { name: 'a line of HTTP/2', bytes: 'HTTP/2 200\r\n\r\n', after: 'end' },
  { name: 'a head that is cut off', bytes: 'HTTP/1.1 200 OK\r\ncontent-ty', after: 'reset' },
  { name: 'a head of 100 KB', bytes: head('200 OK', `x: ${'h'.repeat(100_000)}`, JSON_TYPE), after: 'end' },
  {
    name: '2,000 headers',
    bytes: head('200 OK', ...Array.from({ length: 2_000 }, (_, n) => `x-${n}: 1`)),
    after: 'end',
  },
  { name: 'a header with a line feed', bytes: head('200 OK', 'x: a\nb', JSON_TYPE, closing) + good, after: 'end' },
  { name: 'only 100s', bytes: 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(50), after: 'open' },
  { name: '101', bytes: head('101 Switching', 'upgrade: x', 'connection: upgrade'), after: 'open' },
  { name: '200 and nothing', bytes: head('200 OK', JSON_TYPE, 'content-length: 0') },
  { name: '202', bytes: head('202 Accepted', 'content-length: 0') },
  { name: '204', bytes: head('204 No Content') },
  ...['301', '302', '303', '307', '308'].map((status) => ({
    name: `${status} to somewhere inside`,
    bytes: head(`${status} Go`, 'location: http://169.254.169.254/latest', 'content-length: 0'),
  })),
  ...['400', '401', '403', '404', '405', '406', '409', '410', '413', '415', '418', '429', '431'].flatMap((status) => [
    {
      name: `${status} and a page`,
      bytes: whole(`${status} No`, 'text/html', page, 'www-authenticate: Bearer x'),
      after: 'end' as const,
    },
    {
      name: `${status} and JSON`,
      bytes: whole(`${status} No`, 'application/json', error('{"code":-32000,"message":"x"}')),
      after: 'end' as const,
    },
  ]),
  ...['500', '501', '502', '503', '504', '599'].flatMap((status) => [
    {
      name: `${status} and a page`,
      bytes: whole(`${status} No`, 'text/html', page, 'retry-after: 9999999'),
      after: 'end' as const,
    },
    {
      name: `${status} and JSON`,
      bytes: whole(`${status} No`, 'application/json', error('{"code":-32603,"message":"x"}')),
      after: 'end' as const,
    },
  ]),
  { name: 'status 999', bytes: whole('999 What', 'application/json', good), after: 'end' },
  { name: 'a page', bytes: whole('200 OK', 'text/html', page), after: 'end' },
  { name: 'no type', bytes: head('200 OK', closing) + good, after: 'end' },
  { name: 'two types', bytes: head('200 OK', JSON_TYPE, EVENTS, closing) + good, after: 'end' },
  { name: 'a type of 10 KB', bytes: whole('200 OK', `text/x${' '.repeat(10_000)}x`, good), after: 'end' },
  { name: 'another charset', bytes: whole('200 OK', 'application/json; charset=utf-16', good), after: 'end' },
  {
    name: 'compressed, it says',
    bytes: whole('200 OK', 'application/json', good, 'content-encoding: gzip'),
    after: 'end',
  },
  {
    name: 'a length that is too long',
    bytes: head('200 OK', JSON_TYPE, 'content-length: 100000') + good,
    after: 'end',
  },
  { name: 'a length that is too short', bytes: head('200 OK', JSON_TYPE, 'content-length: 10') + good },
  { name: 'a length that is none', bytes: head('200 OK', JSON_TYPE, 'content-length: x') + good, after: 'end' },
  {
    name: 'two lengths',
    bytes: head('200 OK', JSON_TYPE, 'content-length: 10', 'content-length: 20') + good,
    after: 'end',
  },
  {
    name: 'a length and chunks',
    bytes: head('200 OK', JSON_TYPE, 'content-length: 10', 'transfer-encoding: chunked') + good,
    after: 'end',
  },
  { name: 'chunks that are none', bytes: head('200 OK', JSON_TYPE, 'transfer-encoding: chunked') + good, after: 'end' },
  {
    name: 'a chunk that is cut off',
    bytes: `${head('200 OK', JSON_TYPE, 'transfer-encoding: chunked')}fff\r\n${good}`,
    after: 'reset',
  },
  {
    name: 'two answers, one after the other',
    bytes: `${head('200 OK', JSON_TYPE, 'content-length: 2')}{}${head('200 OK', JSON_TYPE, 'content-length: 2')}{}`,
  },
  { name: 'half of it and a reset', bytes: head('200 OK', JSON_TYPE, closing) + good.slice(0, 30), after: 'reset' },
  {
    name: 'half of it and nothing more',
    bytes: head('200 OK', JSON_TYPE, 'content-length: 500') + good.slice(0, 30),
    after: 'open',
  },
  { name: 'events, and none', bytes: head('200 OK', EVENTS, closing), after: 'end' },
  { name: 'events, and silence', bytes: head('200 OK', EVENTS), after: 'open' },
  {
    name: 'events, and comments only',
    bytes: `${head('200 OK', EVENTS, closing)}${': x\n\n'.repeat(1_000)}`,
    after: 'end',
  },
  { name: 'an event that is not ended', bytes: `${head('200 OK', EVENTS, closing)}data: ${good}`, after: 'end' },
  {
    name: 'an event that is cut off',
    bytes: `${head('200 OK', EVENTS, closing)}data: ${good.slice(0, 30)}`,
    after: 'reset',
  },
  {
    name: 'an event that ends lines with CR',
    bytes: `${head('200 OK', EVENTS, closing)}data: ${good}\r\r`,
    after: 'end',
  },
  {
    name: 'an event with a byte order mark',
    bytes: `${head('200 OK', EVENTS, closing)}\xef\xbb\xbfdata: ${good}\n\n`,
    after: 'end',
  },
  {
    name: 'an event of a kind that there is not',
    bytes: `${head('200 OK', EVENTS, closing)}event: evil\ndata: ${good}\n\n`,
    after: 'end',
  },
  {
    name: 'an id with a NUL',
    bytes: `${head('200 OK', EVENTS, closing)}id: a\0b\nretry: -1\ndata: ${good}\n\n`,
    after: 'end',
  },
  {
    name: 'to come again at once',
    bytes: `${head('200 OK', EVENTS, closing)}id: x\nretry: 0\ndata: \n\n`,
    after: 'end',
  },
  {
    name: 'to come again in 30 years',
    bytes: `${head('200 OK', EVENTS, closing)}id: x\nretry: 999999999999\ndata: \n\n`,
    after: 'end',
  },
  {
    name: 'an id of 100 KB',
    bytes: `${head('200 OK', EVENTS, closing)}id: ${'i'.repeat(100_000)}\ndata: ${good}\n\n`,
    after: 'end',
  },
  { name: 'a line of 17 MiB', bytes: `${head('200 OK', EVENTS, closing)}data: {fill}`, after: 'end' },
  {
    name: '100,000 empty data lines',
    bytes: `${head('200 OK', EVENTS, closing)}${'data\n'.repeat(100_000)}\n`,
    after: 'end',
  },
]

/** Any text as a body. */
export const asBody = ([name, text]: (typeof TEXTS)[number]): BadAnswer => ({
  name: `${name}, as a body`,
  bytes: head('200 OK', JSON_TYPE, closing) + text,
  after: 'end',
})

/** Any text as events, one for each of its lines. */
export const asEvents = ([name, text]: (typeof TEXTS)[number]): BadAnswer => ({
  name: `${name}, as events`,
  bytes:
    head('200 OK', EVENTS, closing) +
    text
      .split('\n')
      .map((line) => `data: ${line}\n\n`)
      .join(''),
  after: 'end',
})

/** Any text as lines of a program. */
export const asLines = ([name, text]: (typeof TEXTS)[number]): BadAnswer => ({
  name: `${name}, as lines`,
  bytes: `${text}\n`,
})

/** What programs do beside that. */
export const PROGRAM: BadAnswer[] = [
  { name: 'silence', bytes: '' },
  { name: 'its end', bytes: '', after: 'end' },
  { name: 'half a line and its end', bytes: good.slice(0, 20), after: 'end' },
  { name: 'a crash', bytes: '', after: 'reset' },
  { name: 'a banner and the answer', bytes: `Server listening!\n\x1b[31mwarning\x1b[0m\n${good}\n` },
  { name: 'lines that end in CR LF', bytes: `${good}\r\n` },
  { name: 'empty lines', bytes: `\n\n\n${good}\n` },
  { name: '200 lines of noise', bytes: `${'noise \x01\x02\n'.repeat(200)}${good}\n` },
  { name: 'the framing of LSP', bytes: `Content-Length: ${good.length}\r\n\r\n${good}\n` },
]
