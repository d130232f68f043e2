import t from 'tap'
import { isLeftOut, type Request, type Response, request } from '../../src/base/rpc/message.js'
import { EMPTY, parseObject, write } from '../../src/base/rpc/splice.js'
import type { Call, Reply } from '../../src/mcp/protocol/call.js'
import { forwardedCapabilities } from '../../src/mcp/protocol/capabilities.js'
import {
  decodeHandshake,
  decodeReply,
  discoverResult,
  encodeParams,
  type Handshake,
  initializeParams,
  offers,
} from '../../src/mcp/protocol/legacy-server.js'
import { decodeRequest } from '../../src/mcp/protocol/modern-client.js'
import { faultOf } from '../support/faults.js'
import { parseText } from '../support/messages.js'
import { exampleDefinitions, examples, problems } from '../support/schema.js'

function callOf(method: string, params = '{}', meta = '{}'): Call {
  const log = { note() {}, debug() {}, warn() {} }
  const caller = { revision: '2026-07-28', capabilities: '{}' }
  const signal = new AbortController().signal
  const abort = () => {}
  return {
    method,
    params: params === '{}' ? EMPTY : parseObject(params),
    meta: parseObject(meta),
    progress: false,
    caller,
    principal: 'p',
    notify: () => undefined,
    signal,
    abort,
    log,
  }
}

const answer = (json: string) => parseText(`{"jsonrpc":"2.0","id":1,${json}}`) as Response
const replyTo = (method: string, json: string, params?: string): Reply =>
  decodeReply(callOf(method, params), answer(json), undefined)

function resultOf(method: string, result: string): string {
  const reply = replyTo(method, `"result":${result}`)
  return reply.kind === 'result' ? write(reply.result) : reply.kind
}

t.test('requests of the specification become requests of every legacy revision that has them', async (t) => {
  const known: Record<string, string> = {
    CallToolRequest: 'tools/call',
    ListToolsRequest: 'tools/list',
    ListPromptsRequest: 'prompts/list',
    ListResourcesRequest: 'resources/list',
    ListResourceTemplatesRequest: 'resources/templates/list',
    ReadResourceRequest: 'resources/read',
    GetPromptRequest: 'prompts/get',
    CompleteRequest: 'completion/complete',
  }
  for (const definition of exampleDefinitions().filter((name) => Object.hasOwn(known, name))) {
    for (const { name, text } of examples(definition)) {
      const { params, meta, method } = decodeRequest(parseText(text) as Request)
      for (const revision of ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'] as const) {
        const sent = request(3, method, encodeParams({ ...callOf(method), params, meta }, revision, 3))
        t.same(problems(revision, definition, JSON.parse(sent)), [], `${definition}/${name} in ${revision}`)
        t.notMatch(sent, /io\.modelcontextprotocol/)
      }
    }
  }
})

const params: [
  name: string,
  method: string,
  params: string,
  meta: string,
  token: number | undefined,
  sent: string | undefined,
][] = [
  ['nothing to say', 'tools/list', '{}', '{}', undefined, undefined],
  ['a cursor that is empty', 'tools/list', '{"cursor":""}', '{}', undefined, '{"cursor":""}'],
  ['a token', 'tools/list', '{}', '{}', 5, '{"_meta":{"progressToken":5}}'],
  [
    'vendor keys and a token',
    'tools/call',
    '{"name":"x"}',
    '{"v/k":1.0}',
    5,
    '{"name":"x","_meta":{"v/k":1.0,"progressToken":5}}',
  ],
  ['a stray task', 'tools/call', '{"name":"x","task":{"ttl":1}}', '{}', undefined, '{"name":"x"}'],
  [
    'arguments to the letter',
    'tools/call',
    '{"name":"x","arguments": {"a":1.0,"a":2} }',
    '{}',
    undefined,
    '{"name":"x","arguments": {"a":1.0,"a":2} }',
  ],
]

