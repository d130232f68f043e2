/** Keeping a subscription open. test/downstream/changes and test/policy/cache test what uses it. */
import t, { type Test } from 'tap'
import { EMPTY, parseObject } from '../../src/base/rpc/splice.js'
import type { HangUp } from '../../src/base/time/hang-up.js'
import { Resubscriber, type ResubscriberOptions } from '../../src/mcp/listening/resubscriber.js'
import type { Reply } from '../../src/mcp/protocol/call.js'
import { ACKNOWLEDGED } from '../../src/mcp/protocol/subscriptions.js'
import { answerFrom } from '../support/calls.js'
import { stopClock } from '../support/clock.js'

const PARAMS = parseObject('{"notifications":{"toolsListChanged":true}}')
const CHANGED = 'notifications/tools/list_changed'

/** One subscription, as the server sees it. */
class Served {
  readonly signal: HangUp
  readonly #replies: Reply[] = []
  #failure: Error | undefined
  #wake = () => {}

  constructor(signal: HangUp) {
    this.signal = signal
    signal.addEventListener('abort', () => this.#wake())
  }

  agree(params = PARAMS): void {
    this.#say({ kind: 'notification', method: ACKNOWLEDGED, params })
  }

  tell(): void {
    this.#say({ kind: 'notification', method: CHANGED, params: EMPTY })
  }

  break(): void {
    this.#failure = new Error('broken')
    this.#wake()
  }

  async *replies(): AsyncGenerator<Reply> {
    for (;;) {
      for (const reply of this.#replies.splice(0)) yield reply
      this.signal.throwIfAborted()
      if (this.#failure) throw this.#failure
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

function start(t: Test, options: Partial<ResubscriberOptions> = {}) {
  const clock = stopClock(t)
  const served: Served[] = []
  const heard: string[] = []
  const agreed: object[] = []
  const open = () => resubscriber.open(PARAMS, (filter) => agreed.push(filter))
  const resubscriber = new Resubscriber({
    listen: (_params, controller, tell) => {
      const one = new Served(controller)
      served.push(one)
      return answerFrom(one.replies(), tell)
    },
    heard: ({ method }) => heard.push(method),
    ended: () => true,
    reopen: open,
    failed: () => true,
    missed: () => heard.push('missed'),
    delays: { first: 1_000, most: 4_000 },
    ...options,
  })
  /** Opens a subscription that the server acknowledges at once. */
  const opened = async () => {
    const opening = open()
    const one = served.at(-1) as Served
    one.agree()
    await opening
    return one
  }
  return { clock, served, heard, agreed, resubscriber, open, opened }
}

t.test('reopens at growing intervals, and reports missed changes in the end', async (t) => {
  const { clock, served, heard, resubscriber, opened } = start(t)
  ;(await opened()).break()
  const delays = [1_000, 2_000, 4_000, 4_000]
  for (const [n, delay] of delays.entries()) {
    await clock.pass(delay - 1)
    t.equal(served.length, n + 1, `${delay} ms are not over`)
    await clock.pass(1)
    t.equal(served.length, n + 2, `${delay} ms are over`)
    if (n < delays.length - 1) served.at(-1)?.break()
  }
  t.same(heard, [])
  served.at(-1)?.agree()
  await clock.pass(0)
  t.ok(resubscriber.isOpen)
  t.notOk(resubscriber.isOpening)
  t.same(heard, ['missed'])
})

t.test('after a long-lived subscription, the first delay is the shortest again', async (t) => {
  const { clock, served, opened } = start(t)
  ;(await opened()).break()
  await clock.pass(1_000)
  served.at(-1)?.agree()
  await clock.pass(30_000)
  served.at(-1)?.break()
  await clock.pass(1_000)
  t.equal(served.length, 3)
})

t.test('gives up a server that does not acknowledge in time, and keeps the earlier subscription', async (t) => {
  const { clock, served, heard, resubscriber, opened, open } = start(t)
  const first = await opened()
  const late = t.rejects(open(), { message: /in time/ })
  await clock.pass(10_000)
  await late
  t.ok(served[1]?.signal.aborted)
  t.notOk(first.signal.aborted)
  served[1]?.agree()
  first.tell()
  await clock.pass(0)
  t.same(heard, [CHANGED])
  t.ok(resubscriber.isOpen)
  t.notOk(resubscriber.isOpening)
})

t.test('does not reopen a subscription that is no longer wanted', async (t) => {
  const { clock, served, resubscriber, opened } = start(t, { ended: () => false })
  ;(await opened()).break()
  await clock.pass(60_000)
  t.equal(served.length, 1)
  t.notOk(resubscriber.isOpen)
})

t.test('stops retrying when `failed` returns false', async (t) => {
  const { clock, served, resubscriber, opened } = start(t, { failed: () => false })
  ;(await opened()).break()
  await clock.pass(1_000)
  served.at(-1)?.break()
  await clock.pass(60_000)
  t.equal(served.length, 2)
  t.notOk(resubscriber.isOpening)
})

t.test('leaves no subscription, timer or attempt when it stops', async (t) => {
  const { clock, served, resubscriber, opened, open } = start(t)
  await opened()
  const opening = t.rejects(open())
  resubscriber.stop()
  await opening
  t.ok(served.every(({ signal }) => signal.aborted))
  t.equal(clock.waiting, 0)

  const other = start(t)
  ;(await other.opened()).break()
  await other.clock.pass(0)
  t.equal(other.clock.waiting, 1, 'it waits to be opened again')
  other.resubscriber.stop()
  await other.clock.pass(60_000)
  t.equal(other.clock.waiting, 0)
  other.resubscriber.retry()
  await other.clock.pass(60_000)
  t.equal(other.served.length, 1)
})
