/**
 * Time that passes when a test says so. `stopClock` is for units: no timer of the process runs by itself. Beside real sockets and
 * processes, `holdTimers` holds the timers of one limit only, and `leaper` moves the clock on while all timers go on.
 */
import type { Test } from 'tap'

interface Timer {
  at: number
  run(): void
  unref(): Timer
  ref(): Timer
  refresh(): Timer
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
    const refresh = () => {
      timer.at = now + milliseconds
      timers.add(timer)
      return timer
    }
    const timer: Timer = { at: 0, run, unref: () => timer, ref: () => timer, refresh }
    return refresh()
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

/** What a deadline may have lost of its length when a timer is set for it, in milliseconds. */
const LOST = 1_000

export interface HeldTimers {
  /** Timers that are set and have not run. */
  readonly waiting: number
  /** Timers that have been set so far. */
  readonly set: number
  /** Lets all of them run. */
  run(): void
  /** Lets the time of all of them pass: the monotonic clock moves on before they run. */
  pass(): void
}

/**
 * Holds the timers of this process that are set for so many milliseconds (or for what is left of a deadline that has just been set
 * so late): until the test ends, they run only when it says so. Give the limit under test a length that nothing else has, and longer than any test: it then ends what it should, and
 * nothing before that, however slow the machine is.
 */
export function holdTimers(t: Test, milliseconds: number): HeldTimers {
  const held = new Map<unknown, () => void>()
  const leap = leaper(t)
  let sets = 0
  const own = { setTimeout: globalThis.setTimeout, clearTimeout: globalThis.clearTimeout }
  const set = (callback: (...args: unknown[]) => void, wait?: number, ...args: unknown[]) => {
    const run = () => callback(...args)
    const timer = own.setTimeout(run, wait)
    if (wait !== undefined && wait <= milliseconds && wait > milliseconds - LOST) {
      held.set(timer.unref(), run)
      sets++
    }
    return timer
  }
  const clear = (timer: ReturnType<typeof setTimeout> | undefined) => {
    held.delete(timer)
    own.clearTimeout(timer)
  }
  Object.assign(globalThis, { setTimeout: set, clearTimeout: clear })
  t.teardown(() => Object.assign(globalThis, own))
  const run = () => {
    for (const [timer, run] of [...held]) {
      if (!held.has(timer)) continue
      clear(timer as ReturnType<typeof setTimeout>)
      run()
    }
  }
  return {
    get waiting() {
      return held.size
    },
    get set() {
      return sets
    },
    run,
    pass() {
      leap(milliseconds)
      run()
    },
  }
}

/** Moves `performance.now` on by so many milliseconds, as often as it is called. It goes back when the test ends. */
export function leaper(t: Test): (milliseconds: number) => void {
  // A clock may have been moved on before.
  const { now } = performance
  let ahead = 0
  performance.now = () => now.call(performance) + ahead
  // The method of the prototype shows again.
  t.teardown(() => Reflect.deleteProperty(performance, 'now'))
  return (milliseconds) => {
    ahead += milliseconds
  }
}
