import t from 'tap'
import type { Id, Request } from '../../src/base/rpc/message.js'
import { edit, parseObject, write } from '../../src/base/rpc/splice.js'
import type { Reply } from '../../src/mcp/protocol/call.js'
import { withoutEnvelope } from '../../src/mcp/protocol/meta.js'
import { methods } from '../../src/mcp/protocol/methods.js'
import { decodeRequest, encodeReply } from '../../src/mcp/protocol/modern-client.js'
import { faultOf } from '../support/faults.js'
import { parseText, textOf } from '../support/messages.js'
import { exampleDefinitions, examples, METHODS_OF_RESULTS, problems } from '../support/schema.js'

const decode = (text: string) => decodeRequest(parseText(text) as Request)
const withMeta = (meta: string) => `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{${meta}}}}`
const VERSION = '"io.modelcontextprotocol/protocolVersion":"2026-07-28"'
const CAPABILITIES = '"io.modelcontextprotocol/clientCapabilities":{}'

t.test('a memoized envelope decodes the same for every request', async (t) => {
  const client = '"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"}'
  const plain = withMeta(`${VERSION},${CAPABILITIES},${client}`)
  const [first, again] = [decode(plain), decode(plain)]
  t.same(again.caller, first.caller)
  t.same(write(again.meta), '{}')
  const more = decode(withMeta(`${VERSION},${CAPABILITIES},${client},"progressToken":7,"a/b":1`))
  t.same(more.caller, first.caller)
  t.same([more.progressToken, write(more.meta)], ['7', '{"a/b":1}'])
  const other = decode(
    withMeta(`${VERSION},${CAPABILITIES},"io.modelcontextprotocol/clientInfo":{"name":"d","version":"1"}`),
  )
  t.equal(other.caller.clientInfo, '{"name":"d","version":"1"}')
  const twice = withMeta(`${VERSION},${CAPABILITIES},${CAPABILITIES}`)
  for (const time of ['first', 'second']) t.equal(faultOf(() => decode(twice))?.fault, 'invalidRequest', time)
})

t.test('params with two members of one name are refused, also beside an envelope that has come before', async (t) => {
  const meta = `"_meta":{${VERSION},${CAPABILITIES}}`
  const call = (params: string) => `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{${params}}}`
  t.equal(
    faultOf(() => decode(call(`"name":"a",${meta}`))),
    undefined,
  )
  for (const params of [`"name":"a","name":"b",${meta}`, `${meta},"arguments":{},"argument\\u0073":{}`])
    t.match(
      faultOf(() => decode(call(params))),
      { fault: 'invalidRequest', message: /appears twice/ },
    )
})

t.test('requests of the specification decode to their content, without their envelope', async (t) => {
  const requests = exampleDefinitions().filter((name) => name.endsWith('Request'))
  let decoded = 0
  for (const definition of requests) {
    for (const { name, text } of examples(definition)) {
      const message = parseText(text)
      // Some examples are requests that a server embeds in a result, which are not messages.
      if (message.kind !== 'request') continue
      const { method, params, meta, caller } = decodeRequest(message)
      decoded++
      t.ok(Object.hasOwn(methods, method), `${definition}/${name}: ${method} is known`)
      t.equal(caller.revision, '2026-07-28')
      t.notMatch(write(params), /"_meta"/)
      t.notMatch(write(meta), /io\.modelcontextprotocol\/(protocolVersion|client|logLevel)/)
      const original = JSON.parse(text).params
      const { _meta, ...payload } = original
      t.same(JSON.parse(write(params)), payload, `${definition}/${name} keeps its params`)
      t.equal(
        caller.clientInfo && JSON.parse(caller.clientInfo).name,
        _meta['io.modelcontextprotocol/clientInfo']?.name,
      )
    }
  }
  t.ok(decoded >= 10, `${decoded} examples`)
})

t.test('arguments and vendor keys keep their bytes', async (t) => {
  const args = '{"big":9007199254740993,"one":1.0,"order":{"b":1,"2":2},"text":"\\u00e9"}'
  const { params, meta, progressToken } = decode(
    `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x", "arguments":${args},"inputResponses":{},"requestState":"s",` +
      `"_meta":{${VERSION},${CAPABILITIES},"progressToken":"t","com.example/n":1.0,"traceparent":"00-1-2-03"}}}`,
  )
  t.equal(write(params), `{"name":"x", "arguments":${args}}`)
  t.equal(write(meta), '{"com.example/n":1.0,"traceparent":"00-1-2-03"}')
  t.equal(progressToken, '"t"')
})

