/** How often the tools of a server are looked through for one with the name of the bridge's own, and when again. */
import t, { type Test } from 'tap'
import { newKey } from '../../../src/base/crypto/seal.js'
import { unlimited } from '../../../src/base/limits/memory.js'
import { has } from '../../../src/base/rpc/splice.js'
import type { Policy } from '../../../src/mcp/protocol/call.js'
import { KeptResults } from '../../../src/middle/policy/cut/kept-results.js'
import { reading } from '../../../src/middle/policy/cut/reading.js'
import { callOf, outcomeOf, Played, payload, result, toolCall } from '../../support/calls.js'
import { leaper } from '../../support/clock.js'

/** A server with two pages of tools, and clients that read the first one. `tools`: those of the second page. */
function start(t: Test) {
  const leap = leaper(t)
  const tools: { name: string }[] = [{ name: 'last' }]
  const changed = { kind: 'notification', method: 'notifications/tools/list_changed', params: payload({}) } as const
  const server = new Played(({ method, params }) => {
    if (method === 'subscriptions/listen') return [changed, result({})]
    if (method === 'tools/call') return result({ content: [] })
    return result(has(params, 'cursor') ? { tools } : { tools: [], nextCursor: 'rest' })
  })
  const kept = new KeptResults([newKey()], { keep: async () => 0, part: async () => undefined })
  const { lists, calls } = reading({ server: 'long', isOn: () => true, kept, memory: unlimited() })
  const policy: Policy = (next) => lists(calls(next))
  const send = async (method: string, principal = 'alice') => {
    const before = server.seen.length
    const outcome = await outcomeOf(policy, server.handle, callOf({ method, principal }))
    const names = outcome.kind === 'result' ? (outcome.result['tools'] as { name: string }[] | undefined) : undefined
    return { own: names?.map(({ name }) => name)[0], asked: server.seen.length - before }
  }
  const call = () => outcomeOf(policy, server.handle, toolCall('read_more'))
  return { tools, send, call, server, leap }
}

t.test('a list of several pages is looked through once for each caller, not for each first page', async (t) => {
  const { send, call, server, leap } = start(t)
  t.same(await send('tools/list'), { own: 'read_more', asked: 3 }, 'both pages, and the first one for the client')
  for (let n = 0; n < 3; n++) {
    leap(10_000)
    t.same(await send('tools/list'), { own: 'read_more', asked: 1 })
    await call()
  }
  t.same(server.called, [])
  t.equal((await send('tools/list', 'bob')).asked, 3, 'others may be listed other tools')
})

t.test('it is looked through again when the tools have changed, and from time to time', async (t) => {
  const { tools, send, leap } = start(t)
  await send('tools/list')
  await send('subscriptions/listen')
  t.same(await send('tools/list'), { own: 'read_more', asked: 3 })
  t.equal((await send('tools/list')).asked, 1)
  leap(300_000)
  tools.push({ name: 'read_more' })
  t.same(await send('tools/list'), { own: 'mcp_bridge_read_more', asked: 3 })
})
