/** Frames: the messages that answer one request, which the halves pass to the transports. */

import { Fault } from '../base/fault/fault.js'
import { type Batch, error as errorMessage, type Id } from '../base/rpc/message.js'
import type { Wire } from '../base/rpc/source.js'
import { value } from '../base/rpc/splice.js'
import type { PassedEvent } from '../base/rpc/sse.js'
import type { Cancelled } from '../mcp/ports/outcome.js'
import type { ServerNotification } from '../mcp/protocol/call.js'

/** How an answer ends: with its HTTP status. A transport that uses another status changes it. */
export interface AnswerEnd {
  status: number
  /** Headers of the server's answer, of which some go on to the client. */
  headers?: Readonly<Record<string, string | string[] | undefined>> | undefined
  /** The array in the server's answer that has it as it is sent. */
  array?: Batch | undefined
  fault?: Fault | undefined
  /** Set if the client gave the request up, so that no answer is required. */
  cancelled?: Cancelled | undefined
}

/** One message. The last one is the answer. */
export interface Frame {
  text: Wire
  /**
   * In a client's own session with a server over HTTP: the event that has brought the message, or has none; or the status with
   * which the server has ended the stream before the answer, which may come on another one.
   */
  event?: PassedEvent | number | undefined
  last?: AnswerEnd
}

export interface LastFrame extends Frame {
  last: AnswerEnd
}

/**
 * Takes the frames of one answer, in order. Returns a promise if the client is slow: it resolves when there is room for
 * more, or when the client has gone. Undefined if there is room now.
 */
export type Send = (frame: Frame) => Promise<void> | undefined

/** The error that replaces an answer for which there is no memory. The server has acted on the request. */
export function answerLost(id: Id | undefined): string {
  const message =
    'The bridge has no memory left for the answer (limits.memory); the server executed the request, but its response was dropped'
  return errorMessage(id, new Fault('answerLost', message).toRpcError())
}

/**
 * A filter for the notifications of one call: progress that does not increase is dropped (MCP,
 * basic/utilities/progress).
 */
export function onlyIncreasing(): (notification: ServerNotification) => boolean {
  let last = Number.NEGATIVE_INFINITY
  return ({ method, params }) => {
    if (method !== 'notifications/progress') return true
    const progress = value(params, 'progress')
    if (typeof progress !== 'number' || progress <= last) return false
    last = progress
    return true
  }
}
