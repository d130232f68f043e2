/** Waiting for work that goes on without whoever waits for it. */

/** What it comes to, unless the signal aborts first. */
export function abortable<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason as Error)
    if (signal.aborted) return stop()
    signal.addEventListener('abort', stop, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop))
  })
}

/** What it comes to within so many milliseconds; rejects with what `late` gives otherwise. */
export function within<T>(work: Promise<T>, milliseconds: number, late: () => Error): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(late()), milliseconds)
    work.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}
