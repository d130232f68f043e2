/** Calls that failed because their client had not declared what the server asked for (MCP 2026-07-28, basic/index, error codes). */
import type { Reply } from '../protocol/call.js'
import { Fault } from '../protocol/fault.js'
import { EMPTY, edit, raw, value, write } from '../rpc/splice.js'
import type { Refusal } from './legacy/server-requests.js'

/**
 * Throws the Fault `missingCapability` where a call has failed and something was refused to the server while it ran. A
 * failed call is an error, or a result with `isError`: the high-level class of the first SDK makes a result of every
 * error. What such a result says goes into the `content` of the Fault's data.
 */
export function throwIfRefused(reply: Reply, refusals: readonly Refusal[]): void {
  if (refusals.length === 0) return
  const failed = failureOf(reply)
  if (!failed) return
  const causes = refusals.filter(({ certain, said }) => certain || failed.text.includes(said))
  if (causes.length === 0) return
  const names = [...new Set(causes.map(({ name }) => name))].join(', ')
  const required = Object.fromEntries(causes.map(({ name, needed }) => [name, needed]))
  throw new Fault('missingCapability', `The server needs client capabilities that were not declared: ${names}`, {
    data: { requiredCapabilities: write(edit(EMPTY, required)), ...(failed.content && { content: failed.content }) },
  })
}

function failureOf(reply: Reply): { text: string; content?: string | undefined } | undefined {
  if (reply.kind === 'error') return { text: reply.error.message }
  if (reply.kind !== 'result' || value(reply.result, 'isError') !== true) return undefined
  const content = raw(reply.result, 'content')
  return { text: content ?? '', content }
}
