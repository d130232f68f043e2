/** Replies that the bridge gives instead of the server, in the form that clients and models read. */

import { parseObject } from '../../base/rpc/splice.js'
import type { Call, Final } from '../../mcp/protocol/call.js'
import { OF_BRIDGE } from '../../mcp/protocol/meta.js'
import { CALL_TOOL } from '../../mcp/protocol/methods.js'
import { stringIn } from './unambiguous.js'

export interface CallRefusal {
  /** A stable word, for programs. */
  reason: string
  /** One or two sentences, for people and models. */
  text: string
  /** Further details for programs. */
  data?: Readonly<Record<string, unknown>>
}

/**
 * The reply to a refused call. Tool calls get a result with `isError`, because models see only results; others get an
 * error.
 */
export function refuse(call: Call, { reason, text, data = {} }: CallRefusal): Final {
  call.log.note({ refused: reason })
  if (call.method !== CALL_TOOL)
    return {
      kind: 'error',
      error: { code: -32603, message: text, data: JSON.stringify({ reason, outcome: 'not_executed', ...data }) },
    }
  const result = { content: [{ type: 'text', text }], isError: true, _meta: { [OF_BRIDGE + reason]: data } }
  return { kind: 'result', result: parseObject(JSON.stringify(result)) }
}

/**
 * The tool that a call names. Undefined if the name is missing or ambiguous: with duplicate members, some programs use
 * the first one, and some ignore case.
 */
export function toolOf({ params }: Call): string | undefined {
  return stringIn(params, 'name')
}
