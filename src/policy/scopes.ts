/**
 * Restricts tools to callers with the required scopes. Tools that a caller may not call are hidden, unless it can get
 * further scopes: it would never request the scopes of a hidden tool. Callers whose scopes are unknown count as having
 * none, and may call tools that require none.
 */

import { Fault } from '../fault/fault.js'
import type { Call, Policy } from '../protocol/call.js'
import { CALL_TOOL } from '../protocol/methods.js'
import { edit, mapElements, type Payload, value } from '../rpc/splice.js'
import { printable } from '../texts/printable.js'
import { refuse, toolOf } from './refusal.js'

/** Which scopes tools require and principals have. */
export interface ScopesOptions {
  /** All scopes that are required to see and call a tool, by the manifest or the configuration. */
  required(tool: string): readonly string[]
  /** The scopes of a principal whose calls carry none; undefined if unknown. */
  scopesOf(principal: string): ReadonlySet<string> | undefined
}

export function scopes({ required, scopesOf }: ScopesOptions): Policy {
  const lacking = (tool: string, { principal, grant }: Call): readonly string[] => {
    const own = grant ? grant.scopes : scopesOf(principal)
    return required(tool).filter((scope) => !own?.has(scope))
  }

  return (next) =>
    async function scopedCall(call) {
      const { method, grant } = call
      if (method === CALL_TOOL) {
        const tool = toolOf(call)
        const missing = tool === undefined ? undefined : lacking(tool, call)
        if (tool === undefined || missing === undefined) {
          const text =
            'The call has no valid tool name, so its required scopes are unknown. Send params.name once, in lower case'
          return refuse(call, { reason: 'insufficient_scope', text })
        }
        if (missing.length > 0) {
          const scope = missing.join(' ')
          const text = `"${printable(tool)}" cannot be called without the scope ${printable(scope, 500)}: this caller does not have it`
          if (grant?.extensible && !grant.inBand) throw insufficient(text, grant.scopes, required(tool))
          return refuse(call, { reason: 'insufficient_scope', text, data: { scope } })
        }
      }
      const last = await next(call)
      if (last.kind !== 'result' || method !== 'tools/list' || grant?.extensible) return last
      return { ...last, result: without(last.result, (tool) => lacking(tool, call).length > 0) }
    }
}

/**
 * The Fault for a caller that can get further scopes. It names those that it has, too: revisions before 2026-07-28
 * request exactly what a challenge names.
 */
function insufficient(text: string, granted: ReadonlySet<string>, needed: readonly string[]): Fault {
  const scope = [...new Set([...granted, ...needed])].join(' ')
  return new Fault('insufficientScope', text, { data: { scope } })
}

/** A page without hidden tools. It may become empty, because further pages may follow. */
function without(page: Payload, hidden: (tool: string) => boolean): Payload {
  const tools = mapElements(page, 'tools', (tool) => {
    const name = value(tool, 'name')
    return typeof name === 'string' && !hidden(name) ? tool : []
  })
  return tools === undefined ? page : edit(page, { tools })
}
