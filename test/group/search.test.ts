/** A group with tool search: what is listed and found, and how a call through `call_tool` is handled. */
import fc from 'fast-check'
import t from 'tap'
import { Fault } from '../../src/base/fault/fault.js'
import { unlimited } from '../../src/base/limits/memory.js'
import { parseObject, raw, value, write } from '../../src/base/rpc/splice.js'
import { SIGN_IN_TOOL } from '../../src/mcp/protocol/account.js'
import type { Call } from '../../src/mcp/protocol/call.js'
import type { SearchPlan } from '../../src/middle/group/member.js'
import { scopes } from '../../src/middle/policy/scopes.js'
import { ToolNames } from '../../src/middle/policy/tool-names.js'
import { ask, callOf, errorOf, FakeServer, faultOf, groupOf, inputOf, named, paramsOf, resultOf } from './fakes.js'

type Json = Record<string, unknown>
const SEARCH: SearchPlan = { always: [], limit: 5 }
const content = (text: string) => ({ content: [{ type: 'text', text }] })
const tool = (name: string, description = '') => ({ name, description, inputSchema: { type: 'object' } })
const namesIn = (result: Json) => (result['tools'] as Json[]).map(({ name }) => name)
const OWN = ['search_tools', 'call_tool']

const search = (args: Json) => ({ name: 'search_tools', arguments: args })
async function found(group: Parameters<typeof ask>[0], query: string, more: Partial<Call> = {}, limit?: number) {
  const result = await ask(group, 'tools/call', search({ query, ...(limit !== undefined && { limit }) }), more)
  return namesIn(result['structuredContent'] as Json)
}

function setUp() {
  const a = new FakeServer({
    'tools/list': { tools: [tool('search_code', 'Finds code'), tool('get_issue', 'Reads an issue')] },
    'tools/call': content('a'),
  })
  const b = new FakeServer({
    'tools/list': { tools: [tool('read_file', 'Reads a file'), tool('search', 'Finds files')] },
    'tools/call': content('b'),
  })
  return { a, b }
}

t.test('lists two tools, and those that are always listed', async (t) => {
  const { a, b } = setUp()
  const { group } = groupOf({ a, b }, { search: { always: ['b__read*', '*_issue'], limit: 5 } })
  const result = await ask(group, 'tools/list')
  t.same(namesIn(result), [...OWN, 'a__get_issue', 'b__read_file'])
  t.match((result['tools'] as Json[])[0], {
    description: /of a, b by words/,
    inputSchema: { type: 'object', required: ['query'] },
    annotations: { readOnlyHint: true },
  })
  t.equal(result['nextCursor'], undefined)
  t.match((await faultOf(group, 'tools/list', { cursor: 'x' })).toRpcError(), { code: -32602 })
  t.same(namesIn(await ask(groupOf({ a, b }, { search: SEARCH }).group, 'tools/list')), OWN)
  t.same(namesIn(await ask(groupOf({ a, b }).group, 'tools/list')).length, 4, 'it is off by default')
})

t.test('reads all pages of all servers, and the list expires when the first page expires', async (t) => {
  const { a } = setUp()
  const paged = new FakeServer({
    'tools/list': (call) =>
      raw(call.params, 'cursor') === undefined
        ? resultOf({ tools: [tool('one')], nextCursor: '2' }, { cache: { ttlMs: 500, scope: 'public' } })
        : resultOf({ tools: [tool('two')] }, { cache: { ttlMs: 100, scope: 'private' } }),
  })
  const { group } = groupOf({ a, paged }, { search: { always: ['paged__*'], limit: 5 } })
  t.match(await group.handle(callOf('tools/list')), { cache: { ttlMs: 0, scope: 'private' } })
  t.same(namesIn(await ask(group, 'tools/list')), [...OWN, 'paged__one', 'paged__two'])
  const alone = groupOf({ paged, none: new FakeServer() }, { search: { always: ['*'], limit: 5 } }).group
  t.match(await alone.handle(callOf('tools/list')), { cache: { ttlMs: 100, scope: 'private' } })
  t.same(await found(group, 'two'), ['paged__two'])
})

