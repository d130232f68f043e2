/** Several calls that share one subscription: what all of them get, and what ends one without the others. */
import t from 'tap'
import { Fault } from '../../src/base/fault/fault.js'
import { EMPTY, parseObject } from '../../src/base/rpc/splice.js'
import { HangUp } from '../../src/base/time/hang-up.js'
import { SharedListening } from '../../src/clients/legacy/shared-listening.js'
import { ANONYMOUS, type Call, type Final, type ServerNotification } from '../../src/mcp/protocol/call.js'
import { ACKNOWLEDGED } from '../../src/mcp/protocol/subscriptions.js'

const LISTS = '{"notifications":{"toolsListChanged":true}}'
const told = (method: string): ServerNotification => ({ kind: 'notification', method, params: EMPTY })
const ENDED: Final = { kind: 'result', result: EMPTY }

/** A call that records its notifications. */
function calling(principal: string, hear: (notification: ServerNotification) => void = () => {}) {
  const signal = new HangUp()
  const heard: string[] = []
  const call: Call = {
    method: 'subscriptions/listen',
    params: parseObject(LISTS),
    meta: EMPTY,
    progress: false,
    caller: { revision: '2026-07-28', capabilities: '{}' },
    principal,
    notify: (told) => {
      hear(told)
      heard.push(told.method)
      return undefined
    },
    signal,
    abort: (reason) => signal.abort(reason),
    log: { note() {}, warn() {} },
  }
  return { call, signal, heard }
}

function listening() {
  const sent: { call: Call; end(last: Final): void; fail(error: Error): void }[] = []
  const shared = new SharedListening(
    (call) =>
      new Promise((resolve, reject) => {
        sent.push({ call, end: resolve, fail: reject })
        call.signal.addEventListener('abort', () => reject(new Error('given up')))
      }),
  )
  return { shared, sent }
}

t.test('a call that joins gets the acknowledgement at once, and later changes', async (t) => {
  const { shared, sent } = listening()
  const [one, two] = [calling('anna'), calling('anna')]
  const first = shared.listen(one.call)
  await sent[0]?.call.notify(told(ACKNOWLEDGED))
  const second = shared.listen(two.call)
  t.same(two.heard, [ACKNOWLEDGED])
  await sent[0]?.call.notify(told('changed'))
  t.same(
    [one.heard, two.heard],
    [
      [ACKNOWLEDGED, 'changed'],
      [ACKNOWLEDGED, 'changed'],
    ],
  )
  sent[0]?.end(ENDED)
  t.same(await Promise.all([first, second]), [ENDED, ENDED])
  t.equal(sent.length, 1)
  t.equal(shared.size, 0)
})

t.test('anonymous callers share no subscription', (t) => {
  const { shared, sent } = listening()
  for (let calls = 0; calls < 2; calls++) shared.listen(calling(ANONYMOUS).call).catch(() => {})
  t.equal(sent.length, 2)
  t.end()
})

t.test('callers with different credentials share no subscription: the server may tell them different things', (t) => {
  const { shared, sent } = listening()
  for (const authorization of ['Bearer one', 'Bearer two', 'Bearer one'])
    shared.listen({ ...calling('anna').call, credential: { authorization } }).catch(() => {})
  t.same(
    sent.map(({ call }) => call.credential?.['authorization']),
    ['Bearer one', 'Bearer two'],
  )
  t.end()
})

t.test('a cancelled call leaves the others subscribed, and the last one ends the subscription', async (t) => {
  const { shared, sent } = listening()
  const [one, two] = [calling('anna'), calling('anna')]
  const [first, second] = [shared.listen(one.call), shared.listen(two.call)]
  const why = new Fault('interrupted', 'enough')
  one.signal.abort(why)
  await t.rejects(first, why)
  t.equal(sent[0]?.call.signal.aborted, false)
  two.signal.abort(why)
  await t.rejects(second, why)
  t.equal(sent[0]?.call.signal.aborted, true)
  t.equal(shared.size, 0)
  await t.rejects(shared.listen(two.call), why)
  t.equal(sent.length, 1, 'nothing is sent for a call that is over')
})

t.test('a call that fails to receive a message ends alone', async (t) => {
  const { shared, sent } = listening()
  const broken = calling('anna', () => {
    throw new Error('broken')
  })
  const whole = calling('anna')
  const [first, second] = [shared.listen(broken.call), shared.listen(whole.call)]
  await sent[0]?.call.notify(told('changed'))
  await t.rejects(first, new Error('broken'))
  t.same(whole.heard, ['changed'])
  sent[0]?.fail(new Fault('upstreamClosed', 'gone'))
  await t.rejects(second, new Fault('upstreamClosed', 'gone'))
})
