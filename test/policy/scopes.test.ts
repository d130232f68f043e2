/** Tools that require scopes, for callers with and without them. */
import t from 'tap'
import { unlimited } from '../../src/base/limits/memory.js'
import { value } from '../../src/base/rpc/splice.js'
import type { Policy } from '../../src/mcp/protocol/call.js'
import { compose } from '../../src/middle/policy/compose.js'
import { type ScopesOptions, scopes } from '../../src/middle/policy/scopes.js'
import { ToolNames } from '../../src/middle/policy/tool-names.js'
import { callOf, outcomeOf, Played, result, toolCall } from '../support/calls.js'
import { SPELLINGS } from '../support/name-spellings.js'

const REQUIRED: Record<string, string[]> = { write: ['files:write'], admin: ['files:write', 'admin'], open: [] }
const SCOPES: Record<string, string[]> = { alice: ['files:write', 'admin'], bob: ['files:write'], carol: [] }
const TOOLS = ['read', 'open', 'write', 'admin'].map((name) => ({ name }))

/** All scopes of the tools above. */
const ALL = ['files:write', 'admin']

function policyOf(options: Partial<ScopesOptions> = {}): Policy {
  const listed = new ToolNames({ server: 'files', memory: unlimited() })
  const { policy } = scopes({
    required: { of: (tool) => REQUIRED[tool] ?? [], all: () => ALL },
    scopesOf: (principal) => (SCOPES[principal] ? new Set(SCOPES[principal]) : undefined),
    hides: false,
    listed,
    ...options,
  })
  return (next) => compose(next, policy, listed.policy)
}

function setUp(options?: Partial<ScopesOptions>) {
  const server = new Played(({ method, params }) => {
    const isFirst = value(params, 'cursor') === undefined
    return result(method === 'tools/list' ? { tools: TOOLS, ...(isFirst && { nextCursor: '2' }) } : { content: [] })
  })
  const policy = policyOf(options)
  return { server, ask: (call: Parameters<typeof outcomeOf>[2]) => outcomeOf(policy, server.handle, call) }
}

const cases: [principal: string, may: string[]][] = [
  ['alice', ['read', 'open', 'write', 'admin']],
  ['bob', ['read', 'open', 'write']],
  ['carol', ['read', 'open']],
  ['nobody knows who', ['read', 'open']],
]
for (const [principal, may] of cases)
  t.test(`${principal} sees ${may.join(', ')}, and can call nothing else`, async (t) => {
    const { server, ask } = setUp()
    const listed = await ask(callOf({ principal }))
    t.match(listed, { kind: 'result', result: { nextCursor: '2' } })
    t.same(
      (listed as { result: { tools: object[] } }).result.tools,
      may.map((name) => ({ name })),
    )
    for (const { name } of TOOLS) {
      const outcome = await ask(toolCall(name, { principal }))
      t.equal((outcome as { result: { isError?: boolean } }).result.isError ?? false, !may.includes(name), name)
    }
    t.same(server.called, may)
  })

t.test('reports missing scopes to the model and to programs', async (t) => {
  const { ask } = setUp()
  t.match(await ask(toolCall('admin', { principal: 'carol' })), {
    result: {
      isError: true,
      content: [{ text: /"admin" cannot be called without the scope files:write admin/ }],
      _meta: { 'io.github.mcp-bridge/insufficient_scope': { scope: 'files:write admin' } },
    },
  })
  t.match(await ask(toolCall('admin', { principal: 'carol', called: 'files__admin' })), {
    result: { content: [{ text: /^"files__admin" cannot be called/ }] },
  })
})

t.test('returns an empty page with a cursor if all of its tools are hidden', async (t) => {
  const { server, ask } = setUp()
  server.answer = () => result({ tools: [{ name: 'write' }, { name: 'admin' }], nextCursor: '2' })
  t.same(await ask(callOf({ principal: 'carol' })), { kind: 'result', result: { tools: [], nextCursor: '2' } })
})

t.test('keeps visible tools byte for byte, and a whole list if all are visible', async (t) => {
  const { server, ask } = setUp()
  const page = '{ "tools" : [ {"name":"read","n":1.0} , {"name":"write"} ] , "x" : 9007199254740993 }'
  server.answer = () => result(page)
  const policy = policyOf({ scopesOf: () => new Set(['files:write']) })
  const reply = await policy(server.handle)(callOf({}))
  t.equal(reply.kind === 'result' && reply.result.source.text, page)
  t.match(await ask(callOf({ principal: 'carol' })), { result: { tools: [{ name: 'read' }] } })
})

