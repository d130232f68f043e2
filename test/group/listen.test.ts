/** Subscriptions to a group: a client's subscription, made of one to each server concerned. */
import t from 'tap'
import { Fault } from '../../src/base/fault/fault.js'
import { until } from '../support/eventually.js'
import { ask, callOf, errorOf, FakeServer, faultOf, groupOf, named, paramsOf, resultOf } from './fakes.js'

const LISTEN = 'subscriptions/listen'
const TOOLS = 'notifications/tools/list_changed'
const UPDATED = 'notifications/resources/updated'
const TASKS = { revision: '2026-07-28', capabilities: '{"extensions":{"io.modelcontextprotocol/tasks":{}}}' }
const ALL = { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true }

type Group = ReturnType<typeof groupOf>['group']

/** A subscription that has been acknowledged, and is ended with the test. */
async function listen(t: Tap, group: Group, notifications: object, more: Parameters<typeof callOf>[2] = {}) {
  const call = callOf(LISTEN, { notifications }, more)
  const ended = group.handle(call).then(
    (last) => last,
    (error: unknown) => error,
  )
  t.teardown(() => call.end.abort())
  await until(() => call.told.length > 0)
  const said = () => call.told.slice(1).map((told) => [told.method, paramsOf(told)] as const)
  return { call, ended, said, acknowledged: call.told[0] && paramsOf(call.told[0]) }
}
type Tap = { teardown(end: () => void): void }

t.test(
  'a subscription is acknowledged at once, also while a server is down, and tells changes of all servers',
  async (t) => {
    const [a, b, down] = [new FakeServer(), new FakeServer(), new FakeServer()]
    down.down = new Fault('upstreamUnavailable', 'down')
    const { group } = groupOf({ a, b, down })
    const { said, acknowledged } = await listen(t, group, { toolsListChanged: true })
    t.same(acknowledged, { notifications: { toolsListChanged: true } })
    for (const one of [a, b]) t.same(one.got(LISTEN), [{ notifications: { toolsListChanged: true } }])
    a.tell(TOOLS)
    await until(() => said().length > 0)
    t.same(said(), [[TOOLS, {}]])
  },
)

t.test('merges equal changes of several servers', async (t) => {
  const [a, b] = [new FakeServer(), new FakeServer()]
  const { group } = groupOf({ a, b })
  const { said } = await listen(t, group, ALL)
  for (const one of [a, b, a]) one.tell(TOOLS)
  b.tell('notifications/prompts/list_changed')
  await until(() => said().length > 1)
  t.same(said(), [
    [TOOLS, {}],
    ['notifications/prompts/list_changed', {}],
  ])
})

t.test('acknowledges only lists that some server may have', async (t) => {
  const discovered = (capabilities: object) => ({ 'server/discover': { supportedVersions: [], capabilities } })
  const { group } = groupOf({
    a: new FakeServer(discovered({ tools: {} })),
    b: new FakeServer(discovered({ prompts: {} })),
  })
  await ask(group, 'server/discover')
  const { acknowledged } = await listen(t, group, ALL)
  t.same(acknowledged, { notifications: { toolsListChanged: true, promptsListChanged: true } })
})

t.test(
  'resources and tasks are subscribed to at their server only, and told as the client has named them',
  async (t) => {
    const a = new FakeServer({ 'resources/list': { resources: [{ uri: 'x:bare' }] } })
    const b = new FakeServer()
    const { group } = groupOf({ a, b })
    const wanted = { resourceSubscriptions: ['a+x:y', 'x:bare', 'c+x:z'], taskIds: ['b__t1', 'nobody'] }
    const { said, acknowledged } = await listen(t, group, wanted, { caller: TASKS })
    t.same(acknowledged, { notifications: { resourceSubscriptions: ['a+x:y', 'x:bare'], taskIds: ['b__t1'] } })
    t.same(a.got(LISTEN), [{ notifications: { resourceSubscriptions: ['x:y', 'x:bare'] } }])
    t.same(b.got(LISTEN), [{ notifications: { taskIds: ['t1'] } }])
    a.tell(UPDATED, { uri: 'x:y' })
    a.tell(UPDATED, { uri: 'x:bare' })
    a.tell(UPDATED, { uri: 'x:y/below' })
    b.tell('notifications/tasks', { taskId: 't1', status: 'working' })
    b.tell('notifications/tasks', { taskId: 't1', status: 'completed' })
    await until(() => said().length >= 4)
    t.same(said(), [
      [UPDATED, { uri: 'a+x:y' }],
      [UPDATED, { uri: 'x:bare' }],
      [UPDATED, { uri: 'a+x:y/below' }],
      ['notifications/tasks', { taskId: 'b__t1', status: 'completed' }],
    ])
  },
)

