/** Time limits. All times are in milliseconds. */
import type { Signal } from './hang-up.js'
import { LONGEST } from './pause.js'

const nothing = (): undefined => undefined

/**
 * A time limit. When it is over, it waits for one more turn of the event loop before it calls `late`; `clear` and
 * `refresh` still work in that turn. The process or the machine may have been suspended while the awaited data arrived,
 * and Node.js runs timers before it reads from sockets.
 */
export class Deadline {
  readonly #timer: NodeJS.Timeout
  #turn: NodeJS.Immediate | undefined

  constructor(milliseconds: number, late: () => void) {
    this.#timer = setTimeout(() => {
      this.#turn = setImmediate(late)
    }, milliseconds)
  }

  /** Restarts the time limit. */
  refresh(): void {
    clearImmediate(this.#turn)
    this.#timer.refresh()
  }

  clear(): void {
    clearImmediate(this.#turn)
    clearTimeout(this.#timer)
  }

  /** Does not keep the process running. */
  unref(): this {
    this.#timer.unref()
    return this
  }
}

/** Calls `look` periodically, each time after one more turn of the event loop, as `Deadline` does. */
export function lookEvery(milliseconds: number, look: () => void): NodeJS.Timeout {
  return setInterval(() => setImmediate(look), milliseconds).unref()
}

/**
 * Waits for `work`, but no longer than `milliseconds`. Resolves to the result of `work`; after a timeout to the result
 * of `late` (undefined by default). Rejects with the error of `work`, with the error that `late` throws, or, as soon as
 * `signal` aborts, with its reason. A timeout or an abort does not stop `work`; its later error is ignored. Removes its
 * timer and its listener. A time above LONGEST, such as Infinity, means no timeout.
 */
export function within<T, L = undefined>(
  work: Promise<T>,
  milliseconds: number,
  late: () => L = nothing as () => L,
  signal?: Signal,
): Promise<T | L> {
  return new Promise((resolve, reject) => {
    const expire = () => {
      release(undefined, signal, abort)
      try {
        resolve(late())
      } catch (error) {
        reject(error as Error)
      }
    }
    const abort =
      signal &&
      (() => {
        timer?.clear()
        reject(signal.reason as Error)
      })
    const timer = milliseconds > LONGEST ? undefined : new Deadline(milliseconds, expire)
    work.then(
      (value) => {
        release(timer, signal, abort)
        resolve(value)
      },
      (error: unknown) => {
        release(timer, signal, abort)
        reject(error as Error)
      },
    )
    if (!abort) return
    if (signal.aborted) abort()
    else signal.addEventListener('abort', abort, { once: true })
  })
}

/**
 * Waits for `work` without a timeout. Rejects with the reason of the signal as soon as it aborts, which does not stop
 * `work`.
 */
export function unlessAborted<T>(work: Promise<T>, signal: Signal): Promise<T> {
  return within<T, never>(work, Number.POSITIVE_INFINITY, undefined, signal)
}

function release(timer: Deadline | undefined, signal: Signal | undefined, listener: (() => void) | undefined): void {
  timer?.clear()
  if (listener) signal?.removeEventListener('abort', listener)
}
