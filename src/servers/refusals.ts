/**
 * Reports calls that failed because the client had not declared a capability that the server requires (MCP 2026-07-28,
 * basic/index, error codes).
 */

import { Fault } from '../base/fault/fault.js'
import { type Json, raw, value } from '../base/rpc/splice.js'
import type { Reply } from '../mcp/protocol/call.js'
import type { Refusal } from './exchange.js'

/**
 * Throws the Fault `missingCapability` if a call has failed and a request of the server was refused during it. A failed
 * call is an error or a result with `isError`: `McpServer` of @modelcontextprotocol/sdk 1.x turns errors of tools into
 * such results. Their `content` goes into the data of the Fault.
 */
export function throwIfRefused(reply: Reply, refusals: readonly Refusal[]): void {
  const failed = failureOf(reply)
  if (!failed) return
  const causes = refusals.filter(({ certain, said }) => certain || failed.text.includes(said))
  if (causes.length === 0) return
  const names = [...new Set(causes.map(({ name }) => name))].join(', ')
  const requiredCapabilities = Object.fromEntries(causes.map(({ name, needed }) => [name, parsed(needed)]))
  throw new Fault('missingCapability', `The server requires capabilities that the client did not declare: ${names}`, {
    data: { requiredCapabilities, content: failed.content && parsed(failed.content) },
  })
}

/** What a failed call says: an error, or a result with `isError`. Undefined if the call has not failed. */
export function failureIn(reply: Reply): string | undefined {
  return failureOf(reply)?.text
}

function failureOf(reply: Reply): { text: string; content?: string | undefined } | undefined {
  if (reply.kind === 'error') return { text: reply.error.message }
  if (reply.kind !== 'result' || value(reply.result, 'isError') !== true) return undefined
  const content = raw(reply.result, 'content')
  return { text: content ?? '', content }
}

/** The value of a JSON text; undefined if it is invalid, as strings of large results may be (see `ScanOptions.strict`). */
function parsed(json: Json): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return undefined
  }
}