t.test('does not acknowledge subscriptions that a server refuses', async (t) => {
  const a = new FakeServer({
    [LISTEN]: async (call) => {
      await call.notify({ kind: 'notification', method: 'notifications/subscriptions/acknowledged', params: agreed })
      return { kind: 'result', result: agreed }
    },
  })
  const agreed = callOf('x', { notifications: {} }).params
  const { group } = groupOf({ a, b: new FakeServer() })
  const { acknowledged, ended } = await listen(t, group, { resourceSubscriptions: ['a+x:y'] })
  t.same(acknowledged, { notifications: {} })
  t.match(await ended, { kind: 'result' })
})

for (const bareUris of [false, true])
  t.test(
    `a resource of a server without subscriptions is not subscribed to (${bareUris ? 'bare' : 'prefixed'})`,
    async (t) => {
      const resources = { 'resources/list': { resources: [{ uri: 'x:y' }] } }
      const refusals = [
        () => errorOf(-32601, 'Method not found'),
        () => errorOf(-32602, 'Unknown resource'),
        () => Promise.reject(new Fault('methodNotFound', 'no')),
      ]
      for (const refusal of refusals) {
        const a = new FakeServer({ ...resources, [LISTEN]: refusal })
        const b = new FakeServer({ 'resources/list': { resources: [{ uri: 'x:z' }] } })
        const { group } = groupOf({ a, b }, { bareUris })
        const uris = bareUris ? ['x:y', 'x:z'] : ['a+x:y', 'x:y', 'b+x:z']
        const { acknowledged } = await listen(t, group, { resourceSubscriptions: uris, resourcesListChanged: true })
        t.same(acknowledged, { notifications: { resourceSubscriptions: uris.slice(-1), resourcesListChanged: true } })
      }
    },
  )

t.test('servers that change while a resource is looked for do not keep it from being subscribed to', async (t) => {
  let answer = () => {}
  const asked = new Promise<void>((resolve) => {
    answer = resolve
  })
  const a = new FakeServer({
    'resources/list': () => asked.then(() => resultOf({ resources: [{ uri: 'x:bare' }] })),
  })
  const { group } = groupOf({ a, b: new FakeServer({ 'resources/list': { resources: [] } }) })
  const listening = listen(t, group, { toolsListChanged: true, resourceSubscriptions: ['x:bare'] })
  await until(() => a.got('resources/list').length > 0)
  group.refresh()
  answer()
  const { acknowledged } = await listening
  const whole = { notifications: { toolsListChanged: true, resourceSubscriptions: ['x:bare'] } }
  t.same([acknowledged, ...a.got(LISTEN)], [whole, whole])
})

t.test('reopens a broken subscription, and reports everything as changed', async (t) => {
  const [a, b] = [new FakeServer(), new FakeServer()]
  const { group } = groupOf({ a, b })
  const { said } = await listen(t, group, { toolsListChanged: true, resourceSubscriptions: ['a+x:y'] })
  a.breakOff()
  await until(() => a.got(LISTEN).length === 2)
  await until(() => said().length >= 2)
  t.same(said(), [
    [TOOLS, {}],
    [UPDATED, { uri: 'a+x:y' }],
  ])
  t.equal(b.got(LISTEN).length, 1, 'that of the other server goes on')
})