t.test('returns tools as they would be listed, as text and as data', async (t) => {
  const definition = '{ "name":"tool" ,"description":"Finds code","n":1.0,"inputSchema":{"type":"object"}}'
  const a = new FakeServer({
    'tools/list': () => ({ kind: 'result', result: parseObject(`{"tools":[${definition}]}`) }),
  })
  const { group } = groupOf({ a, b: setUp().b }, { search: SEARCH })
  const reply = await group.handle(callOf('tools/call', search({ query: 'code' })))
  if (reply.kind !== 'result') return t.fail('no result')
  const listed = await groupOf({ a, b: new FakeServer() }).group.handle(callOf('tools/list'))
  const expected = `{"tools":${listed.kind === 'result' ? raw(listed.result, 'tools') : ''}}`
  t.match(expected, '"n":1.0')
  t.equal(raw(reply.result, 'structuredContent'), expected)
  t.same(JSON.parse(write(reply.result)), {
    content: [{ type: 'text', text: expected }],
    structuredContent: JSON.parse(expected) as object,
  })
  t.match(JSON.parse(reply.server ?? ''), { name: 'team' })
})

t.test('bounds the results by the caller or the configuration', async (t) => {
  const a = new FakeServer({ 'tools/list': { tools: Array.from({ length: 100 }, (_, at) => tool(`word_${at}`)) } })
  const { group } = groupOf({ a, b: new FakeServer() }, { search: { always: [], limit: 3 } })
  const count = async (limit?: number) => (await found(group, 'word', {}, limit)).length
  t.same(
    [await count(), await count(1), await count(7), await count(0), await count(-5), await count(1_000)],
    [3, 1, 7, 1, 1, 50],
  )
})

t.test('the next search finds changed tools', async (t) => {
  const { a, b } = setUp()
  const { group } = groupOf({ a, b }, { search: SEARCH })
  t.same(await found(group, 'issue'), ['a__get_issue'])
  a.answers['tools/list'] = { tools: [tool('close_issue')] }
  t.same(await found(group, 'issue'), ['a__close_issue'])
  a.answers['tools/list'] = { tools: [] }
  t.same(await found(group, 'issue'), [])
})

t.test('each caller finds only tools listed to it', async (t) => {
  const { policy } = scopes({
    required: { of: (name) => (name === 'get_issue' ? ['issues'] : []), all: () => ['issues'] },
    scopesOf: (principal) => new Set(principal === 'alice' ? ['issues'] : []),
    hides: false,
    listed: new ToolNames({ server: 'a', memory: unlimited() }),
  })
  const { a, b } = setUp()
  const scoped = Object.assign(new FakeServer(), { handle: policy(a.handle) })
  const { group } = groupOf({ a: scoped, b }, { search: SEARCH })
  t.same(await found(group, 'issue'), ['a__get_issue'])
  t.same(await found(group, 'issue', { principal: 'bob' }), [])
  const params = { name: 'call_tool', arguments: { name: 'a__get_issue' } }
  t.same(await ask(group, 'tools/call', params), content('a'))
  t.match(await ask(group, 'tools/call', params, { principal: 'bob' }), { isError: true })
  t.equal(a.got('tools/call').length, 1)
})

t.test('call_tool calls the tool with the same arguments, byte for byte', async (t) => {
  const { a, b } = setUp()
  const { group } = groupOf({ a, b }, { search: SEARCH })
  const args = '{"n":1.0, "big":12345678901234567890,"e":"\\u00e9"}'
  const call = callOf('tools/call', {}, { paramHeaders: new Map([['mcp-param-x', 'y']]), progress: true })
  const text = `{"name":"call_tool","arguments":{"name":"a__search_code","arguments":${args}},"task":{"ttl":1}}`
  await group.handle({ ...call, params: parseObject(text) })
  const [sent] = a.calls
  t.equal(write(sent?.params ?? parseObject('{}')), `{"name":"search_code","arguments":${args},"task":{"ttl":1}}`)
  t.match(sent, { progress: true, principal: 'alice' })
  t.equal(sent?.paramHeaders, undefined, 'headers of the client are about other arguments')
  t.match(call.noted, { name: 'a__search_code', through: 'call_tool', server: 'a', original: 'search_code' })
  await ask(group, 'tools/call', { name: 'call_tool', arguments: { name: 'a__get_issue' } })
  t.same(a.got('tools/call')[1], { name: 'get_issue' })
  t.same(await ask(group, 'tools/call', { name: 'b__search', arguments: {} }), content('b'), 'directly too')
})

