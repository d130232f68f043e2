/** What the halves hand to the transports: the messages that answer one request, one by one. */
import type { Reply } from '../protocol/call.js'
import type { Fault } from '../protocol/fault.js'
import type { Wire } from '../rpc/source.js'
import { value } from '../rpc/splice.js'

/** One message of the answer. The last one ends it, and with it comes the HTTP status that the answer has by itself. */
export interface Frame {
  text: Wire
  last?: {
    status: number
    fault?: Fault
    /** The client has taken the request back: no answer is owed. */
    cancelled?: boolean
  }
}

/** Progress has to increase with each notification (MCP, basic/utilities/progress): what does not, is dropped. */
export function onlyIncreasing(): (reply: Reply & { kind: 'notification' }) => boolean {
  let last = Number.NEGATIVE_INFINITY
  return ({ method, params }) => {
    if (method !== 'notifications/progress') return true
    const progress = value(params, 'progress')
    if (typeof progress !== 'number' || progress <= last) return false
    last = progress
    return true
  }
}

/** What a promise comes to, or undefined where it takes longer. */
export function within<T>(milliseconds: number, promise: Promise<T>): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve(undefined), milliseconds)
    promise.then(
      (value) => {
        clearTimeout(timer)
        resolve(value)
      },
      (error: unknown) => {
        clearTimeout(timer)
        reject(error)
      },
    )
  })
}