t.test('removes params that the server would not know', async (t) => {
  for (const [name, method, text, meta, token, sent] of params) {
    const encoded = encodeParams(callOf(method, text, meta), '2025-11-25', token)
    t.equal(isLeftOut(encoded) ? undefined : write(encoded), sent, name)
  }
  const complete = callOf('completion/complete', '{"ref":{},"argument":{},"context":{}}')
  t.equal(write(encodeParams(complete, '2025-06-18', undefined)), '{"ref":{},"argument":{},"context":{}}')
  t.equal(write(encodeParams(complete, '2025-03-26', undefined)), '{"ref":{},"argument":{}}')
})

const declared: [name: string, modern: string, legacy: string][] = [
  ['nothing', '{}', '{}'],
  ['elicitation', '{"elicitation":{}}', '{"elicitation":{}}'],
  ['elicitation by form', '{"elicitation":{"form":{}}}', '{"elicitation":{}}'],
  ['elicitation both ways', '{"elicitation":{"form":{},"url":{}}}', '{"elicitation":{"form":{},"url":{}}}'],
  ['elicitation by URL alone', '{"elicitation":{"url":{}}}', '{"elicitation":{"url":{}}}'],
  ['sampling with all', '{"sampling":{"tools":{},"context":{}}}', '{"sampling":{"tools":{},"context":{}}}'],
  ['roots with a promise', '{"roots":{"listChanged":true}}', '{"roots":{}}'],
  ['tasks of either kind', '{"tasks":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}', '{}'],
  [
    'other extensions',
    '{"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["a"]}}}',
    '{"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["a"]}}}',
  ],
  ['experiments', '{"experimental":{"x":{"n":1.0}}}', '{"experimental":{"x":{"n":1.0}}}'],
  ['what nobody knows', '{"frobnicate":{}}', '{}'],
]

t.test('declares only capabilities that it can translate: never tasks, never roots.listChanged', async (t) => {
  for (const [name, modern, legacy] of declared) {
    t.equal(forwardedCapabilities(modern), legacy, name)
    const params = JSON.parse(initializeParams('2025-11-25', '{"name":"n","version":"1"}', legacy))
    t.same(problems('2025-11-25', 'InitializeRequestParams', params), [], `${name} is valid`)
  }
})

const handshake = (capabilities: string, revision: Handshake['revision'] = '2025-11-25'): Handshake =>
  decodeHandshake(
    parseObject(
      `{"protocolVersion":"${revision}","capabilities":${capabilities},"serverInfo":{"name":"s","version":"1","n":1.0},"instructions":"do"}`,
    ),
    revision,
  )

t.test('a handshake becomes the answer to server/discover', async (t) => {
  const capabilities =
    '{"tools":{"listChanged":true},"resources":{"subscribe":true},"logging":{},"tasks":{"list":{}},"experimental":{"e":{}},' +
    '"extensions":{"io.modelcontextprotocol/tasks":{},"io.modelcontextprotocol/ui":{}},"completions":{}}'
  const result = JSON.parse(write(discoverResult(handshake(capabilities), { receives: true })))
  t.same(result, {
    supportedVersions: ['2026-07-28'],
    capabilities: {
      tools: { listChanged: true },
      resources: { subscribe: true },
      logging: {},
      completions: {},
      extensions: { 'io.modelcontextprotocol/ui': {} },
      experimental: { e: {} },
    },
    serverInfo: { name: 's', version: '1', n: 1 },
    instructions: 'do',
  })
  const deaf = JSON.parse(write(discoverResult(handshake(capabilities), { receives: false })))
  t.same(deaf.capabilities.tools, {}, 'nothing is promised that has no way in')
  t.same(deaf.capabilities.resources, {})
  t.match(write(discoverResult(handshake('{"x":1}'), { receives: true })), /"capabilities":\{\}/)
})

t.test('completions imply a capability in revisions that have none for them', async (t) => {
  t.ok(offers(handshake('{"prompts":{}}', '2024-11-05'), 'completion/complete'))
  t.notOk(offers(handshake('{"tools":{}}', '2024-11-05'), 'completion/complete'))
  t.notOk(offers(handshake('{"prompts":{}}', '2025-03-26'), 'completion/complete'))
  t.match(write(discoverResult(handshake('{"prompts":{}}', '2024-11-05'), { receives: true })), /"completions":\{\}/)
  t.ok(offers(handshake('{}'), 'vendor/anything'), 'what the bridge does not know is for the server to refuse')
  t.notOk(offers(handshake('{"tools":{}}'), 'prompts/list'))
})

