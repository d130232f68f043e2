/** Waiting: for work within a time limit, for a while, and longer after each failure. All times are milliseconds. */

/** The first delay, and the longest. */
export interface Backoff {
  first: number
  most: number
}

/** The longest time that a timer counts, about 25 days. */
const LONGEST = 2 ** 31 - 1
/** After so many doublings every delay is longer than a timer counts; more of them would come to no number. */
const DOUBLINGS = 31

const nothing = (): undefined => undefined

/**
 * Waits for `work`, for so many milliseconds at most. Resolves to what the work gives, or to what `late` returns when the time is
 * over (by default undefined). Rejects with the error of the work, with what `late` throws, or with the reason of `signal`
 * as soon as it aborts. The work goes on in any case; an error that comes too late is ignored. Leaves no timer and no listener
 * behind. A time that no timer counts, such as Infinity, is no limit.
 */
export function within<T, L = undefined>(
  work: Promise<T>,
  milliseconds: number,
  late: () => L = nothing as () => L,
  signal?: AbortSignal,
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
        clearTimeout(timer)
        reject(signal.reason as Error)
      })
    const timer = milliseconds > LONGEST ? undefined : setTimeout(expire, milliseconds)
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

/** Waits for `work`, however long it takes. Rejects with the reason of the signal as soon as it aborts; the work goes on. */
export function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return within<T, never>(work, Number.POSITIVE_INFINITY, undefined, signal)
}

/**
 * Waits. Resolves to true when the time is over, and to false as soon as the signal aborts. Never rejects: a caller that has to
 * fail then calls `signal.throwIfAborted()`. A time of 0 or less is over at once. Leaves no timer and no listener behind.
 */
export function pause(milliseconds: number, signal?: AbortSignal): Promise<boolean> {
  if (signal?.aborted) return Promise.resolve(false)
  if (milliseconds <= 0) return Promise.resolve(true)
  return new Promise((resolve) => {
    const end = () => {
      release(timer, signal, end)
      resolve(!signal?.aborted)
    }
    const timer = setTimeout(end, Math.min(milliseconds, LONGEST))
    signal?.addEventListener('abort', end, { once: true })
  })
}

/** How long to wait after so many failures: `first` after none, twice as long after each further one, `most` in the end. */
export function backoff(failures: number, { first, most }: Backoff): number {
  return Math.min(first * 2 ** Math.min(failures, DOUBLINGS), most)
}

function release(
  timer: ReturnType<typeof setTimeout> | undefined,
  signal: AbortSignal | undefined,
  listener: (() => void) | undefined,
): void {
  clearTimeout(timer)
  if (listener) signal?.removeEventListener('abort', listener)
}
