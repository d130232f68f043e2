import t from 'tap'
import {
  error,
  type Id,
  idKey,
  keptKey,
  MAX_BATCH,
  type Message,
  notification,
  numberOf,
  readId,
  request,
  result,
} from '../../src/base/rpc/message.js'
import { write } from '../../src/base/rpc/splice.js'
import { parseText } from '../support/messages.js'

const kinds: [name: string, text: string, kind: Message['kind']][] = [
  ['a request', '{"jsonrpc":"2.0","id":1,"method":"ping"}', 'request'],
  ['a notification', '{"jsonrpc":"2.0","method":"notifications/x"}', 'notification'],
  ['a result', '{"jsonrpc":"2.0","id":1,"result":{}}', 'response'],
  ['an error without an id', '{"jsonrpc":"2.0","error":{"code":1,"message":""}}', 'response'],
  ['an error with the id null, as some servers write it', '{"jsonrpc":"2.0","id":null,"error":{}}', 'response'],
  ['an array', '[{"jsonrpc":"2.0","id":1,"method":"ping"}]', 'batch'],
  ['members in any order, and more of them', '{"x":1,"method":"ping","id":"a","jsonrpc":"2.0"}', 'request'],
  ['no version', '{"id":1,"method":"ping"}', 'invalid'],
  ['another version', '{"jsonrpc":"1.0","id":1,"method":"ping"}', 'invalid'],
  ['a version that is a number', '{"jsonrpc":2.0,"id":1,"method":"ping"}', 'invalid'],
  ['a method that is no string', '{"jsonrpc":"2.0","id":1,"method":1}', 'invalid'],
  ['an empty method', '{"jsonrpc":"2.0","id":1,"method":""}', 'invalid'],
  ['the id null', '{"jsonrpc":"2.0","id":null,"method":"ping"}', 'invalid'],
  ['an id that is a fraction', '{"jsonrpc":"2.0","id":1.5,"method":"ping"}', 'invalid'],
  ['an id with an exponent', '{"jsonrpc":"2.0","id":1e2,"method":"ping"}', 'request'],
  ['an id of over 64 digits', '{"jsonrpc":"2.0","id":1e64,"method":"ping"}', 'invalid'],
  ['an id that is an object', '{"jsonrpc":"2.0","id":{},"method":"ping"}', 'invalid'],
  ['an id of over 256 characters', `{"jsonrpc":"2.0","id":"${'x'.repeat(257)}","method":"ping"}`, 'invalid'],
  ['nothing', '{}', 'invalid'],
  ['a method that stands twice', '{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}', 'invalid'],
  [
    'params that stand twice, once in disguise',
    '{"jsonrpc":"2.0","id":1,"method":"a","params":{},"\\u0070arams":{}}',
    'invalid',
  ],
  ['a string', '"ping"', 'invalid'],
  ['null', 'null', 'invalid'],
]

t.test('distinguishes requests, notifications and responses', async (t) => {
  for (const [name, text, kind] of kinds) t.equal(parseText(text).kind, kind, name)
})

t.test('a message truncated anywhere throws', async (t) => {
  const text = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
  for (let end = 0; end < text.length; end++) t.throws(() => parseText(text.slice(0, end)), { name: 'JsonError' })
})

t.test('ids keep their bytes', async (t) => {
  for (const id of ['0', '-7', '""', '"7"', '7', '9007199254740993', '"\\u00e9"', '12345678901234567890']) {
    const message = parseText(`{"jsonrpc":"2.0","id":${id},"method":"ping"}`)
    t.equal(message.kind === 'request' && message.id, id)
    t.equal(result(id as Id, '{}'), `{"jsonrpc":"2.0","id":${id},"result":{}}`)
  }
  t.equal(readId('null'), undefined)
  t.equal(idKey('"\\u0061"' as Id), idKey('"a"' as Id))
  t.not(idKey('1' as Id), idKey('"1"' as Id))
})

t.test('an id that returns as a string matches the number', async (t) => {
  const numbers: [id: string, number: number | undefined][] = [
    ['7', 7],
    ['"7"', 7],
    ['7.0', 7],
    ['"x"', undefined],
    ['""', undefined],
    ['0', undefined],
    ['-32603', undefined],
    ['7.5', undefined],
    ['9007199254740993', undefined],
  ]
  for (const [id, number] of numbers) t.equal(numberOf(id), number, id)
  const kept = new Map([
    ['1', 'number'],
    ['"1"', 'string'],
    ['2', 'two'],
    ['"3"', 'three'],
  ])
  t.equal(keptKey(kept, '1' as Id), '1')
  t.equal(keptKey(kept, '"1"' as Id), '"1"')
  t.equal(keptKey(kept, '"2"' as Id), '2')
  t.equal(keptKey(kept, '3' as Id), '"3"')
  t.equal(keptKey(kept, '4' as Id), undefined)
})

