/** Determines the outcome of a call from its answer, for the log, the metrics, the traces and the inspector. */

import { withoutCredentials } from '../base/credentials/credentials.js'
import { Fault } from '../base/fault/fault.js'
import type { Response } from '../base/rpc/message.js'
import { EMPTY, type Payload, raw } from '../base/rpc/splice.js'
import type { UnreadResponse } from '../base/rpc/unread-response.js'
import type { Cancelled, Outcome } from '../mcp/ports/outcome.js'
import type { Final, Reply, RpcError } from '../mcp/protocol/call.js'
import type { AnswerEnd } from './frames.js'

/** The outcome of a call that was answered. */
export type AnsweredOutcome = Exclude<Outcome, 'cancelled' | 'fault'>

/** Why a call has no answer of the server. */
export interface FailedCall {
  fault: Fault
  /** Set if the client gave the call up, or ended its session. */
  cancelled?: Cancelled | undefined
}

/** The error that answers a failed call. */
export function failureError({ fault, cancelled }: FailedCall, draftErrorCodes = false): RpcError {
  return lastOf({ fault, cancelled }).cancelled
    ? { code: -32603, message: 'Request cancelled' }
    : fault.toRpcError(draftErrorCodes)
}

/** How a failed call ends for its client. One that has ended its session by another request waits for an answer all the same. */
export function lastOf({ fault, cancelled }: FailedCall): AnswerEnd {
  return { status: 200, fault, cancelled: cancelled === 'session' ? undefined : cancelled }
}

/** The outcome of a reply. A tool result with `isError` is `tool_error`. */
export function outcomeOf(reply: Final): AnsweredOutcome {
  if (reply.kind === 'error') return 'error'
  if (reply.kind === 'input') return 'asks'
  return (reply.isToolError ?? raw(reply.result, 'isError') === 'true') ? 'tool_error' : 'ok'
}

/**
 * The fields of a span at its end. They contain only the code of a server's error, not its text. They contain the message
 * of a fault, as the log does, which may include the text of an HTTP refusal.
 */
export function endOf(last: Reply | Fault | undefined): Record<string, unknown> {
  if (last === undefined) return { outcome: 'cancelled' }
  if (last instanceof Fault) {
    const { fault, blame, message, row } = last
    return { outcome: 'fault', fault, blame, why: withoutCredentials(message), code: row.code }
  }
  if (last.kind === 'notification') return { outcome: 'ok' }
  return { outcome: outcomeOf(last), ...(last.kind === 'error' && { code: last.error.code }) }
}

/** The reply in a JSON-RPC response that passes unchanged, with only what its outcome depends on. */
export function replyIn(response: Response | UnreadResponse): Final {
  if ('unread' in response) return new UnreadReply(response)
  const { outcome } = response
  const payload = outcome.payload ?? EMPTY
  if (outcome.kind === 'result') {
    const asks = raw(payload, 'resultType') === '"input_required"'
    return { kind: asks ? 'input' : 'result', result: payload }
  }
  // A string would give NaN, valid or not.
  const code = Number(raw(payload, 'code') ?? Number.NaN)
  return { kind: 'error', error: { code: Number.isFinite(code) ? code : -32603, message: '' } }
}

/** A large result: its outcome is known, and the rest is read only if somebody needs it. See `UnreadResponse` about its getter. */
class UnreadReply {
  readonly kind: 'input' | 'result'
  readonly isToolError: boolean
  declare readonly result: Payload
  readonly #response: UnreadResponse

  static readonly #result: PropertyDescriptor & ThisType<UnreadReply> = {
    enumerable: true,
    get() {
      return this.#response.outcome.payload ?? EMPTY
    },
  }

  constructor(response: UnreadResponse) {
    const { ended } = response.unread
    this.kind = ended === 'input' ? 'input' : 'result'
    this.isToolError = ended === 'tool error'
    this.#response = response
    Object.defineProperty(this, 'result', UnreadReply.#result)
  }
}