/** The text of a failed tool. */
async function failed(group: Parameters<typeof ask>[0], params: string): Promise<string> {
  const reply = await group.handle({ ...callOf('tools/call'), params: parseObject(params) })
  if (reply.kind !== 'result' || value(reply.result, 'isError') !== true) return JSON.stringify(reply)
  return (value(reply.result, 'content') as { text: string }[])[0]?.text ?? ''
}

t.test('call_tool takes arguments in a string, and none as models write none', async (t) => {
  const { a, b } = setUp()
  const { group } = groupOf({ a, b }, { search: SEARCH })
  const cases: [given: string, sent: string | undefined][] = [
    ['{"path":"a"}', '{"path":"a"}'],
    [JSON.stringify('{"path":"a"}'), '{"path":"a"}'],
    [JSON.stringify(' {"path" : "\u00e9", "n":1.0}\n'), '{"path" : "\u00e9", "n":1.0}'],
    [JSON.stringify('{}'), '{}'],
    ['""', undefined],
    ['"  "', undefined],
    ['null', undefined],
    ['"null"', undefined],
  ]
  for (const [given, sent] of cases) {
    const inner = `{"name":"a__get_issue","arguments":${given}}`
    for (const outer of [inner, JSON.stringify(inner)]) {
      await group.handle({ ...callOf('tools/call'), params: parseObject(`{"name":"call_tool","arguments":${outer}}`) })
      const expected = sent === undefined ? '{"name":"get_issue"}' : `{"name":"get_issue","arguments":${sent}}`
      t.equal(write(a.calls.at(-1)?.params ?? parseObject('{}')), expected, outer)
    }
  }
  t.equal(a.got('tools/call').length, cases.length * 2)
})