t.test('reads at most one element of an array beyond the bound of a batch', async (t) => {
  const batch = parseText(`[${'1,'.repeat(MAX_BATCH + 5)}nonsense`)
  t.equal(batch.kind === 'batch' && batch.elements.length, MAX_BATCH + 1)
  t.throws(() => parseText('[1,nonsense]'), { name: 'JsonError' })
  t.throws(() => parseText('[1] 2'), { name: 'JsonError' })
})

t.test('an invalid message has its id if that is readable', async (t) => {
  const bad = parseText('{"jsonrpc":"2.0","id":"x","method":1}')
  t.equal(bad.kind === 'invalid' && bad.id, '"x"')
  const worse = parseText('{"jsonrpc":"2.0","id":1.5,"method":"ping"}')
  t.equal(worse.kind === 'invalid' && worse.id, undefined)
})

t.test('params are absent, an object, or invalid', async (t) => {
  const params = (json: string) => {
    const message = parseText(`{"jsonrpc":"2.0","id":1,"method":"a"${json}}`)
    if (message.kind !== 'request') throw new TypeError(message.kind)
    return typeof message.params === 'string' ? message.params : write(message.params)
  }
  t.equal(params(''), 'absent')
  t.equal(params(',"params":[1]'), 'not an object')
  t.equal(params(',"params":null'), 'absent')
  t.equal(params(',"params":{"n":1.0}'), '{"n":1.0}')
})

const nulls: [name: string, members: string, kind: Message['kind'], outcome?: 'result' | 'error'][] = [
  ['no error', '"id":1,"result":{},"error":null', 'response', 'result'],
  ['no error, said first', '"error":null,"id":1,"result":{}', 'response', 'result'],
  ['no method', '"id":1,"method":null,"result":{}', 'response', 'result'],
  ['no method and no error', '"method":null,"params":null,"id":1,"result":{},"error":null', 'response', 'result'],
  ['no result', '"id":1,"result":null,"error":{"code":1,"message":"m"}', 'response', 'error'],
  ['the result null', '"id":1,"result":null', 'response', 'result'],
  ['the result null, and no error', '"id":1,"result":null,"error":null', 'response', 'result'],
  ['an error without an id', '"id":null,"error":{"code":1,"message":"m"}', 'response', 'error'],
  ['a notification', '"id":null,"method":"notifications/x","params":null', 'notification'],
  ['a request', '"id":1,"method":"ping","params":null,"result":null,"error":null', 'request'],
  ['a request without an id', '"id":null,"method":"ping"', 'invalid'],
  ['neither result nor error', '"id":1,"error":null', 'invalid'],
  ['nothing', '"id":null,"method":null,"params":null,"error":null', 'invalid'],
]

t.test('a member that is null counts as absent where JSON-RPC allows no null', async (t) => {
  for (const [name, members, kind, outcome] of nulls) {
    const message = parseText(`{"jsonrpc":"2.0",${members}}`)
    t.equal(message.kind, kind, name)
    t.equal(message.kind === 'response' ? message.outcome.kind : undefined, outcome, name)
  }
})

t.test('a response with both an error and a result is an error', async (t) => {
  const message = parseText('{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"m"}}')
  t.equal(message.kind === 'response' && message.outcome.kind, 'error')
})

t.test('does not write absent members', async (t) => {
  t.equal(request(3, 'tools/list', undefined), '{"jsonrpc":"2.0","id":3,"method":"tools/list"}')
  t.equal(request(3, 'a"b', '{"n":1.0}'), '{"jsonrpc":"2.0","id":3,"method":"a\\"b","params":{"n":1.0}}')
  t.equal(notification('n', undefined), '{"jsonrpc":"2.0","method":"n"}')
  t.equal(error(undefined, { code: -32700, message: 'x' }), '{"jsonrpc":"2.0","error":{"code":-32700,"message":"x"}}')
  t.equal(
    error('1' as Id, { code: 1, message: 'x', data: '{"a":1.0}' }),
    '{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x","data":{"a":1.0}}}',
  )
})
