/** Waiting, time limits and backoff; no timer and no listener may remain afterwards. */
import { getEventListeners } from 'node:events'
import t, { type Test } from 'tap'
import { backoff, pause } from '../../src/base/time/pause.js'
import { Deadline, unlessAborted, within } from '../../src/base/time/time.js'
import { stopClock } from '../support/clock.js'
import { until } from '../support/eventually.js'

const MONTH = 31 * 24 * 3_600_000
const never = new Promise<never>(() => {})
const REASON = new Error('aborted by the test')

/** A fake clock and a signal. In the end, neither may have a timer or a listener left. */
function start(t: Test) {
  const clock = stopClock(t)
  const controller = new AbortController()
  const { signal } = controller
  const abort = () => controller.abort(REASON)
  const isClean = (what: string) => {
    t.equal(clock.waiting, 0, `${what} leaves no timer`)
    t.equal(getEventListeners(signal, 'abort').length, 0, `${what} leaves no listener`)
  }
  return { clock, signal, abort, isClean }
}

/** Work that the test ends. */
function work() {
  let resolve: (value: string) => void = () => {}
  let reject: (error: Error) => void = () => {}
  const promise = new Promise<string>((...settle) => {
    ;[resolve, reject] = settle
  })
  return { promise, resolve, reject }
}

t.test('within', async (t) => {
  t.test('resolves to the result of the work', async (t) => {
    const { signal, isClean } = start(t)
    const { promise, resolve } = work()
    const waiting = within(promise, 1_000, undefined, signal)
    resolve('done')
    t.equal(await waiting, 'done')
    isClean('work that ends')
  })

  t.test('rejects with the error of the work', async (t) => {
    const { signal, isClean } = start(t)
    const { promise, reject } = work()
    const waiting = within(promise, 1_000, undefined, signal)
    reject(new Error('broken'))
    await t.rejects(waiting, { message: 'broken' })
    isClean('work that fails')
  })

  t.test('resolves to undefined when the time is over, and not before', async (t) => {
    const { clock, signal, isClean } = start(t)
    let result: unknown = 'nothing yet'
    const waiting = within(never, 1_000, undefined, signal).then((value) => {
      result = value
    })
    await clock.pass(999)
    t.equal(result, 'nothing yet')
    await clock.pass(1)
    await waiting
    t.equal(result, undefined)
    isClean('a time that is over')
  })

  t.test('resolves to what `late` returns, and rejects with what it throws', async (t) => {
    const { clock, signal, isClean } = start(t)
    const returned = within(never, 10, () => 'late', signal)
    const thrown = within(
      never,
      10,
      () => {
        throw new Error('too late')
      },
      signal,
    )
    const rejected = t.rejects(thrown, { message: 'too late' })
    await clock.pass(10)
    t.equal(await returned, 'late')
    await rejected
    isClean('a time that is over')
  })

  t.test('rejects with the reason of the signal as soon as it aborts', async (t) => {
    const { signal, abort, isClean } = start(t)
    const waiting = within(never, 1_000, () => 'late', signal)
    abort()
    await t.rejects(waiting, REASON)
    isClean('a signal that aborts')
  })

  t.test('rejects if the signal aborted before, even if the work has ended', async (t) => {
    const { signal, abort, isClean } = start(t)
    abort()
    await t.rejects(within(Promise.resolve('done'), 1_000, undefined, signal), REASON)
    isClean('a signal that has aborted')
  })

  t.test('an error of the work that comes too late is no unhandled rejection', async (t) => {
    const { clock, signal, abort } = start(t)
    const [late, aborted] = [work(), work()]
    const expired = within(late.promise, 10)
    const stopped = within(aborted.promise, 1_000, undefined, signal)
    await clock.pass(10)
    await expired
    abort()
    await t.rejects(stopped, REASON)
    const unhandled: unknown[] = []
    const hear = (error: unknown) => unhandled.push(error)
    process.on('unhandledRejection', hear)
    t.teardown(() => process.off('unhandledRejection', hear))
    late.reject(new Error('late'))
    aborted.reject(new Error('aborted'))
    await new Promise((resolve) => setImmediate(resolve))
    t.same(unhandled, [])
  })

  t.test('a limit beyond the range of timers is none', async (t) => {
    const { clock, signal, isClean } = start(t)
    for (const milliseconds of [MONTH, Number.POSITIVE_INFINITY]) {
      const { promise, resolve } = work()
      const waiting = within(promise, milliseconds, undefined, signal)
      t.equal(clock.waiting, 0)
      await clock.pass(MONTH)
      resolve('done')
      t.equal(await waiting, 'done')
    }
    isClean('work without a limit')
  })
})

