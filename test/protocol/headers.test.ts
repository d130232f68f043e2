import fc from 'fast-check'
import t from 'tap'
import { Fault } from '../../src/base/fault/fault.js'
import type { Request } from '../../src/base/rpc/message.js'
import { parseObject, write } from '../../src/base/rpc/splice.js'
import { annotationsOf, withoutAnnotations } from '../../src/mcp/protocol/annotations.js'
import {
  checkHeaders,
  checkParamHeaders,
  decodeValue,
  encodeValue,
  type ReceivedHeaders,
  single,
  versionHeader,
} from '../../src/mcp/protocol/headers.js'
import { parseText } from '../support/messages.js'

const received = (headers: Record<string, string[]>): ReceivedHeaders =>
  Object.fromEntries(Object.entries(headers).map(([name, values]) => [name.toLowerCase(), values]))

function refuses(check: () => unknown): boolean {
  try {
    check()
    return false
  } catch (error) {
    if (error instanceof Fault && error.fault === 'headerMismatch') return true
    throw error
  }
}

const encodings: [name: string, value: string, encoded: string][] = [
  ['plain', 'us-west1', 'us-west1'],
  ['with inner space and tab', 'a \tb', 'a \tb'],
  ['not ASCII', 'Hello, 世界', '=?base64?SGVsbG8sIOS4lueVjA==?='],
  ['padded with space', ' padded ', '=?base64?IHBhZGRlZCA=?='],
  ['with a line break', 'line1\nline2', '=?base64?bGluZTEKbGluZTI=?='],
  ['looking like the encoding', '=?base64?literal?=', '=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?='],
  ['empty', '', '=?base64??='],
]

t.test('encodes values as the specification shows, and decodes them', async (t) => {
  for (const [name, value, encoded] of encodings) {
    t.equal(encodeValue(value), encoded, name)
    t.equal(decodeValue(encoded, 'x'), value, name)
  }
  fc.assert(fc.property(fc.string({ unit: 'grapheme' }), (value) => decodeValue(encodeValue(value), 'x') === value))
  fc.assert(fc.property(fc.string({ unit: 'grapheme' }), (value) => /^[\t\x20-\x7e]+$/.test(encodeValue(value))))
})

const malformed: [name: string, value: string][] = [
  ['padding missing', '=?base64?SGVsbG8sIOS4lueVjA?='],
  ['the alphabet of URLs', '=?base64?Pz8_?='],
  ['white space inside', '=?base64?SGVs bG8=?='],
  ['stray bits', '=?base64?SGVsbG9=?='],
  ['no UTF-8', '=?base64?wyg=?='],
  ['a character that is no ASCII', 'caf\u00e9'],
  ['a control character', 'a\u0001b'],
]

t.test('refuses a value that is neither plain nor properly encoded', async (t) => {
  for (const [name, value] of malformed)
    t.ok(
      refuses(() => decodeValue(value, 'x')),
      name,
    )
  t.equal(decodeValue('=?BASE64?SGVsbG8=?=', 'x'), '=?BASE64?SGVsbG8=?=', 'the markers are case-sensitive')
})

const call = parseText('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"日本"}}') as Request
const read = parseText('{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"file:///a b"}}') as Request
const list = parseText('{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}') as Request
const nameless = parseText('{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{}}') as Request
const encodedName = '=?base64?5pel5pys?='
const literal = parseText(
  JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: encodedName } }),
)

const standard: [name: string, request: Request, headers: Record<string, string[]>, ok: boolean][] = [
  ['both right', call, { 'mcp-method': ['tools/call'], 'mcp-name': [encodedName] }, true],
  ['no method', call, { 'mcp-name': [encodedName] }, false],
  ['another method', call, { 'mcp-method': ['tools/list'], 'mcp-name': [encodedName] }, false],
  ['method in other case', call, { 'mcp-method': ['Tools/Call'], 'mcp-name': [encodedName] }, false],
  ['no name', call, { 'mcp-method': ['tools/call'] }, false],
  ['another name', call, { 'mcp-method': ['tools/call'], 'mcp-name': ['x'] }, false],
  [
    'a name that the header encodes, spelt like the header',
    literal as Request,
    { 'mcp-method': ['tools/call'], 'mcp-name': [encodedName] },
    false,
  ],
  ['space around', call, { 'mcp-method': [' tools/call\t'], 'mcp-name': [` ${encodedName} `] }, true],
  ['the same twice', call, { 'mcp-method': ['tools/call', 'tools/call'], 'mcp-name': [encodedName] }, true],
  ['two different', call, { 'mcp-method': ['tools/call', 'tools/list'], 'mcp-name': [encodedName] }, false],
  ['a name with a space', read, { 'mcp-method': ['resources/read'], 'mcp-name': ['file:///a b'] }, true],
  ['a name where none belongs', list, { 'mcp-method': ['tools/list'], 'mcp-name': ['whatever'] }, true],
  ['a name that the body lacks', nameless, { 'mcp-method': ['prompts/get'], 'mcp-name': ['x'] }, false],
]

t.test('Mcp-Method and Mcp-Name must match the body', async (t) => {
  for (const [name, request, headers, ok] of standard)
    t.equal(
      refuses(() => checkHeaders(request, received(headers))),
      !ok,
      name,
    )
})

