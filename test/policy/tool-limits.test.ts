/** Limits on how often tools are called. */
import t from 'tap'
import { Fault } from '../../src/base/fault/fault.js'
import { unlimited } from '../../src/base/limits/memory.js'
import { CountedWindows } from '../../src/clients/plugins/counted-windows.js'
import { compose } from '../../src/middle/policy/compose.js'
import { scopes } from '../../src/middle/policy/scopes.js'
import { type ToolLimitsOptions, toolLimits } from '../../src/middle/policy/tool-limits.js'
import { ToolNames } from '../../src/middle/policy/tool-names.js'
import { callOf, Played, result, toolCall } from '../support/calls.js'
import { SPELLINGS } from '../support/name-spellings.js'

/** A server that lists all tools. */
const EVERY = { find: () => Promise.resolve({ isReadOnly: false }) }

function setUp(limits: ReturnType<ToolLimitsOptions['limits']>, listed: ToolLimitsOptions['listed'] = EVERY) {
  let now = 0
  const windows = new CountedWindows(undefined, () => now)
  const server = new Played(() => result({ content: [] }))
  const policy = toolLimits({
    server: 'github',
    limits: () => limits,
    listed,
    count: (name, ms) => windows.count(name, ms),
  })
  const handle = policy(server.handle)
  const ask = (name: string, changes: object = {}) =>
    handle(toolCall(name, changes)).then(
      () => 'ok',
      (error: unknown) => (error instanceof Fault ? [error.fault, error.status, error.retryAfter] : error),
    )
  return { server, policy, ask, pass: (ms: number) => (now += ms) }
}

const CREATE = { tools: 'github__create_*', per: 'principal', max: 2, every: 60_000 } as const

t.test('a principal over the limit of a tool gets 429 until its window ends, and others are served', async (t) => {
  const { ask, pass, server } = setUp([CREATE])
  for (let i = 0; i < 2; i++) t.equal(await ask('create_issue'), 'ok')
  pass(20_000)
  t.same(await ask('create_pull'), ['rateLimited', 429, 40], 'tools of one glob are counted together')
  t.equal(await ask('create_issue', { principal: 'bob' }), 'ok')
  t.equal(await ask('list_issues'), 'ok')
  t.equal(server.seen.length, 4, 'the server got nothing of it')
  pass(40_000)
  t.equal(await ask('create_issue'), 'ok')
})

t.test('a limit for all callers counts the calls of all', async (t) => {
  const { ask } = setUp([{ ...CREATE, per: 'all' }])
  t.equal(await ask('create_issue'), 'ok')
  t.equal(await ask('create_issue', { principal: 'bob' }), 'ok')
  t.same(await ask('create_issue', { principal: 'carol' }), ['rateLimited', 429, 60])
})

t.test('limits apply to one server, by its own name', async (t) => {
  const { ask } = setUp([
    { ...CREATE, tools: 'gitlab__*', max: 1 },
    { ...CREATE, tools: '*', max: 3 },
  ])
  for (let i = 0; i < 3; i++) t.equal(await ask('create_issue'), 'ok')
  t.same(await ask('anything'), ['rateLimited', 429, 60])
})

t.test('a legacy client gets a result that its model reads', async (t) => {
  const { server, policy } = setUp([{ ...CREATE, max: 1 }])
  const handle = policy(server.handle)
  await handle(toolCall('create_issue', { inBand: true }))
  const last = await handle(toolCall('create_issue', { inBand: true }))
  t.match(JSON.stringify(last), /isError/)
  t.match(JSON.stringify(last), /try again in 60 s/)
  t.equal(server.seen.length, 1)
})

t.test('counts neither refused calls, nor answers of a client, nor other methods', async (t) => {
  const { server, policy } = setUp([{ ...CREATE, max: 1 }])
  const scoped = scopes({
    required: { of: () => ['write'], all: () => ['write'] },
    scopesOf: (who) => new Set(who === 'alice' ? ['write'] : []),
    hides: false,
    listed: EVERY,
  })
  const handle = compose(server.handle, scoped.policy, policy)
  for (let i = 0; i < 3; i++) await handle(toolCall('create_issue', { principal: 'bob' }))
  for (let i = 0; i < 3; i++) await handle(callOf({ method: 'tools/list' }))
  for (let i = 0; i < 3; i++) await handle(toolCall('create_issue', { answers: { responses: '{}', state: undefined } }))
  await handle(toolCall('create_issue'))
  await t.rejects(handle(toolCall('create_issue')), /Too many calls/)
})

t.test('a name that is too long for globs counts for all limits, and an ambiguous one is refused', async (t) => {
  const { ask } = setUp([{ ...CREATE, max: 1 }])
  t.equal(await ask('x'.repeat(300)), 'ok')
  t.same(await ask('x'.repeat(300)), ['rateLimited', 429, 60])
  const { server, policy } = setUp([CREATE])
  const call = callOf({ method: 'tools/call', params: '{"name":"create_issue","Name":"x"}' })
  await policy(server.handle)(call).catch(() => {})
  t.equal(server.seen.length, 0)
})

t.test('another spelling of a name passes no limit, because the server has not listed it', async (t) => {
  const listed = () => new ToolNames({ server: 'github', memory: unlimited() })
  const { ask, server } = setUp([{ ...CREATE, max: 1 }], listed())
  server.answer = ({ method }) =>
    result(method === 'tools/list' ? { tools: [{ name: 'create_issue' }, { name: 'get' }] } : { content: [] })
  t.equal(await ask('create_issue'), 'ok')
  for (const [how, name] of SPELLINGS('create_issue')) t.not(await ask(name), 'ok', how)
  t.equal(await ask('get'), 'ok')
  t.same(server.called, ['create_issue', 'get'])
  const all = setUp([{ ...CREATE, tools: '*' }], listed())
  t.equal(await all.ask('anything'), 'ok', 'a limit for all tools needs no list')
  t.same(all.server.methods, ['tools/call'])
})