t.test('notifies a listening client of added and removed servers', async (t) => {
  const [a, b] = [new FakeServer(), new FakeServer()]
  b.down = new Fault('upstreamUnavailable', 'down')
  const { group } = groupOf({ a, b })
  const { said } = await listen(t, group, { toolsListChanged: true })
  await until(() => b.got(LISTEN).length > 0)
  b.down = undefined
  await until(() => said().length === 1)
  b.down = new Fault('upstreamUnavailable', 'down')
  b.breakOff()
  await until(() => said().length === 2)
  b.down = undefined
  await until(() => said().length === 3)
  t.ok(said().every(([method]) => method === TOOLS))
})

t.test('notices that a server without change notifications is back after it failed to answer', async (t) => {
  const agreed = callOf('x', { notifications: {} }).params
  const mute = new FakeServer({
    'tools/list': { tools: named('x') },
    [LISTEN]: async (call) => {
      await call.notify({ kind: 'notification', method: 'notifications/subscriptions/acknowledged', params: agreed })
      return { kind: 'result', result: agreed }
    },
  })
  const { group } = groupOf({ mute, b: new FakeServer({ 'tools/list': { tools: [] } }) })
  const { said } = await listen(t, group, { toolsListChanged: true })
  await until(() => mute.got(LISTEN).length === 1)
  mute.down = new Fault('upstreamUnavailable', 'down')
  await ask(group, 'tools/list')
  await until(() => mute.got(LISTEN).length === 2)
  mute.down = undefined
  await until(() => said().length > 0)
  t.same(said()[0], [TOOLS, {}])
})

t.test('notifies listening clients of changed servers, and continues with the new ones', async (t) => {
  const [a, b, c] = [new FakeServer(), new FakeServer(), new FakeServer()]
  const { group, planOf } = groupOf({ a, b })
  const { said } = await listen(t, group, { toolsListChanged: true })
  group.change(planOf({ a, c }))
  await until(() => said().length === 1)
  t.same(
    [a, b, c].map(({ listening }) => listening.size),
    [1, 0, 1],
  )
  c.tell(TOOLS)
  await until(() => said().length === 2)
})

t.test("ends the subscriptions to all servers with the client's", async (t) => {
  const [a, b] = [new FakeServer(), new FakeServer()]
  const { group } = groupOf({ a, b })
  const { call, ended } = await listen(t, group, ALL)
  call.end.abort(new Fault('requestTimeout', 'gone'))
  t.match(await ended, { message: 'gone' })
  t.same(
    [a, b].map(({ listening }) => listening.size),
    [0, 0],
  )
  a.tell(TOOLS)
  group.change(groupOf({ a, b }).planOf({ a }))
  t.equal(call.told.length, 1)
})

t.test('a slow client delays no server, and gets the last pending change of each kind', async (t) => {
  const a = new FakeServer()
  const { group } = groupOf({ a, b: new FakeServer() })
  let read = () => {}
  const told: string[] = []
  const call = callOf(LISTEN, { notifications: { resourceSubscriptions: ['a+x:y', 'a+x:z'] } })
  call.notify = (one) => {
    told.push(one.method === UPDATED ? String(paramsOf(one)['uri']) : one.method)
    return told.length === 2 ? new Promise<void>((resolve) => (read = resolve)) : undefined
  }
  const ended = group.handle(call).catch(() => {})
  await until(() => told.length === 1)
  a.tell(UPDATED, { uri: 'x:y' })
  await until(() => told.length === 2)
  for (let times = 0; times < 100; times++) for (const uri of ['x:y', 'x:z']) a.tell(UPDATED, { uri })
  read()
  await until(() => told.length === 4)
  t.same(told.slice(1), ['a+x:y', 'a+x:y', 'a+x:z'])
  call.end.abort()
  await ended
})

t.test('refuses an invalid subscription', async (t) => {
  const { group } = groupOf({ a: new FakeServer(), b: new FakeServer() })
  t.equal((await faultOf(group, LISTEN, {})).fault, 'invalidParams')
  t.equal((await faultOf(group, LISTEN, { notifications: { taskIds: ['a__t'] } })).fault, 'missingCapability')
  const uris = Array.from({ length: 1_100 }, (_, i) => `a+x:${i}`)
  t.equal((await faultOf(group, LISTEN, { notifications: { resourceSubscriptions: uris } })).fault, 'overloaded')
})