const malformed: [name: string, meta: string][] = [
  ['no capabilities', VERSION],
  ['capabilities that are an array', `${VERSION},"io.modelcontextprotocol/clientCapabilities":[]`],
  ['capabilities that are null', `${VERSION},"io.modelcontextprotocol/clientCapabilities":null`],
  ['a capability that is no object', `${VERSION},"io.modelcontextprotocol/clientCapabilities":{"elicitation":true}`],
  ['client info without version', `${VERSION},${CAPABILITIES},"io.modelcontextprotocol/clientInfo":{"name":"x"}`],
  ['client info that is a string', `${VERSION},${CAPABILITIES},"io.modelcontextprotocol/clientInfo":"x"`],
  ['a log level that there is not', `${VERSION},${CAPABILITIES},"io.modelcontextprotocol/logLevel":"loud"`],
  ['a log level in capitals', `${VERSION},${CAPABILITIES},"io.modelcontextprotocol/logLevel":"INFO"`],
  ['a progress token that is a fraction', `${VERSION},${CAPABILITIES},"progressToken":1.5`],
  ['a progress token that is null', `${VERSION},${CAPABILITIES},"progressToken":null`],
  ['a progress token that is an object', `${VERSION},${CAPABILITIES},"progressToken":{}`],
]

t.test('refuses a malformed envelope as invalid params, with 400', async (t) => {
  for (const [name, meta] of malformed) {
    const fault = faultOf(() => decode(withMeta(meta)))
    t.match({ status: fault?.status, code: fault?.toRpcError().code }, { status: 400, code: -32602 }, name)
  }
  t.equal(faultOf(() => decode(withMeta(`${VERSION},${CAPABILITIES},"a":1,"a":2`)))?.fault, 'invalidRequest')
  const array = '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[]}'
  t.equal(faultOf(() => decode(array))?.fault, 'invalidEnvelope')
})

const decodedCall = decode(
  `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x","_meta":{${VERSION},${CAPABILITIES},"progressToken":5}}}`,
)
const server = '{"name":"s","version":"1"}'

t.test('a lifted result of the specification is encoded again, and matches its schema', async (t) => {
  const byDefinition = { ...METHODS_OF_RESULTS, DiscoverResult: 'server/discover' }
  for (const [definition, method] of Object.entries(byDefinition)) {
    for (const { name, text } of examples(definition)) {
      const bare = edit(parseObject(text), { resultType: undefined, ttlMs: undefined, cacheScope: undefined })
      const result = withoutEnvelope(bare)
      const reply: Reply = { kind: 'result', result, server, cache: { ttlMs: 5, scope: 'public' } }
      const { result: encoded } = JSON.parse(textOf(encodeReply(reply, '1' as Id, { ...decodedCall, method }).text))
      t.same(problems('2026-07-28', definition, encoded), [], `${definition}/${name}`)
      t.equal(encoded.resultType, 'complete')
      t.same(encoded._meta['io.modelcontextprotocol/serverInfo'], { name: 's', version: '1' })
      const cacheable = 'ttlMs' in JSON.parse(text)
      t.equal(encoded.ttlMs, cacheable ? 5 : undefined, `${definition} ${cacheable ? 'has' : 'has no'} caching hints`)
    }
  }
})

t.test('a result is marked complete, whatever the server wrote', async (t) => {
  const reply: Reply = {
    kind: 'result',
    result: parseObject('{"resultType":"partial","n":1.0,"_meta":{"k":1}}'),
    server,
  }
  t.equal(
    encodeReply(reply, '"a"' as Id, decodedCall).text,
    `{"jsonrpc":"2.0","id":"a","result":{"resultType":"complete","n":1.0,"_meta":{"k":1,"io.modelcontextprotocol/serverInfo":${server}}}}`,
  )
})

t.test("progress has the client's token, and errors have its id", async (t) => {
  const progress: Reply = {
    kind: 'notification',
    method: 'notifications/progress',
    params: parseObject('{"progressToken":41,"progress":0.5}'),
  }
  t.equal(
    encodeReply(progress, '7' as Id, decodedCall).text,
    '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":5,"progress":0.5}}',
  )
  t.equal(
    encodeReply({ kind: 'error', error: { code: 4711, message: 'm', data: '{"x":1.0}' } }, '7' as Id, decodedCall).text,
    '{"jsonrpc":"2.0","id":7,"error":{"code":4711,"message":"m","data":{"x":1.0}}}',
  )
})