t.test('refuses a server without a common revision, with both lists', async (t) => {
  const fault = faultOf(() =>
    decodeHandshake(parseObject('{"protocolVersion":"1999-01-01","capabilities":{}}'), undefined),
  )
  t.match(fault?.toRpcError().data, /"offered":"1999-01-01","supported":\["2026-07-28","2025-11-25"/)
})

const lifted: [name: string, method: string, from: string, to: string][] = [
  [
    'execution goes',
    'tools/list',
    '{"tools":[{"name":"a","inputSchema":{"type":"object"},"execution":{"taskSupport":"optional"}}]}',
    '{"tools":[{"name":"a","inputSchema":{"type":"object"}}]}',
  ],
  [
    'a schema without type gets one',
    'tools/list',
    '{"tools":[{"name":"a","inputSchema":{"n":1.0}}]}',
    '{"tools":[{"name":"a","inputSchema":{"n":1.0,"type":"object"}}]}',
  ],
  [
    'a schema of another type is made an object',
    'tools/list',
    '{"tools":[{"name":"a","inputSchema":{"type":"string"}}]}',
    '{"tools":[{"name":"a","inputSchema":{"type":"object"}}]}',
  ],
  [
    'no schema at all',
    'tools/list',
    '{"tools":[{"name":"a"}]}',
    '{"tools":[{"name":"a","inputSchema":{"type":"object"}}]}',
  ],
  [
    'properties that are null go',
    'tools/list',
    '{"tools":[{"inputSchema":{"type":"object","properties":null}}]}',
    '{"tools":[{"inputSchema":{"type":"object"}}]}',
  ],
  [
    'a sound annotation stays',
    'tools/list',
    '{"tools":[{"inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"}}}}]}',
    '{"tools":[{"inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"}}}}]}',
  ],
  [
    'an unsound annotation goes, the tool stays',
    'tools/list',
    '{"tools":[{"inputSchema":{"type":"object","properties":{"a":{"type":"number","x-mcp-header":"A"}}}}]}',
    '{"tools":[{"inputSchema":{"type":"object","properties":{"a":{"type":"number"}}}}]}',
  ],
  [
    'only what needs it is touched',
    'tools/list',
    '{"tools": [ {"inputSchema":{"type":"object","n":1.0}} , {"inputSchema":{}}],"x":1e400}',
    '{"tools": [ {"inputSchema":{"type":"object","n":1.0}} , {"inputSchema":{"type":"object"}}],"x":1e400}',
  ],
  ['a cursor that is null goes', 'prompts/list', '{"prompts":[],"nextCursor":null}', '{"prompts":[]}'],
  [
    'a cursor that is empty stays',
    'resources/list',
    '{"resources":[],"nextCursor":""}',
    '{"resources":[],"nextCursor":""}',
  ],
  [
    "the server's own hints go",
    'resources/templates/list',
    '{"resourceTemplates":[],"ttlMs":5,"cacheScope":"public"}',
    '{"resourceTemplates":[]}',
  ],
  ['on reads as well', 'resources/read', '{"contents":[],"ttlMs":5}', '{"contents":[]}'],
  [
    'inside content nothing goes',
    'tools/call',
    '{"content":[],"structuredContent":{"ttlMs":5,"resultType":"x","_meta":{}}}',
    '{"content":[],"structuredContent":{"ttlMs":5,"resultType":"x","_meta":{}}}',
  ],
  ['content that is missing is empty', 'tools/call', '{"isError":true}', '{"isError":true,"content":[]}'],
  [
    'a result of 2024',
    'tools/call',
    '{"toolResult":{"a":1.0}}',
    '{"content":[{"type":"text","text":"{\\"a\\":1.0}"}]}',
  ],
  [
    'unknown blocks pass',
    'tools/call',
    '{"content":[{"type":"hologram","n":1.0}]}',
    '{"content":[{"type":"hologram","n":1.0}]}',
  ],
  [
    "the protocol's keys go from _meta, the vendor's stay",
    'prompts/get',
    '{"messages":[],"_meta":{"io.modelcontextprotocol/related-task":{},"io.modelcontextprotocol/serverInfo":{},"v/k":1.0}}',
    '{"messages":[],"_meta":{"v/k":1.0}}',
  ],
  [
    'a _meta that is empty afterwards goes',
    'prompts/get',
    '{"messages":[],"_meta":{"io.modelcontextprotocol/related-task":{}}}',
    '{"messages":[]}',
  ],
  [
    'a type of result goes, for there is one of our own',
    'prompts/get',
    '{"messages":[],"resultType":"weird"}',
    '{"messages":[]}',
  ],
]

t.test('lifts results into the middle form', async (t) => {
  for (const [name, method, from, to] of lifted) t.equal(resultOf(method, from), to, name)
  const many = `{"completion":{"values":${JSON.stringify(Array.from({ length: 101 }, (_, i) => `v${i}`))},"total":101}}`
  const few = JSON.parse(resultOf('completion/complete', many)).completion
  t.equal(few.values.length, 100)
  t.equal(few.hasMore, true)
  t.equal(few.total, 101)
})

t.test(
  'a result that is not an object becomes an empty one if the method has no other, and a fault otherwise',
  async (t) => {
    t.same(replyTo('resources/unsubscribe', '"result":null'), { kind: 'result', result: EMPTY, server: undefined })
    t.equal(faultOf(() => replyTo('tools/list', '"result":"ok"'))?.fault, 'upstreamProtocol')
  },
)

const errors: [
  name: string,
  method: string,
  error: string,
  seen: { code: number; message?: string; data?: string | undefined },
][] = [
  [
    'not found on a read',
    'resources/read',
    '{"code":-32002,"message":"m"}',
    { code: -32602, message: 'm', data: '{"uri":"file:///x"}' },
  ],
  [
    'not found, with its data',
    'resources/read',
    '{"code":-32002,"message":"m","data":{"uri":"u","n":1.0}}',
    { code: -32602, data: '{"uri":"u","n":1.0}' },
  ],
  [
    'the same elsewhere',
    'tools/call',
    '{"code":-32002,"message":"m"}',
    { code: -32603, data: '{"upstreamCode":-32002}' },
  ],
  [
    'a URL to be visited',
    'tools/call',
    '{"code":-32042,"message":"m","data":{"elicitations":[{"url":"https://secret"}]}}',
    { code: -32603, data: '{"upstreamCode":-32042}' },
  ],
  [
    'a reserved code',
    'tools/call',
    '{"code":-32099,"message":"m","data":[1.0]}',
    { code: -32603, data: '{"upstreamCode":-32099,"data":[1.0]}' },
  ],
  [
    'a code with a modern meaning',
    'tools/call',
    '{"code":-32021,"message":"m"}',
    { code: -32603, data: '{"upstreamCode":-32021}' },
  ],
  ['54 a code of an application', 'tools/call', '{"code":4711,"message":"m"}', { code: 4711, data: undefined }],
  ['54 another', 'tools/call', '{"code":-31000,"message":"m","data":{"n":1.0}}', { code: -31000, data: '{"n":1.0}' }],
  ['a code of old without meaning', 'tools/call', '{"code":-32001,"message":"m"}', { code: -32001 }],
  ['a standard code', 'tools/call', '{"code":-32602,"message":"m","data":null}', { code: -32602, data: 'null' }],
  ['a code that is a string', 'tools/call', '{"code":"x","message":"m"}', { code: -32603, message: 'm' }],
  ['no message', 'tools/call', '{"code":1}', { code: -32603 }],
  ['an error that is a string', 'tools/call', '"boom"', { code: -32603 }],
]

t.test('errors have the codes that mean the same to a modern client', async (t) => {
  for (const [name, method, error, seen] of errors) {
    const reply = replyTo(method, `"error":${error}`, '{"uri":"file:///x"}')
    t.match(reply, { kind: 'error', error: seen }, name)
  }
})
