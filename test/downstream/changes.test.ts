/** A session's subscriptions to changes of a server, which the test plays: a new subscription is made before the old one ends. */
import t, { type Test } from 'tap'
import type { Fault } from '../../src/base/fault/fault.js'
import { unlimited } from '../../src/base/limits/memory.js'
import { EMPTY, type Payload, parseObject, write } from '../../src/base/rpc/splice.js'
import type { HangUp } from '../../src/base/time/hang-up.js'
import { SessionChanges } from '../../src/clients/legacy/subscription.js'
import type { Reply } from '../../src/mcp/protocol/call.js'
import { answerFrom } from '../support/calls.js'
import { until } from '../support/eventually.js'
import { faultOf } from '../support/faults.js'

const ALL = '{"tools":{"listChanged":true},"resources":{"subscribe":true}}'
const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged'
const UPDATED = 'notifications/resources/updated'

/** One subscription, as the server sees it. */
class Subscription {
  readonly filter: { toolsListChanged?: boolean; resourceSubscriptions?: string[] }
  readonly #controller: HangUp
  #replies: Reply[] = []
  #failure: Error | undefined
  #over = false
  #wake = () => {}

  constructor(params: Payload, controller: HangUp) {
    this.filter = (JSON.parse(write(params)) as { notifications: Subscription['filter'] }).notifications
    this.#controller = controller
    controller.addEventListener('abort', () => this.#wake())
  }

  get isOpen(): boolean {
    return !this.#over && !this.#controller.aborted
  }

  /** The URIs it reports changes of. */
  get uris(): string[] {
    return this.filter.resourceSubscriptions ?? []
  }

  agree(filter: object = this.filter): void {
    this.tell(ACKNOWLEDGED, { notifications: filter })
  }

  tell(method: string, params: object = {}): void {
    this.#say({ kind: 'notification', method, params: parseObject(JSON.stringify(params)) })
  }

  end(): void {
    this.#over = true
    this.#say({ kind: 'result', result: EMPTY })
  }

  refuse(): void {
    this.#over = true
    this.#say({ kind: 'error', error: { code: -32601, message: 'no' } })
  }

  break(): void {
    this.#over = true
    this.#failure = new Error('the connection is gone')
    this.#wake()
  }

  async *replies(): AsyncGenerator<Reply> {
    for (;;) {
      for (const reply of this.#replies.splice(0)) yield reply
      if (this.#controller.aborted) throw this.#controller.reason
      if (this.#failure) throw this.#failure
      if (this.#over) return
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }

  #say(reply: Reply): void {
    this.#replies.push(reply)
    this.#wake()
  }
}

function start(t: Test, offered = ALL) {
  const subscriptions: Subscription[] = []
  const told: string[] = []
  const changes = new SessionChanges({
    reservation: unlimited().reserve('alice'),
    offered: parseObject(offered),
    listen: (params, controller, tell) => {
      const subscription = new Subscription(params, controller)
      subscriptions.push(subscription)
      return answerFrom(subscription.replies(), tell)
    },
    deliver: (method, params) => told.push(`${method} ${write(params)}`),
    log: { debug: () => {} },
  })
  t.teardown(() => changes.stop())
  const next = async (count: number) => {
    await until(() => subscriptions.length === count, `subscription ${count}`)
    return subscriptions[count - 1] as Subscription
  }
  return { changes, subscriptions, told, next }
}

/** Waits for an attempt, and returns the fault if it fails. */
function outcome(attempt: Promise<void>): Promise<string> {
  return attempt.then(
    () => 'ok',
    (error: Fault) => error.fault,
  )
}

/** Subscribes to a resource; the server accepts. */
async function subscribed(
  { changes, next, subscriptions }: ReturnType<typeof start>,
  uri: string,
): Promise<Subscription> {
  const subscribing = changes.subscribe(uri)
  const subscription = await next(subscriptions.length + 1)
  subscription.agree()
  await subscribing
  return subscription
}

t.test('subscribes to list changes from the start, once', async (t) => {
  const { changes, subscriptions, told, next } = start(t)
  changes.start()
  changes.start()
  const subscription = await next(1)
  t.same(subscription.filter, { toolsListChanged: true })
  subscription.tell('notifications/tools/list_changed')
  subscription.agree()
  subscription.tell('notifications/tools/list_changed')
  subscription.tell('notifications/prompts/list_changed')
  subscription.tell('notifications/message', { level: 'error' })
  await until(() => told.length === 1)
  t.same(told, ['notifications/tools/list_changed {}'], 'what was agreed to, from then on')
  t.equal(subscriptions.length, 1)
})

t.test('opens no subscription if the server reports no changes', async (t) => {
  const { changes, subscriptions } = start(t, '{"tools":{},"resources":{}}')
  changes.start()
  t.equal(faultOf(() => changes.subscribe('test://a'))?.fault, 'methodNotFound')
  await changes.unsubscribe('test://a')
  t.equal(subscriptions.length, 0)
})

t.test(
  'ends the first subscription when the second is acknowledged, and until then hears only the first',
  async (t) => {
    const bridge = start(t)
    const { changes, told, next } = bridge
    changes.start()
    const first = await next(1)
    first.agree()
    const subscribing = changes.subscribe('test://a')
    const second = await next(2)
    t.same(second.filter, { toolsListChanged: true, resourceSubscriptions: ['test://a'] })
    first.tell('notifications/tools/list_changed')
    await until(() => told.length === 1)
    t.ok(first.isOpen)
    second.agree()
    await subscribing
    t.notOk(first.isOpen)
    second.tell('notifications/tools/list_changed')
    await until(() => told.length === 2)
  },
)

t.test('adds several requested resources one after the other', async (t) => {
  const { changes, next } = start(t)
  const all = Promise.all(['test://a', 'test://b', 'test://a'].map((uri) => changes.subscribe(uri)))
  const first = await next(1)
  t.same(first.filter, { resourceSubscriptions: ['test://a'] }, 'nobody is there yet to be told of lists')
  first.agree()
  const second = await next(2)
  t.same(second.filter, { resourceSubscriptions: ['test://a', 'test://b'] })
  second.agree()
  await all
})

t.test('notifies for a subscribed resource, and for those below it, not for one with a longer name', async (t) => {
  const bridge = start(t)
  const subscription = await subscribed(bridge, 'test://a')
  for (const uri of ['test://a', 'test://ab', 'test://a/b', 'test://b']) subscription.tell(UPDATED, { uri })
  subscription.tell(UPDATED, { uri: 'test://a' })
  await until(() => bridge.told.length === 3)
  t.same(
    bridge.told,
    ['test://a', 'test://a/b', 'test://a'].map((uri) => `${UPDATED} {"uri":"${uri}"}`),
  )
})

t.test('refuses a resource that is not acknowledged, and keeps the rest', async (t) => {
  const bridge = start(t)
  const { changes, next } = bridge
  const first = await subscribed(bridge, 'test://a')
  const refused = outcome(changes.subscribe('test://b'))
  const second = await next(2)
  second.agree({ resourceSubscriptions: ['test://a'] })
  t.equal(await refused, 'invalidParams')
  t.notOk(second.isOpen)
  t.ok(first.isOpen)

  const unknown = outcome(changes.subscribe('test://c'))
  ;(await next(3)).refuse()
  t.equal(await unknown, 'methodNotFound')
  const broken = t.rejects(changes.subscribe('test://c'), { message: /gone/ })
  ;(await next(4)).break()
  await broken
  t.ok(first.isOpen)
  t.same((await subscribed(bridge, 'test://d')).uris, ['test://a', 'test://d'])
})

t.test('stops notifying after an unsubscribe, whatever the server answers', async (t) => {
  const bridge = start(t)
  const { changes, told, next } = bridge
  await subscribed(bridge, 'test://a')
  const second = await subscribed(bridge, 'test://b')
  const leaving = changes.unsubscribe('test://a')
  ;(await next(3)).refuse()
  await leaving
  t.ok(second.isOpen, 'the subscription that there is goes on')
  for (const uri of ['test://a', 'test://b']) second.tell(UPDATED, { uri })
  await until(() => told.length > 0)
  t.same(told, [`${UPDATED} {"uri":"test://b"}`])
  t.same((await subscribed(bridge, 'test://c')).uris, ['test://b', 'test://c'])
})

t.test('ends the subscription when nothing is subscribed to', async (t) => {
  const bridge = start(t)
  const subscription = await subscribed(bridge, 'test://a')
  await bridge.changes.unsubscribe('test://b')
  t.ok(subscription.isOpen)
  await bridge.changes.unsubscribe('test://a')
  t.notOk(subscription.isOpen)
  t.equal(bridge.subscriptions.length, 1)
})

t.test('bounds the resources that a session subscribes to', async (t) => {
  const bridge = start(t)
  const many = Array.from({ length: 1_000 }, (_, n) => `test://${n}`)
  const all = Promise.all(many.map((uri) => bridge.changes.subscribe(uri)))
  for (let count = 1; count <= many.length; count++) {
    while (bridge.subscriptions.length < count) await new Promise((resolve) => setImmediate(resolve))
    bridge.subscriptions[count - 1]?.agree()
  }
  await all
  t.equal(await outcome(bridge.changes.subscribe('test://more')), 'invalidParams')
})

t.test('leaves nothing open when the session ends, not even a subscription being opened', async (t) => {
  const bridge = start(t)
  const { changes, next } = bridge
  changes.start()
  const first = await next(1)
  first.agree()
  const subscribing = changes.subscribe('test://a').catch(() => {})
  const second = await next(2)
  changes.stop()
  t.notOk(first.isOpen)
  t.notOk(second.isOpen)
  second.agree()
  await subscribing
  await changes.subscribe('test://b').catch(() => {})
  changes.start()
  t.equal(bridge.subscriptions.length, 2)
})

/** Makes long delays end at once. Returns them, in milliseconds. */
function hurrying(t: Test): number[] {
  const waits: number[] = []
  const { setTimeout: original } = globalThis
  const hurried = (run: () => void, wait: number) => {
    // 10 s is the time limit of a subscription, which stays.
    if (wait < 1_000 || wait === 10_000) return original(run, wait)
    waits.push(wait)
    return original(run, 0)
  }
  t.intercept(globalThis, 'setTimeout', { value: hurried })
  return waits
}

t.test('reopens a subscription that ends, and reports everything as changed if it broke', async (t) => {
  hurrying(t)
  const bridge = start(t)
  const { changes, told, next } = bridge
  changes.start()
  ;(await next(1)).agree()
  const second = await subscribed(bridge, 'test://a')
  second.end()
  const third = await next(3)
  t.same(third.filter, second.filter)
  third.agree()
  await until(() => third.isOpen)
  t.same(told, [])
  third.break()
  const fourth = await next(4)
  t.same(told, [], 'what has changed can be asked when somebody listens again')
  fourth.agree()
  await until(() => told.length === 2)
  t.same(told, ['notifications/tools/list_changed {}', `${UPDATED} {"uri":"test://a"}`])
})

t.test(
  'tells a client that subscribes before a broken subscription is reopened that everything may have changed',
  async (t) => {
    const bridge = start(t)
    const { changes, told, next } = bridge
    changes.start()
    const first = await next(1)
    first.agree()
    await new Promise((resolve) => setImmediate(resolve))
    first.break()
    await subscribed(bridge, 'test://a')
    t.same(told, ['notifications/tools/list_changed {}', `${UPDATED} {"uri":"test://a"}`])
  },
)

t.test('opens a subscription again that could not be opened at first, and reports everything as changed', async (t) => {
  const lists = 'notifications/tools/list_changed {}'
  const resource = `${UPDATED} {"uri":"test://a"}`
  hurrying(t)
  const rows: [begin: (bridge: ReturnType<typeof start>) => unknown, broken: number, filter: object, told: string[]][] =
    [
      [({ changes }) => changes.start(), 1, { toolsListChanged: true }, [lists]],
      [({ changes }) => changes.continue(['test://a']), 1, { resourceSubscriptions: ['test://a'] }, [lists, resource]],
      [
        (bridge) => subscribed(bridge, 'test://a').then(() => bridge.changes.start()),
        2,
        { toolsListChanged: true, resourceSubscriptions: ['test://a'] },
        [lists, resource],
      ],
    ]
  for (const [begin, broken, filter, expected] of rows) {
    const bridge = start(t)
    await begin(bridge)
    ;(await bridge.next(broken)).break()
    const again = await bridge.next(broken + 1)
    t.same(again.filter, filter)
    again.agree()
    await until(() => bridge.told.length === expected.length)
    t.same(bridge.told, expected)
  }
})

t.test('reopens a broken subscription although the server refuses another one meanwhile', async (t) => {
  const { changes, told, next } = start(t)
  changes.start()
  const first = await next(1)
  first.agree()
  await new Promise((resolve) => setImmediate(resolve))
  first.break()
  await new Promise((resolve) => setImmediate(resolve))
  const refused = outcome(changes.subscribe('test://a'))
  ;(await next(2)).refuse()
  t.equal(await refused, 'methodNotFound')
  ;(await next(3)).agree()
  await until(() => told.length === 1)
  t.same(told, ['notifications/tools/list_changed {}'])
})

t.test('waits longer the more often a server ends the subscription', async (t) => {
  const waits = hurrying(t)
  const { changes, next } = start(t)
  changes.start()
  for (let count = 1; count <= 8; count++) {
    const subscription = await next(count)
    subscription.agree()
    subscription.end()
  }
  await next(9)
  t.same(waits, [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000])
})

t.test('reopens a long-lived subscription soon', async (t) => {
  const waits = hurrying(t)
  let now = performance.now()
  t.intercept(performance, 'now', { value: () => now })
  const { changes, next } = start(t)
  changes.start()
  const serve = async (count: number, milliseconds: number) => {
    const subscription = await next(count)
    subscription.agree()
    await new Promise((resolve) => setImmediate(resolve))
    now += milliseconds
    subscription.end()
  }
  await serve(1, 0)
  await serve(2, 0)
  await serve(3, 60_000)
  await serve(4, 0)
  await next(5)
  t.same(waits, [1_000, 2_000, 1_000, 2_000])
})

t.test('does not ask a server again that has no changes to report, or refuses', async (t) => {
  const waits = hurrying(t)
  const empty = start(t)
  empty.changes.start()
  const first = await empty.next(1)
  first.agree({})
  first.end()
  const refusing = start(t)
  refusing.changes.start()
  ;(await refusing.next(1)).refuse()
  const gone = start(t)
  gone.changes.start()
  const before = await gone.next(1)
  before.agree()
  before.end()
  ;(await gone.next(2)).refuse()
  await new Promise((resolve) => setTimeout(resolve, 50))
  t.same(
    [empty, refusing, gone].map(({ subscriptions }) => subscriptions.length),
    [1, 1, 2],
  )
  t.same(waits, [1_000])
})
