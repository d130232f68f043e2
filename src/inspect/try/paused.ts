/** Waits between two looks at a task. */

/** Milliseconds, and the most and least that a server can ask for. */
const USUAL = 1_000
const MOST = 30_000
const LEAST = 100

/** Resolves after the time that a server has asked for. Rejects when the signal aborts. */
export function paused(asked: unknown, signal: AbortSignal): Promise<void> {
  const ms = Math.min(Math.max(typeof asked === 'number' ? asked : USUAL, LEAST), MOST)
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason)
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', stop)
      resolve()
    }, ms)
    const stop = () => {
      clearTimeout(timer)
      reject(signal.reason)
    }
    signal.addEventListener('abort', stop, { once: true })
  })
}
