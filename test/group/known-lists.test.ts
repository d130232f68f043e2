/** The first list of a group waits for servers that were never met; afterwards what they listed last is served at once. */
import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import { Fault } from '../../src/base/fault/fault.js'
import { until } from '../support/eventually.js'
import { ask, callOf, FakeServer, groupOf, named, resultOf } from './fakes.js'

const LONG = 60_000
/** So short that a server whose answer is held never makes it. */
const WAIT = { known: 1, first: LONG }
const OTHER_APPLICATION = { caller: { revision: '2026-07-28' as const, capabilities: '{"sampling":{}}' } }
const CHANGED = 'notifications/tools/list_changed'

/** A server that lists these tools when its gate opens. */
class Gated extends FakeServer {
  tools: string[]
  held = false
  readonly #gates: (() => void)[] = []

  constructor(...tools: string[]) {
    super()
    this.tools = tools
    this.answers['tools/list'] = async () => {
      if (this.held) await new Promise<void>((resolve) => this.#gates.push(resolve))
      return resultOf({ tools: named(...this.tools) })
    }
  }

  async open(): Promise<void> {
    this.held = false
    for (const gate of this.#gates.splice(0)) gate()
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

const names = (result: unknown) => (result as { tools: { name: string }[] }).tools.map(({ name }) => name)
const missing = (result: unknown) => {
  const meta = (result as { _meta?: Record<string, unknown> })._meta
  return meta?.['io.github.mcp-bridge/unavailable']
}

t.test('the first list waits for a server that was never met', async (t) => {
  const slow = new Gated('x')
  slow.held = true
  const { group } = groupOf({ quick: new Gated('y'), slow }, { wait: WAIT })
  const list = ask(group, 'tools/list')
  await new Promise((resolve) => setTimeout(resolve, 50))
  await slow.open()
  t.same(names(await list), ['quick__y', 'slow__x'])
  t.equal(missing(await list), undefined)
})

t.test('a dead server is left out at once', async (t) => {
  const dead = new FakeServer()
  dead.down = new Fault('upstreamUnavailable', 'dead')
  const { group } = groupOf({ quick: new Gated('y'), dead }, { wait: WAIT })
  const list = await ask(group, 'tools/list')
  t.same(names(list), ['quick__y'])
  t.match(missing(list), [{ server: 'dead' }])
})

t.test('what a server listed last is served while it does not answer, also to another application', async (t) => {
  const slow = new Gated('x')
  const { group } = groupOf({ quick: new Gated('y'), slow }, { wait: WAIT })
  await ask(group, 'tools/list')
  slow.held = true
  for (const [who, options] of [
    ['the same application', {}],
    ['another one of the same person', OTHER_APPLICATION],
  ] as const) {
    const list = await ask(group, 'tools/list', {}, options)
    t.same(names(list), ['quick__y', 'slow__x'], who)
    t.match(missing(list), [{ server: 'slow' }], who)
  }
  const call = callOf('tools/list', {}, { principal: 'bob' })
  const strangers = group.handle(call)
  const first = await Promise.race([strangers, new Promise((resolve) => setTimeout(resolve, 50, 'waits'))])
  t.equal(first, 'waits', 'another person gets nothing of it')
  await slow.open()
  t.match(await strangers, { kind: 'result' })
})

t.test('a late list is told as a change only if it differs from what was served', async (t) => {
  const slow = new Gated('x')
  const { group } = groupOf({ quick: new Gated('y'), slow }, { wait: WAIT })
  await ask(group, 'tools/list')
  const listening = callOf('subscriptions/listen', { notifications: { toolsListChanged: true } })
  const over = group.handle(listening).catch(() => {})
  const told = () => listening.told.filter(({ method }) => method === CHANGED).length
  const late = async (...tools: string[]) => {
    slow.held = true
    t.same(names(await ask(group, 'tools/list')), ['quick__y', 'slow__x'])
    slow.tools = tools
    await slow.open()
    // For longer than changes are gathered, all in all.
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  for (let times = 0; times < 5; times++) await late('x')
  t.equal(told(), 0, 'the same list, five times')
  await late('x', 'z')
  await until(() => told() > 0, 'word of another list')
  t.same(names(await ask(group, 'tools/list')), ['quick__y', 'slow__x', 'slow__z'])
  listening.abort()
  await over
})

t.test('a reload of one server keeps the lists of the others', async (t) => {
  const [a, b] = [new Gated('x'), new Gated('y')]
  const { group, planOf } = groupOf({ a, b }, { wait: WAIT })
  await ask(group, 'tools/list')
  const before = planOf({ a, b })
  group.change(before)
  await ask(group, 'tools/list')
  const fresh = new Gated('new')
  const [kept] = before.members
  const [, replaced] = planOf({ a, b: fresh }).members
  group.change({ ...before, members: [kept, replaced].flatMap((member) => member ?? []) })
  a.held = true
  await setImmediate()
  t.same(names(await ask(group, 'tools/list')), ['a__x', 'b__new'])
  a.down = new Fault('upstreamUnavailable', 'down')
  fresh.down = a.down
  t.same(names(await ask(group, 'tools/list')), ['a__x', 'b__new'])
})
