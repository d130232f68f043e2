/**
 * Restricts tools to principals with the required scopes. Other tools are hidden from a principal too. A principal
 * whose scopes are unknown has none, and may call tools that require none.
 */

import { printable } from '../printable.js'
import type { Policy } from '../protocol/call.js'
import { edit, mapElements, type Payload, value } from '../rpc/splice.js'
import { refuse, toolOf } from './refusal.js'

/** Which scopes tools require and principals have. */
export interface ScopesOptions {
  /** All scopes that are required to see and call a tool, by the manifest or the configuration. */
  required(tool: string): readonly string[]
  /** The scopes of a principal; undefined if unknown. */
  scopesOf(principal: string): ReadonlySet<string> | undefined
}

export function scopes({ required, scopesOf }: ScopesOptions): Policy {
  const lacking = (tool: string, principal: string): readonly string[] => {
    const own = scopesOf(principal)
    return required(tool).filter((scope) => !own?.has(scope))
  }

  return (next) =>
    async function scopedCall(call) {
      const { method, principal } = call
      if (method === 'tools/call') {
        const tool = toolOf(call)
        const missing = tool === undefined ? undefined : lacking(tool, principal)
        if (tool === undefined || missing === undefined) {
          const text =
            'The call has no valid tool name, so its required scopes are unknown. Send params.name once, in lower case'
          return refuse(call, { reason: 'insufficient_scope', text })
        }
        if (missing.length > 0) {
          const scope = missing.join(' ')
          const text = `"${printable(tool)}" cannot be called without the scope ${printable(scope, 500)}: this caller does not have it`
          return refuse(call, { reason: 'insufficient_scope', text, data: { scope } })
        }
      }
      const last = await next(call)
      if (last.kind !== 'result' || method !== 'tools/list') return last
      return { ...last, result: without(last.result, (tool) => lacking(tool, principal).length > 0) }
    }
}

/** A page without hidden tools. It may become empty: further pages may follow. */
function without(page: Payload, hidden: (tool: string) => boolean): Payload {
  const tools = mapElements(page, 'tools', (tool) => {
    const name = value(tool, 'name')
    return typeof name === 'string' && !hidden(name) ? tool : []
  })
  return tools === undefined ? page : edit(page, { tools })
}