t.test('refuses an ambiguous tool name, and hides a listed tool without a name', async (t) => {
  const { server, ask } = setUp()
  for (const params of ['{"name":"read","name":"admin"}', '{"name":"read","Name":"admin"}', '{"name":1}', '{}'])
    t.match(await ask(callOf({ method: 'tools/call', params })), { result: { isError: true } })
  t.same(server.seen, [])
  server.answer = () => result({ tools: [{}, { name: 7 }, 'x', { name: 'read' }] })
  t.match(await ask(callOf({})), { result: { tools: ['x', { name: 'read' }] } })
})

t.test('other methods need no scope', async (t) => {
  const { server, ask } = setUp()
  for (const method of ['server/discover', 'prompts/get', 'resources/read']) await ask(callOf({ method }))
  t.same(server.methods, ['server/discover', 'prompts/get', 'resources/read'])
})

t.test('a name that the server has not listed is unknown to callers without all scopes', async (t) => {
  const { server, ask } = setUp()
  for (const [how, name] of SPELLINGS('admin')) {
    await t.rejects(ask(toolCall(name, { principal: 'bob' })), { message: /^Unknown tool: / }, how)
    await t.rejects(ask(toolCall(name, { principal: 'nobody' })), { message: /^Unknown tool: / }, how)
  }
  t.same(server.called, [], 'the server got none of them')
  t.match(await ask(toolCall('read', { principal: 'bob' })), { kind: 'result' })
})

t.test('asks for the list again if a name is unknown, because it may be new', async (t) => {
  const { server, ask } = setUp()
  await ask(callOf({ principal: 'bob' }))
  server.answer = ({ method }) => result(method === 'tools/list' ? { tools: [{ name: 'newest' }] } : { content: [] })
  t.match(await ask(toolCall('newest', { principal: 'bob' })), { kind: 'result' })
  t.same(server.called, ['newest'])
})

t.test('what the server has listed to one caller is unknown to another one', async (t) => {
  const { server, ask } = setUp()
  server.answer = ({ method, principal }) =>
    result(method === 'tools/list' ? { tools: principal === 'bob' ? [{ name: 'secret' }] : TOOLS } : { content: [] })
  t.match(await ask(toolCall('secret', { principal: 'bob' })), { kind: 'result' })
  await t.rejects(ask(toolCall('secret', { principal: 'carol' })), { message: 'Unknown tool: secret' })
  t.same(server.called, ['secret'])
})

t.test('a caller with all scopes costs the server no list', async (t) => {
  const { server, ask } = setUp()
  await ask(toolCall('not listed', { principal: 'alice' }))
  t.same(server.methods, ['tools/call'])
})

t.test('a method that the bridge does not know requires all scopes', async (t) => {
  const { server, ask } = setUp()
  for (const method of ['Tools/Call', 'tools/call ', 'vendor/run']) {
    const call = { method, params: { name: 'admin' } }
    t.match(await ask(callOf({ ...call, principal: 'bob' })), { kind: 'error', data: { scope: 'admin' } }, method)
    t.match(await ask(callOf({ ...call, principal: 'alice' })), { kind: 'result' }, method)
  }
  t.equal(server.seen.length, 3)
})

const JWT = { grant: { scopes: new Set<string>(), extensible: true } }

t.test('what announces such methods is offered to who may use them, or can get the scopes', async (t) => {
  const SKILLS = 'io.modelcontextprotocol/skills'
  const all = { tools: {}, vendor: {}, experimental: { x: {} }, extensions: { 'com.acme/x': {}, [SKILLS]: {} } }
  const known = { tools: {}, extensions: { [SKILLS]: {} } }
  const rows: [name: string, hides: boolean, call: Parameters<typeof callOf>[0], offered: object][] = [
    ['has all', false, { principal: 'alice' }, all],
    ['lacks one', false, { principal: 'bob' }, known],
    ['can get them', false, JWT, all],
    ['can get them, but they are hidden', true, JWT, known],
  ]
  for (const [name, hides, call, offered] of rows) {
    const server = new Played(() => result({ capabilities: all }))
    const asked = callOf({ method: 'server/discover', ...call })
    const answer = await outcomeOf(policyOf({ hides }), server.handle, asked)
    t.same((answer as { result: { capabilities: object } }).result.capabilities, offered, name)
  }
})

t.test('a tool that a caller could get scopes for is listed', async (t) => {
  const { ask } = setUp()
  t.match(await ask(callOf(JWT)), { result: { tools: TOOLS } })
  await t.rejects(ask(toolCall('admin', JWT)), /without the scope files:write admin/)
})

t.test('if such tools are hidden, they are unknown', async (t) => {
  const { ask, server } = setUp({ hides: true })
  const listed = (await ask(callOf(JWT))) as { result: { tools: object[] } }
  t.same(listed.result.tools, [{ name: 'read' }, { name: 'open' }])
  await t.rejects(ask(toolCall('admin', JWT)), { message: 'Unknown tool: admin' })
  await t.rejects(ask(toolCall('admin', { principal: 'carol' })), { message: 'Unknown tool: admin' })
  t.same(server.called, [])
})
