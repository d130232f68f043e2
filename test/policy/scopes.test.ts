/** Tools that require scopes, for callers with and without them. */
import t from 'tap'
import { scopes } from '../../src/policy/scopes.js'
import { callOf, outcomeOf, Played, result, toolCall } from '../support/calls.js'

const REQUIRED: Record<string, string[]> = { write: ['files:write'], admin: ['files:write', 'admin'], open: [] }
const SCOPES: Record<string, string[]> = { alice: ['files:write', 'admin'], bob: ['files:write'], carol: [] }
const TOOLS = ['read', 'open', 'write', 'admin'].map((name) => ({ name }))

function setUp() {
  const server = new Played(({ method }) =>
    result(method === 'tools/list' ? { tools: TOOLS, nextCursor: '2' } : { content: [] }),
  )
  const policy = scopes({
    required: (tool) => REQUIRED[tool] ?? [],
    scopesOf: (principal) => (SCOPES[principal] ? new Set(SCOPES[principal]) : undefined),
  })
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
  const policy = scopes({ required: (tool) => REQUIRED[tool] ?? [], scopesOf: () => new Set(['files:write']) })
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
