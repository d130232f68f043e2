/** Time that passes when a test says so, for what waits longer than any test should. */
import type { Test } from 'tap'

interface Timer {
  at: number
  run(): void
  unref(): Timer
  ref(): Timer
}

export interface Clock {
  /** Lets so many milliseconds pass, with everything that is due in them. */
  pass(milliseconds: number): Promise<void>
  /** Timers that have not run. */
  readonly waiting: number
}

/** Stops the timers of this process until the test ends. */
export function stopClock(t: Test): Clock {
  const timers = new Set<Timer>()
  let now = Date.now()
  const own = { setTimeout: globalThis.setTimeout, clearTimeout: globalThis.clearTimeout, now: Date.now }
  const monotonic = performance.now() - now
  const set = (run: () => void, milliseconds = 0): Timer => {
    const timer: Timer = { at: now + milliseconds, run, unref: () => timer, ref: () => timer }
    timers.add(timer)
    return timer
  }
  Object.assign(globalThis, { setTimeout: set, clearTimeout: (timer: Timer) => timers.delete(timer) })
  Date.now = () => now
  performance.now = () => now + monotonic
  const restore = () => {
    Object.assign(globalThis, { setTimeout: own.setTimeout, clearTimeout: own.clearTimeout })
    Date.now = own.now
    // The method of the prototype shows again.
    Reflect.deleteProperty(performance, 'now')
  }
  t.teardown(restore)
  const settle = () => new Promise<void>((resolve) => setImmediate(resolve))
  return {
    get waiting() {
      return timers.size
    },
    async pass(milliseconds) {
      const until = now + milliseconds
      await settle()
      for (;;) {
        const [next] = [...timers].filter(({ at }) => at <= until).sort((a, b) => a.at - b.at)
        if (!next) break
        timers.delete(next)
        now = next.at
        next.run()
        await settle()
      }
      now = until
    },
  }
}
