/**
 * Keeps tools from those who do not have the scopes for them. What somebody may not call is not shown to them either. Whom
 * nothing is known of has no scope, and may call what wants none.
 */

import { printable } from '../printable.js'
import type { Policy, Reply } from '../protocol/call.js'
import { edit, mapElements, type Payload, value } from '../rpc/splice.js'
import { refuse, toolOf } from './refusal.js'

export interface ScopesOptions {
  /** All the scopes that it takes to see and to call a tool, as the manifest or the configuration says. */
  required(tool: string): readonly string[]
  /** The scopes of a principal; undefined for one of whom nothing is known. */
  scopesOf(principal: string): ReadonlySet<string> | undefined
}

export function scopes({ required, scopesOf }: ScopesOptions): Policy {
  const lacking = (tool: string, principal: string): readonly string[] => {
    const own = scopesOf(principal)
    return required(tool).filter((scope) => !own?.has(scope))
  }

  return (next) =>
    async function* scopedCall(call): AsyncIterable<Reply> {
      const { method, principal } = call
      if (method === 'tools/call') {
        const tool = toolOf(call)
        const missing = tool === undefined ? undefined : lacking(tool, principal)
        if (tool === undefined || missing === undefined) {
          const text = 'The call names no tool, or not in the one way to name it, so that nobody can tell what it takes'
          yield refuse(call, { reason: 'insufficient_scope', text })
          return
        }
        if (missing.length > 0) {
          const scope = missing.join(' ')
          const text = `"${printable(tool)}" cannot be called without the scope ${printable(scope, 500)}, which this caller does not have`
          yield refuse(call, { reason: 'insufficient_scope', text, data: { scope } })
          return
        }
      }
      for await (const reply of next(call)) {
        if (reply.kind !== 'result' || method !== 'tools/list') yield reply
        else yield { ...reply, result: without(reply.result, (tool) => lacking(tool, principal).length > 0) }
      }
    }
}

/** A page without some of its tools. It stays a page, though perhaps one of none: there may be more behind it. */
function without(page: Payload, hidden: (tool: string) => boolean): Payload {
  const tools = mapElements(page, 'tools', (tool) => {
    const name = value(tool, 'name')
    return typeof name === 'string' && !hidden(name) ? tool : []
  })
  return tools === undefined ? page : edit(page, { tools })
}
