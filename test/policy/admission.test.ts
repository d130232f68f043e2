/** Admission and end of calls: bounds, time limits, sign-ins and shutdown, with a fake clock. */
import t from 'tap'
import { Fault } from '../../src/base/fault/fault.js'
import { Bound } from '../../src/base/limits/bound.js'
import { HangUp } from '../../src/base/time/hang-up.js'
import type { Call, Final, Handler, ServerNotification } from '../../src/mcp/protocol/call.js'
import { Admission } from '../../src/middle/policy/admission.js'
import { callOf, payload } from '../support/calls.js'
import { stopClock } from '../support/clock.js'

const DONE: Final = { kind: 'result', result: payload({ content: [] }) }
const PROGRESS: ServerNotification = {
  kind: 'notification',
  method: 'notifications/progress',
  params: payload({ progress: 1 }),
}
const timeouts = { idle: 1_000, total: 5_000 }

/** A call that the test answers. */
function open(admission: Admission, method = 'tools/call') {
  const abort = new HangUp()
  let finish = () => {}
  let tell: Call['notify'] = () => undefined
  const handle = admission.policy((call) => {
    tell = call.notify
    return new Promise<Final>((resolve, reject) => {
      finish = () => resolve(DONE)
      call.signal.addEventListener('abort', () => reject(call.signal.reason as Error))
    })
  })
  const call = callOf({ method })
  const answer = handle({ ...call, signal: abort, abort: (reason) => abort.abort(reason) }).catch(
    (error: unknown) => error,
  )
  return { answer, finish: () => finish(), progress: () => tell(PROGRESS), abort }
}

t.test('a silent call ends, and a later one continues', async (t) => {
  const clock = stopClock(t)
  const admission = new Admission({ timeouts })
  const silent = open(admission)
  await clock.pass(600)
  const later = open(admission)
  await clock.pass(399)
  t.equal(silent.abort.aborted, false)
  await clock.pass(1)
  t.match(await silent.answer, { fault: 'upstreamTimeout', message: /sent nothing for 1 s/ })
  t.equal(later.abort.aborted, false)
  await clock.pass(600)
  t.match(await later.answer, { fault: 'upstreamTimeout' })
  t.equal(clock.waiting, 0, 'no timer is left')
  t.equal(admission.inFlight, 0)
})

t.test('leaves no timer when the last thing in flight is one that has no time limits', async (t) => {
  const clock = stopClock(t)
  const admission = new Admission({ timeouts })
  const end = admission.begin(() => {})
  const { answer, finish } = open(admission)
  finish()
  t.match(await answer, DONE)
  end()
  t.equal(clock.waiting, 0)
})

t.test('progress resets the idle timeout, but not the total timeout', async (t) => {
  const clock = stopClock(t)
  const admission = new Admission({ timeouts })
  const { answer, progress, abort } = open(admission)
  for (let at = 0; at < 5_000; at += 500) {
    await clock.pass(500)
    await progress()
  }
  t.equal(abort.aborted, false)
  await clock.pass(500)
  await progress()
  t.match(await answer, { fault: 'upstreamTimeout', message: /did not answer within 5 s/ })
})

t.test('of several calls, those end that are silent, whichever began first', async (t) => {
  const clock = stopClock(t)
  const admission = new Admission({ timeouts })
  const heard = open(admission)
  await clock.pass(300)
  const silent = open(admission)
  await clock.pass(300)
  await heard.progress()
  await clock.pass(699)
  t.equal(silent.abort.aborted, false)
  await clock.pass(1)
  t.match(await silent.answer, { fault: 'upstreamTimeout' })
  t.equal(heard.abort.aborted, false)
  await clock.pass(299)
  heard.finish()
  t.equal(await heard.answer, DONE)
  t.equal(clock.waiting, 0, 'no timer is left')
})

t.test('an answer that has arrived while the process was held up is not late', async (t) => {
  const admission = new Admission({ timeouts: { idle: 20, total: 5_000 } })
  const { answer, finish } = open(admission)
  // Node.js reads sockets like this: after the timer, in the same turn.
  setTimeout(finish, 21)
  // All timers are late.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50)
  t.equal(await answer, DONE)
})

t.test('the time of a sign-in does not count', async (t) => {
  const clock = stopClock(t)
  let signedIn = () => {}
  const ahead = async (call: Call, next: Handler) => {
    await new Promise<void>((resolve) => {
      signedIn = resolve
    })
    return next(call)
  }
  const admission = new Admission({ timeouts, signIn: { ahead, after: (_call, error) => Promise.reject(error) } })
  const { answer, abort } = open(admission)
  await clock.pass(60_000)
  t.equal(abort.aborted, false)
  t.equal(admission.inFlight, 1)
  signedIn()
  await clock.pass(999)
  t.equal(abort.aborted, false)
  t.equal(admission.inFlight, 1, 'it is counted once, although it is sent a second time')
  await clock.pass(1)
  t.match(await answer, { fault: 'upstreamTimeout' })
})

t.test('a call occupies its place until it ends', async (t) => {
  const bound = new Bound({ max: 1 })
  const admission = new Admission({ calls: [{ bound, where: 'with the server', option: 'limits.callsPerServer' }] })
  const first = open(admission)
  t.match(await open(admission).answer, {
    fault: 'overloaded',
    message: 'Too many calls with the server: at most 1 may be open at once (limits.callsPerServer)',
  })
  first.finish()
  t.equal(await first.answer, DONE)
  t.equal(bound.used, 0)
  admission.enter({ principal: 'alice' })()
  t.equal(bound.used, 0, 'nor has what does not pass the policy')
})

t.test('shutdown ends subscriptions with a result, and calls with a fault', async (t) => {
  const admission = new Admission()
  const subscription = open(admission, 'subscriptions/listen')
  const call = open(admission)
  admission.end()
  t.match(await subscription.answer, { kind: 'result' })
  t.equal(call.abort.aborted, false)
  admission.close()
  t.match(await open(admission).answer, { fault: 'draining' })
  admission.cut()
  t.match(await call.answer, { fault: 'interrupted' })
  t.ok((await call.answer) instanceof Fault)
})