t.test('a version header that a proxy has joined counts once', async (t) => {
  t.equal(versionHeader(received({ 'mcp-protocol-version': ['2026-07-28, 2026-07-28'] })), '2026-07-28')
  t.equal(versionHeader(received({ 'mcp-protocol-version': ['2026-07-28', ' 2026-07-28'] })), '2026-07-28')
  t.ok(refuses(() => versionHeader(received({ 'mcp-protocol-version': ['2026-07-28, 2025-11-25'] }))))
  t.equal(versionHeader(received({})), undefined)
  t.equal(single(received({ 'mcp-name': ['a, b'] }), 'mcp-name'), 'a, b')
})

const annotated = annotationsOf(
  parseObject(`{"type":"object","properties":{
    "region":{"type":"string","x-mcp-header":"Region"},
    "count":{"type":"integer","x-mcp-header":"Count"},
    "deep":{"type":"object","properties":{"flag":{"type":"boolean","x-mcp-header":"Flag"}}},
    "plain":{"type":"string"}}}`),
)

const params: [name: string, args: string, headers: Record<string, string>, ok: boolean][] = [
  ['a string', '{"region":"us"}', { 'mcp-param-region': 'us' }, true],
  ['a string in Base64', '{"region":"日本"}', { 'mcp-param-region': encodedName }, true],
  ['another string', '{"region":"us"}', { 'mcp-param-region': 'eu' }, false],
  ['the header missing', '{"region":"us"}', {}, false],
  ['the value missing', '{}', { 'mcp-param-region': 'us' }, true],
  ['the value null, no header', '{"region":null}', {}, true],
  ['the value null, a header', '{"region":null}', { 'mcp-param-region': 'us' }, true],
  ['an integer', '{"count":42}', { 'mcp-param-count': '42' }, true],
  ['an integer with a fraction of zero', '{"count":42}', { 'mcp-param-count': '42.0' }, true],
  ['an integer in the body with one', '{"count":42.0}', { 'mcp-param-count': '42' }, true],
  ['an integer with an exponent', '{"count":100}', { 'mcp-param-count': '1e2' }, true],
  ['another integer', '{"count":42}', { 'mcp-param-count': '43' }, false],
  ['an integer that is none', '{"count":42}', { 'mcp-param-count': '0x2a' }, false],
  ['an unsafe integer', '{"count":9007199254740993}', { 'mcp-param-count': '9007199254740993' }, false],
  ['a boolean inside', '{"deep":{"flag":true}}', { 'mcp-param-flag': 'true' }, true],
  ['a boolean in other case', '{"deep":{"flag":true}}', { 'mcp-param-flag': 'TRUE' }, false],
  ['a header that nothing asks for', '{"plain":"x"}', { 'mcp-param-plain': 'y' }, true],
]

t.test('Mcp-Param-* must match the arguments, where the schema requires it', async (t) => {
  for (const [name, args, headers, ok] of params) {
    t.equal(
      refuses(() => checkParamHeaders(annotated, parseObject(args), new Map(Object.entries(headers)))),
      !ok,
      name,
    )
  }
  t.notOk(refuses(() => checkParamHeaders(annotated, undefined, new Map())))
})

const unsound: [name: string, schema: string][] = [
  ['empty', '{"properties":{"a":{"type":"string","x-mcp-header":""}}}'],
  ['no token', '{"properties":{"a":{"type":"string","x-mcp-header":"a b"}}}'],
  ['a line break', '{"properties":{"a":{"type":"string","x-mcp-header":"a\\r\\nb"}}}'],
  ['no string', '{"properties":{"a":{"type":"string","x-mcp-header":1}}}'],
  [
    'twice in other case',
    '{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}',
  ],
  ['on a number', '{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}'],
  ['on an array', '{"properties":{"a":{"type":"array","x-mcp-header":"A"}}}'],
  ['on several types', '{"properties":{"a":{"type":["string","null"],"x-mcp-header":"A"}}}'],
  ['on no type', '{"properties":{"a":{"x-mcp-header":"A"}}}'],
  ['at the root', '{"type":"string","x-mcp-header":"A"}'],
  ['in items', '{"properties":{"a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}}}'],
  ['in oneOf', '{"oneOf":[{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}]}'],
  ['in $defs', '{"$defs":{"a":{"type":"string","x-mcp-header":"A"}}}'],
  ['in dependencies', '{"dependencies":{"b":{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}}}'],
  ['in then', '{"then":{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}}'],
]

t.test('finds annotations that break a rule, and can remove them', async (t) => {
  for (const [name, schema] of unsound) {
    t.throws(() => annotationsOf(parseObject(schema)), { name: 'AnnotationError' }, name)
    t.notMatch(write(withoutAnnotations(parseObject(schema))), /x-mcp-header/, name)
  }
  const decoy =
    '{"properties":{"x-mcp-header":{"type":"string","default":{"x-mcp-header":"kept"}}},"big":9007199254740993}'
  t.same(annotationsOf(parseObject(decoy)), [])
  t.equal(write(withoutAnnotations(parseObject(decoy))), decoy)
})
