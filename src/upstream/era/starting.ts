/** Tells callers who want to hear of progress that their call waits for a program to start. */
import type { Call, Reply } from '../../protocol/call.js'
import { parseObject } from '../../rpc/splice.js'
import { within } from '../../time.js'

/** Milliseconds until a caller is told first, and from then on. */
const TELL = { after: 3_000, every: 5_000 }
/** What progress grows by: so little that whatever the server says later is more. */
const STEP = 1e-9

let steps = 0

const isSettled = () => true
const isLate = () => false

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
    const settled = opening.then(isSettled, isSettled)
    for (let wait = TELL.after; !(await within(settled, wait, isLate, call.signal)); wait = TELL.every) {
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
