/** Answers of the bridge while its circuit breaker for a server is open. */
import t from 'tap'
import { Fault } from '../../src/base/fault/fault.js'
import { unlimited } from '../../src/base/limits/memory.js'
import type { Call } from '../../src/mcp/protocol/call.js'
import { unavailable } from '../../src/middle/policy/unavailable.js'
import { callOf, outcomeOf, Played, repliesOf, result, toolCall } from '../support/calls.js'

const NOW = 1_000_000
const MARK = 'io.github.mcp-bridge/unavailable'
const TOOLS = [
  { name: 'a', title: 'Alpha', _meta: { own: 1 } },
  { name: 'b', annotations: { title: 'Beta' } },
  { name: 'c', description: 'Gamma' },
]

function setUp() {
  const state = { open: false, until: NOW + 90_000, reason: 'connection refused three times', now: NOW }
  const server = new Played(({ method }) => ({
    ...result(method === 'tools/list' ? { tools: TOOLS } : { method }),
    ...{ server: '{"name":"s","version":"1"}', cache: { ttlMs: 60_000, scope: 'public' } },
  }))
  const { policy } = unavailable({ name: 'weather', state: () => state, memory: unlimited(), now: () => state.now })
  return { state, server, policy, ask: (call: Call) => outcomeOf(policy, server.handle, call) }
}

async function faultOf(work: Promise<unknown>): Promise<Fault> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  if (error instanceof Fault) return error
  throw new TypeError(`no Fault but ${String(error)}`)
}

t.test('does not change answers of a reachable server', async (t) => {
  const { server, ask } = setUp()
  t.same(await ask(callOf({})), { kind: 'result', result: { tools: TOOLS } })
  t.same(await ask(callOf({ method: 'prompts/list' })), { kind: 'result', result: { method: 'prompts/list' } })
  t.equal(server.seen.length, 2)
})

t.test('lists the tools of an unreachable server marked as unavailable, uncacheable', async (t) => {
  const { server, state, policy, ask } = setUp()
  await ask(callOf({}))
  state.open = true
  const [reply] = await repliesOf(policy, server.handle, callOf({}))
  t.match(reply, { kind: 'result', server: '{"name":"s","version":"1"}', cache: { ttlMs: 0, scope: 'private' } })
  const mark = { [MARK]: { reason: 'connection refused three times', retryAfterMs: 90_000 } }
  t.same(await ask(callOf({})), {
    kind: 'result',
    result: {
      tools: [
        { name: 'a', title: 'Alpha (unavailable)', _meta: { own: 1, ...mark } },
        { name: 'b', annotations: { title: 'Beta' }, title: 'Beta (unavailable)', _meta: mark },
        { name: 'c', description: 'Gamma', title: 'c (unavailable)', _meta: mark },
      ],
    },
  })
  t.equal(server.seen.length, 1)
  state.open = false
  t.same(await ask(callOf({})), { kind: 'result', result: { tools: TOOLS } })
})

t.test('answers discovery and other lists of an unreachable server from memory', async (t) => {
  const { server, state, ask } = setUp()
  const kept = ['server/discover', 'prompts/list', 'resources/list', 'resources/templates/list']
  for (const method of kept) await ask(callOf({ method }))
  state.open = true
  for (const method of kept) t.same(await ask(callOf({ method })), { kind: 'result', result: { method } })
  t.equal(server.seen.length, kept.length)
})

t.test('fails all other calls at once, with the reason and the time of a retry', async (t) => {
  const { server, state, ask } = setUp()
  await ask(toolCall('a'))
  state.open = true
  state.now += 30_000
  for (const method of ['tools/call', 'tools/list', 'resources/read', 'subscriptions/listen', 'vendor/x']) {
    const fault = await faultOf(ask(callOf({ method })))
    t.match(fault, { fault: 'upstreamUnavailable', message: 'weather is unavailable: connection refused three times' })
    t.match(fault.toRpcError(), {
      data: '{"reason":"upstream_unavailable","outcome":"not_executed","retryAfterMs":60000}',
    })
  }
  state.now = NOW + 200_000
  t.equal((await faultOf(ask(toolCall('a')))).retryAfter, 0)
  t.equal(server.seen.length, 1)
})

t.test('returns a remembered list only to its principal', async (t) => {
  const { state, ask } = setUp()
  await ask(callOf({ caller: { capabilities: '{"a":{},"b":{}}' } }))
  state.open = true
  const others: [string, Parameters<typeof callOf>[0]][] = [
    ['another principal', { principal: 'bob' }],
    ['another credential', { credential: { authorization: 'Bearer x' } }],
    ['other capabilities', { caller: { capabilities: '{"a":{}}' } }],
    ['another page', { params: { cursor: '2' } }],
    ['one with headers', { paramHeaders: new Map() }],
  ]
  const same = { caller: { capabilities: '{ "b":{}, "a":{} }' } }
  t.match(await ask(callOf(same)), { kind: 'result' })
  for (const [name, other] of others)
    t.equal((await faultOf(ask(callOf({ ...same, ...other })))).fault, 'upstreamUnavailable', name)
})

t.test('remembers the newest list, unless it is too large', async (t) => {
  const { server, state, ask } = setUp()
  await ask(callOf({}))
  server.answer = () => result({ tools: [] })
  await ask(callOf({}))
  state.open = true
  t.same(await ask(callOf({})), { kind: 'result', result: { tools: [] } })
  state.open = false
  server.answer = () => result({ tools: [{ name: 'a', description: 'x'.repeat(1_100_000) }] })
  await ask(callOf({}))
  state.open = true
  t.equal((await faultOf(ask(callOf({})))).fault, 'upstreamUnavailable')
})

t.test('bounds the remembered lists', async (t) => {
  const { state, ask } = setUp()
  for (let nth = 0; nth < 300; nth++) await ask(callOf({ principal: `p${nth}` }))
  state.open = true
  t.match(await ask(callOf({ principal: 'p299' })), { kind: 'result' })
  t.equal((await faultOf(ask(callOf({ principal: 'p0' })))).fault, 'upstreamUnavailable')
})

t.test('does not remember errors and questions', async (t) => {
  const { server, state, ask } = setUp()
  server.answer = () => ({ kind: 'error', error: { code: -32603, message: 'x', data: undefined } })
  await ask(callOf({}))
  state.open = true
  t.equal((await faultOf(ask(callOf({})))).fault, 'upstreamUnavailable')
})