t.test('unlessAborted waits for the work, and no longer than until the signal aborts', async (t) => {
  const { clock, signal, abort, isClean } = start(t)
  const { promise, resolve } = work()
  const waiting = unlessAborted(promise, signal)
  t.equal(clock.waiting, 0)
  resolve('done')
  t.equal(await waiting, 'done')
  isClean('work that ends')
  const aborted = unlessAborted(never, signal)
  abort()
  await t.rejects(aborted, REASON)
  isClean('a signal that aborts')
})

t.test('pause', async (t) => {
  t.test('resolves to true when the time is over, and not before', async (t) => {
    const { clock, signal, isClean } = start(t)
    let over: boolean | undefined
    const pausing = pause(1_000, signal).then((value) => {
      over = value
    })
    await clock.pass(999)
    t.equal(over, undefined)
    await clock.pass(1)
    await pausing
    t.equal(over, true)
    isClean('a pause that is over')
  })

  t.test('resolves to false as soon as the signal aborts', async (t) => {
    const { signal, abort, isClean } = start(t)
    const pausing = pause(1_000, signal)
    abort()
    t.equal(await pausing, false)
    isClean('a pause that was aborted')
    t.equal(await pause(1_000, signal), false, 'a signal that has aborted before')
    t.equal(await pause(0, signal), false, 'a signal that has aborted before, and no time')
    isClean('a pause that does not begin')
  })

  t.test('a pause of 0 ms ends at once', async (t) => {
    const { signal, isClean } = start(t)
    t.equal(await pause(0, signal), true)
    t.equal(await pause(-1), true)
    isClean('a pause of no time')
  })

  t.test('a pause lasts at most as long as a timer can', async (t) => {
    const { clock } = start(t)
    const pausing = pause(Number.POSITIVE_INFINITY)
    await clock.pass(MONTH)
    t.equal(await pausing, true)
  })
})

t.test('backoff doubles from the first delay to the longest', async (t) => {
  const delays = { first: 100, most: 1_000 }
  t.same(
    [0, 1, 2, 3, 4, 5].map((failures) => backoff(failures, delays)),
    [100, 200, 400, 800, 1_000, 1_000],
  )
})

t.test('backoff returns a number for any count of failures', async (t) => {
  for (const failures of [1_023, 1_024, 1e9]) {
    t.equal(backoff(failures, { first: 1, most: 30_000 }), 30_000)
    t.equal(backoff(failures, { first: 0, most: 30_000 }), 0)
  }
})

t.test('backoff never exceeds the longest delay, not even at first', async (t) => {
  t.equal(backoff(0, { first: 60_000, most: 30_000 }), 30_000)
})

t.test('a deadline lets arrived messages be read before it ends', async (t) => {
  const late: string[] = []
  const arrived = (what: (deadline: Deadline) => void) => {
    const deadline = new Deadline(5, () => late.push(String(what)))
    // Node.js reads sockets like this: after the timer, in the same turn.
    setTimeout(() => what(deadline), 6)
    return deadline
  }
  arrived((deadline) => deadline.clear())
  const refreshed = arrived((deadline) => deadline.refresh())
  new Deadline(5, () => late.push('nothing'))
  // All timers are late.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20)
  await new Promise(setImmediate)
  await new Promise(setImmediate)
  t.same(late, ['nothing'])
  await until(() => late.length === 2, 'the end of the other one, which begins anew')
  refreshed.clear()
})
