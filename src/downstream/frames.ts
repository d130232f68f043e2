/** What the halves hand to the transports: the messages that answer one request, one by one. */
import type { Reply } from '../protocol/call.js'
import { Fault } from '../protocol/fault.js'
import { error as errorMessage, type Id } from '../rpc/message.js'
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

/** What the client is told in place of an answer that there is no memory for. The server has acted on the request. */
export function answerLost(id: Id): string {
  const said = 'The bridge has no memory left for the answer (limits.memory); the server has acted on the request'
  return errorMessage(id, new Fault('answerLost', said).toRpcError())
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