t.test('a call of the two tools in another form is a failed tool that shows the form, and sends nothing', async (t) => {
  const { a, b } = setUp()
  const { group } = groupOf({ a, b }, { search: SEARCH })
  const CALLED = /Call call_tool with \{"name":"a__get_issue","arguments":\{…\}\}/
  const called: [given: string, says: RegExp][] = [
    [
      '',
      /Call call_tool with \{"name":"name of the tool","arguments":\{…\}\}, with the arguments that the inputSchema/,
    ],
    [',"arguments":{}', /must be a string and must not be repeated/],
    [',"arguments":[]', /must be (?:a string|an object) and must not be repeated/],
    [',"arguments":null', /must be a string and must not be repeated/],
    [',"arguments":"no object"', /must be an object and must not be repeated/],
    [',"arguments":{"name":7}', /The name for call_tool must be a string/],
    [',"arguments":{"name":""}', /The name for call_tool must be a string/],
    [',"arguments":{"name":"a__get_issue","name":"a__search_code"}', /must not be repeated/],
    [',"arguments":{"name":"a__get_issue","Name":"a__search_code"}', /must not be repeated/],
    [',"arguments":{"name":"a__get_issue","arguments":[]}', CALLED],
    [',"arguments":{"name":"a__get_issue","arguments":"[]"}', CALLED],
    [',"arguments":{"name":"a__get_issue","arguments":"{"}', CALLED],
    [',"arguments":{"name":"a__get_issue","arguments":"path"}', CALLED],
    [',"arguments":{"name":"a__get_issue","arguments":7}', CALLED],
    [',"arguments":{"name":"a__get_issue","arguments":{},"arguments":{}}', CALLED],
    [',"arguments":{"name":"a__get_issue","Arguments":{"path":"a"}}', CALLED],
    [',"arguments":{"name":"a__get_issue","path":"a"}', /call_tool has no argument "path". No tool was called. Call/],
    [',"arguments":{"name":"a__get_issue","args":{"path":"a"}}', CALLED],
    [',"arguments":{"name":"a__get_issue","arguments":{},"parameters":{"path":"a"}}', CALLED],
    [',"arguments":{"tool":"a__get_issue","arguments":{}}', /call_tool has no argument "tool"/],
    [',"arguments":{"name":"a__get_issue"},"arguments":{"name":"a__search_code"}', /must not be repeated/],
  ]
  for (const [given, says] of called) t.match(await failed(group, `{"name":"call_tool"${given}}`), says, given)
  const searched: [given: string, says: RegExp][] = [
    [
      '',
      /The query of search_tools must be a string and must not be repeated. No tool was called. Call search_tools with \{"query"/,
    ],
    [',"arguments":{"query":7}', /must be a string/],
    [',"arguments":{"q":"x"}', /search_tools has no argument "q"/],
    [',"arguments":{"query":"x","query":"y"}', /must not be repeated/],
    [',"arguments":{"query":"x","limit":"many"}', /The limit of search_tools has to be a number/],
    [',"arguments":{"query":"x","limit":[]}', /The limit/],
    [',"arguments":"x"', /must be an object/],
  ]
  for (const [given, says] of searched) t.match(await failed(group, `{"name":"search_tools"${given}}`), says, given)
  t.same([...a.got('tools/call'), ...b.got('tools/call')], [])
  const twice = { ...callOf('tools/call'), params: parseObject('{"name":"call_tool","name":"search_tools"}') }
  t.match(await group.handle(twice).catch(Fault.from), { fault: 'invalidParams' }, 'which tool is called, is not clear')
  t.same((await found(group, 'file', {}, '1' as never)).length, 1, 'a number in a string is one')
})

t.test('call_tool answers unknown names with the nearest ones, and calls none of them', async (t) => {
  const cases: [name: string, nearest: string[]][] = [
    ['search_code', ['a__search_code']],
    ['c__search_code', ['a__search_code']],
    ['A__search_code', ['a__search_code']],
    ['a.search_code', ['a__search_code']],
    ['a/searchCode', ['a__search_code']],
    ['a__serach_code', ['a__search_code']],
    ['a_search_code', ['a__search_code']],
    ['a__find_issue', ['a__get_issue']],
    ['read_fil', ['b__read_file']],
    ['call_tool', []],
    ['xyz', []],
  ]
  for (const bareNames of [false, true]) {
    const { a, b } = setUp()
    for (const server of [a, b])
      server.answers['tools/call'] = (call) => errorOf(-32602, `Unknown tool: ${String(paramsOf(call)['name'])}`)
    const { group } = groupOf({ a, b }, { search: SEARCH, bareNames })
    for (const [name, nearest] of cases) {
      const isListed = bareNames && name === 'search_code'
      const text = await failed(group, JSON.stringify({ name: 'call_tool', arguments: { name } }))
      if (isListed) t.match(text, /Unknown tool: search_code/, 'the error of the server itself')
      else t.equal(text.startsWith(`Unknown tool: ${name}.`), true, text)
      const shown = nearest.map((one) => (bareNames ? one.slice(3) : one))
      if (isListed) continue
      if (shown.length === 0) t.notMatch(text, /nearest/)
      else t.match(text, `The nearest names: ${shown[0]}`)
      t.match(text, /Find others with search_tools/)
    }
    const invalid = { name: 'call_tool', arguments: { name: bareNames ? 'search' : 'b__search', arguments: {} } }
    t.match(await group.handle(callOf('tools/call', invalid)), { kind: 'error', error: { code: -32602 } }, 'listed')
  }
})

t.test('servers that say in a result that they have no such tool get the nearest names added, too', async (t) => {
  const said = (name: string) => [
    `MCP error -32602: Tool ${name} not found`,
    `Unknown tool: ${name}`,
    `Error: no such tool "${name}"`,
    `The tool ${name} does not exist.`,
  ]
  const { a, b } = setUp()
  const { group } = groupOf({ a, b }, { search: SEARCH })
  const through = (name: string) => callOf('tools/call', { name: 'call_tool', arguments: { name } })
  for (const [i, text] of said('serach_code').entries()) {
    a.answers['tools/call'] = { ...content(text), isError: true }
    t.match(
      await failed(group, JSON.stringify(paramsOf(through('a__serach_code')))),
      /^Unknown tool: a__serach_code. The nearest names: a__search_code/,
      text,
    )
    const own = { ...content(said('search_code')[i] as string), isError: true }
    a.answers['tools/call'] = own
    const reply = await group.handle(through('a__search_code'))
    t.same(reply.kind === 'result' && JSON.parse(write(reply.result)), own, 'what a tool that is there says, stays')
  }
  const before = a.got('tools/list').length
  a.answers['tools/call'] = { ...content('The file was not found'), isError: true }
  await group.handle(through('a__search_code'))
  t.equal(a.got('tools/list').length, before, 'other failures read no lists')
})

t.test('a search through call_tool is a search, unless a server has a tool with that name', async (t) => {
  const { a, b } = setUp()
  const { group } = groupOf({ a, b }, { search: SEARCH })
  const inner = { name: 'search_tools', arguments: { query: 'read_file', limit: '' } }
  const result = await ask(group, 'tools/call', { name: 'call_tool', arguments: inner })
  t.equal(namesIn(result['structuredContent'] as Json)[0], 'b__read_file')
  a.answers['tools/list'] = { tools: [tool('search_tools')] }
  const bare = groupOf({ a, b }, { search: SEARCH, bareNames: true }).group
  t.match(await ask(bare, 'tools/call', { name: 'call_tool', arguments: inner }), content('a'))
})

t.test('the nearest names are of tools that the caller may see', async (t) => {
  const { a, b } = setUp()
  const listed = new ToolNames({ server: 'a', memory: unlimited() })
  const { policy } = scopes({
    required: { of: (name) => (name === 'get_issue' ? ['x'] : []), all: () => ['x'] },
    scopesOf: () => new Set(),
    hides: true,
    listed,
  })
  const hidden = Object.assign(new FakeServer(), { handle: policy(listed.policy(a.handle)) })
  const { group } = groupOf({ a: hidden, b }, { search: SEARCH })
  for (const name of ['a__get_issue', 'get_issue', 'c__get_issue']) {
    const text = await failed(group, JSON.stringify({ name: 'call_tool', arguments: { name } }))
    t.match(text, `Unknown tool: ${name}`)
    t.notMatch(text.replace(name, ''), /get_issue/)
  }
})

t.test('questions, tasks, messages and errors through call_tool equal those of a direct call', async (t) => {
  const { b } = setUp()
  const a = new FakeServer({
    'tools/call': async (call) => {
      await call.notify({
        kind: 'notification',
        method: 'notifications/message',
        params: parseObject('{"level":"info","data":1}'),
      })
      const { name } = paramsOf(call)
      if (name === 'asks')
        return call.answers ? resultOf(content('answered')) : inputOf({ inputRequests: {}, requestState: 's' })
      if (name === 'task') return resultOf({ taskId: 't1' }, { type: 'task' })
      return errorOf(-32000, 'Busy')
    },
  })
  const through = (name: string) => ({ name: 'call_tool', arguments: { name, arguments: { q: 1 } } })
  const { group } = groupOf({ a, b }, { search: SEARCH })
  const call = callOf('tools/call', through('a__asks'))
  const asked = await group.handle(call)
  t.match(call.told, [{ method: 'notifications/message' }])
  t.match(JSON.parse(write(call.told[0]?.params ?? parseObject('{}'))), { logger: 'a' })
  if (asked.kind !== 'input') return t.fail('no question')
  const state = raw(asked.result, 'requestState')
  const answers = { responses: '{}', state }
  t.same(await ask(group, 'tools/call', through('a__asks'), { answers }), content('answered'))
  t.equal(a.calls.at(-1)?.answers?.state, '"s"')
  for (const other of [
    through('b__search'),
    through('a__task'),
    { name: 'call_tool', arguments: { name: 'a__asks', arguments: { q: 2 } } },
  ])
    t.match(await faultOf(group, 'tools/call', other, { answers }), { fault: 'invalidState' })
  t.match(await group.handle(callOf('tools/call', through('a__task'))), { type: 'task' })
  t.same(await ask(group, 'tools/call', through('a__task')), { taskId: 'a__t1' })
  t.match(await group.handle(callOf('tools/call', through('a__x'))), { kind: 'error', error: { message: 'Busy' } })
})

t.test(
  'without prefixes, the two tools hide tools of their names, which can be called through call_tool',
  async (t) => {
    const a = new FakeServer({
      'tools/list': { tools: [tool('search_tools', 'mine'), tool('same', 'of a')] },
      'tools/call': (call) => resultOf(content(`a ${String(paramsOf(call)['name'])}`)),
    })
    const b = new FakeServer({ 'tools/list': { tools: [tool('same', 'of b'), tool('other')] } })
    const { group } = groupOf({ a, b }, { search: { always: ['*'], limit: 5 }, bareNames: true, bareUris: true })
    t.same(namesIn(await ask(group, 'tools/list')), [...OWN, 'same', 'other'])
    t.same(await found(group, 'mine'), ['search_tools'])
    t.same(await found(group, 'of'), ['same'], 'the first server has the name')
    const params = { name: 'call_tool', arguments: { name: 'search_tools' } }
    t.same(await ask(group, 'tools/call', params), content('a search_tools'))
  },
)

t.test('names servers without an answer, in the list and in results of a search', async (t) => {
  const { a, b } = setUp()
  b.down = new Fault('upstreamUnavailable', 'down')
  const { group } = groupOf({ a, b }, { search: SEARCH })
  const reply = await group.handle(callOf('tools/list'))
  t.match(reply, { cache: { ttlMs: 0 } })
  t.match(JSON.parse(write(reply.kind === 'result' ? reply.result : parseObject('{}'))), {
    _meta: { 'io.github.mcp-bridge/unavailable': [{ server: 'b' }] },
  })
  const result = await ask(group, 'tools/call', search({ query: 'issue' }))
  t.match(result['content'], [{}, { text: 'Not searched, because they do not answer: b' }])
  const { group: other } = groupOf({ b, c: b }, { search: SEARCH })
  t.match(await faultOf(other, 'tools/list'), { fault: 'upstreamUnavailable' })
})

t.test('lists the sign-in tool of a server with a pending sign-in', async (t) => {
  const { b } = setUp()
  const a = new FakeServer({ 'tools/list': { tools: named(SIGN_IN_TOOL) } })
  const { group } = groupOf({ a, b }, { search: SEARCH })
  t.same(namesIn(await ask(group, 'tools/list')), [...OWN, `a__${SIGN_IN_TOOL}`])
})

t.test('declares tools, and explains the search in the instructions', async (t) => {
  const { a, b } = setUp()
  a.answers['server/discover'] = { capabilities: {}, instructions: 'Be brief.' }
  b.answers['server/discover'] = { capabilities: {} }
  const { group } = groupOf({ a, b }, { search: SEARCH })
  const discovered = await ask(group, 'server/discover')
  t.match(discovered, {
    capabilities: { tools: { listChanged: true } },
    instructions: /^Most tools are not listed\. Find them with search_tools.*# a\n.*Be brief\.$/s,
  })
  const { capabilities, instructions } = await ask(groupOf({ a, b }).group, 'server/discover')
  t.same(capabilities, {})
  t.notMatch(instructions, 'search_tools')
})

t.test('indexes the tools for each search if there is no memory for an index', async (t) => {
  const { a, b } = setUp()
  const { Memory } = await import('../../src/base/limits/memory.js')
  const { group } = groupOf({ a, b }, { search: SEARCH }, { memory: new Memory({ max: 0 }) })
  t.same(await found(group, 'issue'), ['a__get_issue'])
  t.same(await found(group, 'issue'), ['a__get_issue'])
})

t.test('a server with many tools hides neither its own nor those of others', async (t) => {
  const { b } = setUp()
  const letters = (at: number) => [...String(at)].map((digit) => 'bcdfghjklm'[Number(digit)]).join('')
  const many = Array.from({ length: 6_000 }, (_, at) => tool(`do_${letters(at)}`, `Does ${letters(at)} for everybody`))
  const { group, log } = groupOf({ a: new FakeServer({ 'tools/list': { tools: many } }), b }, { search: SEARCH })
  for (const at of [0, 3_000, 5_999]) t.equal((await found(group, letters(at)))[0], `a__do_${letters(at)}`)
  t.equal((await found(group, 'read file'))[0], 'b__read_file')
  const { content } = await ask(group, 'tools/call', search({ query: 'read file' }))
  t.equal((content as unknown[]).length, 1, 'everything was searched')
  t.same(log, [])
})

t.test('any search finds only tools that would be listed, and every tool by its name', async () => {
  const name = fc.stringMatching(/^[a-z]{1,6}(?:_[a-z]{1,6}){0,2}$/)
  const list = fc.uniqueArray(name, { maxLength: 6 })
  await fc.assert(
    fc.asyncProperty(list, list, fc.string({ maxLength: 20 }), async (one, two, query) => {
      const servers = {
        a: new FakeServer({ 'tools/list': { tools: named(...one) } }),
        b: new FakeServer({ 'tools/list': { tools: named(...two) } }),
      }
      const { group } = groupOf(servers, { search: SEARCH })
      const all = namesIn(await ask(groupOf(servers).group, 'tools/list'))
      const some = await found(group, query, {}, 50)
      if (some.some((each) => !all.includes(each))) return false
      for (const each of all) if ((await found(group, String(each), {}, 1))[0] !== each) return false
      return true
    }),
    { numRuns: 50 },
  )
})
