/** A client's subscription stays open while what reports to it is replaced, and changes wait for a slow client. */
import t from 'tap'
import { write } from '../../src/base/rpc/splice.js'
import { HangUp } from '../../src/base/time/hang-up.js'
import { keepOpen } from '../../src/mcp/listening/keep-open.js'
import { PendingChanges } from '../../src/mcp/listening/pending-changes.js'
import type { Call, ServerNotification } from '../../src/mcp/protocol/call.js'
import {
  acknowledgement,
  CHANGING_LISTS,
  everythingIn,
  filterIn,
  NOTHING,
  type SubscriptionFilter,
} from '../../src/mcp/protocol/subscriptions.js'
import { callOf, result } from '../support/calls.js'

const [TOOLS, PROMPTS] = CHANGING_LISTS
const BOTH: SubscriptionFilter = { lists: [TOOLS, PROMPTS], uris: ['a:b'], tasks: [] }
const DELAYS = { first: 1, most: 1 }

/** A subscription of a client, and the words that it has received. */
function client() {
  const told: string[] = []
  const say = ({ method, params }: ServerNotification) => {
    told.push(`${method.replace('notifications/', '')} ${write(params)}`)
    return undefined
  }
  return { told, call: callOf({ method: 'subscriptions/listen', notify: say }) }
}

/** Plays a server: each item is what it accepts before it breaks; undefined if it cannot be reached. */
function serverOf(...accepted: (SubscriptionFilter | undefined)[]) {
  const asked: (SubscriptionFilter | undefined)[] = []
  const listen = async (call: Call, agreed: SubscriptionFilter | undefined) => {
    asked.push(agreed)
    const next = accepted.shift()
    if (next) await call.notify(acknowledgement(next))
    if (accepted.length === 0) return result({ last: true })
    throw new Error('broken')
  }
  return { asked, listen }
}

t.test('after a gap the client has one acknowledgement, and everything in it is reported as changed', async (t) => {
  const { told, call } = client()
  const { asked, listen } = serverOf(BOTH, undefined, BOTH)
  t.match(await keepOpen(call, { listen, delays: DELAYS }), { kind: 'result' })
  t.same(told, [
    'subscriptions/acknowledged {"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourceSubscriptions":["a:b"]}}',
    'tools/list_changed {}',
    'prompts/list_changed {}',
    'resources/updated {"uri":"a:b"}',
  ])
  t.same(asked, [undefined, BOTH, BOTH], 'a replacement is asked for what was accepted')
})

t.test('a subscription whose replacement reports less ends with its result', async (t) => {
  const { told, call } = client()
  const { listen } = serverOf(BOTH, { ...BOTH, lists: [TOOLS] }, BOTH)
  t.same(
    write(((await keepOpen(call, { listen, delays: DELAYS })) as { result: ServerNotification['params'] }).result),
    '{}',
  )
  t.equal(told.length, 1)
})

t.test('what does not outlive a server is not asked of its replacement', async (t) => {
  const { told, call } = client()
  const withTask = { ...NOTHING, lists: [TOOLS], tasks: ['1'] }
  const { listen } = serverOf(withTask, { ...withTask, tasks: [] })
  const lasting = (agreed: SubscriptionFilter) => ({ ...agreed, tasks: [] })
  t.match(await keepOpen(call, { listen, lasting, delays: DELAYS }), { kind: 'result' })
  t.equal(told.at(-1), 'tools/list_changed {}')
})

t.test('a subscription that was never accepted fails as its server says', async (t) => {
  const { told, call } = client()
  await t.rejects(keepOpen(call, { listen: serverOf(undefined, BOTH).listen, delays: DELAYS }), { message: 'broken' })
  t.same(told, [])
})

t.test('gathered changes of one subject are told once, others each', async (t) => {
  for (const [gather, expected] of [
    [1, 3],
    [undefined, 6],
  ] as const) {
    const { told, call } = client()
    const pending = new PendingChanges(gather === undefined ? { call } : { call, gather })
    for (const _ of [1, 2]) for (const change of everythingIn(BOTH)) pending.add(change)
    pending.end()
    await pending.tellAll()
    t.equal(told.length, expected)
  }
})

t.test('changes beyond the bound are dropped, and logged once', async (t) => {
  const { told, call } = client()
  let logged = 0
  const warn = () => {
    logged++
  }
  const pending = new PendingChanges({ call: { ...call, log: { ...call.log, warn } } })
  for (let n = 0; n < 1_030; n++) for (const change of everythingIn({ lists: [TOOLS], uris: [] })) pending.add(change)
  pending.end()
  await pending.tellAll()
  t.equal(told.length, 1_024)
  t.equal(logged, 1)
})

t.test('a cancelled subscription tells nothing more', async (t) => {
  const { told, call } = client()
  const signal = new HangUp()
  const pending = new PendingChanges({ call: { ...call, signal } })
  const telling = pending.tellAll()
  signal.abort(new Error('cancelled'))
  for (const change of everythingIn(BOTH)) pending.add(change)
  await telling
  t.same(told, [])
})

t.test('a filter with invalid members is what is left of it', async (t) => {
  const { params } = acknowledgement(BOTH)
  t.same(filterIn(params), BOTH)
  const odd = callOf({
    params: { notifications: { toolsListChanged: 1, resourceSubscriptions: [1, 'a:b'], taskIds: 'x' } },
  })
  t.same(filterIn(odd.params), { ...NOTHING, uris: ['a:b'] })
  t.same(filterIn(callOf({}).params), NOTHING)
})
