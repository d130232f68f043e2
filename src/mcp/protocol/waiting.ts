/** What a client is told while its call waits, if it wants to know: progress without an end, and lines of a log. */
import { parseObject } from '../../base/rpc/splice.js'
import type { ServerNotification } from './call.js'

/** Milliseconds until the first notification, and between later ones. */
export const TELL_WAITING = { after: 3_000, every: 5_000 }
/** The increment of progress, so small that any later progress of the server is greater. */
const STEP = 1e-9

let steps = 0

/** Progress that is greater than all that was told before. */
export function waitingProgress(message: string): ServerNotification {
  const params = { progress: ++steps * STEP, message }
  return { kind: 'notification', method: 'notifications/progress', params: parseObject(JSON.stringify(params)) }
}

/** A line of the log of the bridge itself. */
export function waitingLog(data: string): ServerNotification {
  const params = { level: 'info', logger: 'mcp-bridge', data }
  return { kind: 'notification', method: 'notifications/message', params: parseObject(JSON.stringify(params)) }
}
