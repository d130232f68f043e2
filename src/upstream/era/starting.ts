/** Tells callers who want to hear of progress that their call waits for a program to start. */
import type { Call, Reply } from '../../protocol/call.js'
import { parseObject } from '../../rpc/splice.js'

/** Milliseconds until a caller is told first, and from then on. */
const TELL = { after: 3_000, every: 5_000 }
/** What progress grows by: so little that whatever the server says later is more. */
const STEP = 1e-9

let steps = 0

/**
 * Waits for what a call with progress needs before the program can hear of it. Its caller is told meanwhile that the server
 * is starting, which is a sign of life as well. `unused` gets what is there only when nobody waits any more.
 */
export async function* starting<T>(
  call: Call,
  opening: Promise<T>,
  unused: (opened: T) => void = () => {},
): AsyncGenerator<Reply, T> {
  let waiting = true
  try {
    for (let wait = TELL.after; !(await settles(opening, wait, call.signal)); wait = TELL.every) {
      call.signal.throwIfAborted()
      const params = parseObject(`{"progress":${++steps * STEP},"message":"The server is starting"}`)
      yield { kind: 'notification', method: 'notifications/progress', params }
    }
    waiting = false
    return await opening
  } finally {
    // The reader may stop at any yield.
    if (waiting) opening.then(unused).catch(() => {})
  }
}

/** Whether a promise settles within so many milliseconds, and before the signal aborts. */
async function settles(promise: Promise<unknown>, milliseconds: number, signal: AbortSignal): Promise<boolean> {
  let giveUp = () => {}
  const late = new Promise<boolean>((resolve) => {
    giveUp = () => resolve(false)
  })
  if (signal.aborted) giveUp()
  const timer = setTimeout(giveUp, milliseconds)
  signal.addEventListener('abort', giveUp, { once: true })
  const settled = promise.then(
    () => true,
    () => true,
  )
  try {
    return await Promise.race([settled, late])
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', giveUp)
  }
}
