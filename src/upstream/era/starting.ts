/** Sends progress to callers while their call waits for a program to start. */
import type { Call } from '../../protocol/call.js'
import { parseObject } from '../../rpc/splice.js'
import { within } from '../../time.js'

/** Milliseconds until the first progress notification, and between later ones. */
const TELL = { after: 3_000, every: 5_000 }
/** The increment of progress. It is so small that any later progress of the server is greater. */
const STEP = 1e-9

let steps = 0

const isSettled = () => true
const isLate = () => false

/**
 * Waits for `opening`, which a call with progress needs before it can be sent. Tells progress meanwhile, which also
 * resets the call's idle timeout. If the call is given up before `opening` resolves, `unused` gets its value.
 */
export async function starting<T>(call: Call, opening: Promise<T>, unused: (opened: T) => void = () => {}): Promise<T> {
  let waiting = true
  try {
    const settled = opening.then(isSettled, isSettled)
    for (let wait = TELL.after; !(await within(settled, wait, isLate, call.signal)); wait = TELL.every) {
      const params = parseObject(`{"progress":${++steps * STEP},"message":"The server is starting"}`)
      await call.tell({ kind: 'notification', method: 'notifications/progress', params })
    }
    waiting = false
    return await opening
  } finally {
    if (waiting) opening.then(unused).catch(() => {})
  }
}
