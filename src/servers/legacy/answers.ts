/** What a legacy server gets for a request to its client: the client's answer, none, or progress until then. */

import type { RpcError } from '../../base/rpc/message.js'
import { type Json, objectIn, type Payload, raw, write } from '../../base/rpc/splice.js'
import type { LegacyRevision } from '../../mcp/protocol/eras.js'
import { lowerAnswer } from '../../mcp/protocol/input.js'
import type { ServerQuestion } from '../exchange.js'

/** Milliseconds between progress notifications to a server that waits for an answer. */
export const PROGRESS_EVERY = 15_000

/** The client's answer, for a server of this revision. */
export function answerTo({ request: { method } }: ServerQuestion, answer: Payload, revision: LegacyRevision) {
  const lowered = lowerAnswer(method, answer, revision)
  return lowered
    ? write(lowered)
    : { code: -32603, message: "The client's answer cannot be expressed in the protocol revision of the session" }
}

/** The answer for the server if the client does not answer. */
export function noAnswerTo({ request: { method } }: ServerQuestion): Json | RpcError {
  if (method === 'elicitation/create') return '{"action":"cancel"}'
  if (method === 'sampling/createMessage') return { code: -1, message: 'The request was rejected' }
  return { code: -32603, message: 'The client did not answer' }
}

/** The params of progress with which the server keeps waiting for the client; undefined if it wants none. */
export function progressOf({ request: { params } }: ServerQuestion, progress: number): Json | undefined {
  const meta = typeof params === 'string' ? undefined : objectIn(params, '_meta')
  const progressToken = meta && raw(meta, 'progressToken')
  return progressToken === undefined ? undefined : `{"progressToken":${progressToken},"progress":${progress}}`
}
