/** Limits how often tools are called, per principal or in total. Only calls that are sent to the server count. */

import { Fault } from '../../base/fault/fault.js'
import { personOf } from '../../base/texts/principal.js'
import type { Call, Policy } from '../../mcp/protocol/call.js'
import { CALL_TOOL } from '../../mcp/protocol/methods.js'
import { globs, MAX_MATCHED_NAME } from './globs.js'
import { refuse, toolOf } from './refusal.js'
import type { ToolNames } from './tool-names.js'

interface ToolLimit {
  /** A glob of `<server>__<tool>`. */
  tools: string
  per: 'principal' | 'all'
  max: number
  /** Milliseconds. */
  every: number
}

export interface ToolLimitsOptions {
  server: string
  /** The limits now. They can change. */
  limits(): readonly ToolLimit[]
  /** The tools that the server has listed. */
  listed: Pick<ToolNames, 'find'>
  /** Increments the count of a window by name. Resolves to the count, and the milliseconds until the window ends. */
  count(name: string, milliseconds: number): Promise<{ current: number; ttl: number }>
}

interface Rule {
  limit: ToolLimit
  applies(tool: string): boolean
}

function ruleOf(limit: ToolLimit): Rule {
  const isNamed = globs([limit.tools])
  // Globs do not match names that are too long. All limits apply to such a tool.
  return { limit, applies: (tool) => tool.length > MAX_MATCHED_NAME || isNamed(tool) }
}

export function toolLimits({ server, limits, listed, count }: ToolLimitsOptions): Policy {
  let known: readonly ToolLimit[] = []
  let rules: readonly Rule[] = []
  const current = () => {
    const now = limits()
    if (now !== known) rules = now.map(ruleOf)
    known = now
    return rules
  }

  async function exceeded(tool: string, { principal }: Call) {
    for (const [i, { limit, applies }] of current().entries()) {
      if (!applies(tool)) continue
      const { tools, per, max, every } = limit
      const who = per === 'all' ? 'all' : `principal:${personOf(principal)}`
      const { current: used, ttl } = await count(JSON.stringify([i, tools, per, max, every, who]), every)
      if (used > max) return { limit, seconds: Math.max(1, Math.ceil(ttl / 1_000)) }
    }
    return undefined
  }

  return (next) =>
    async function limitedToolCall(call) {
      // The answers of a client continue a call that has been counted.
      if (call.method !== CALL_TOOL || call.answers !== undefined) return next(call)
      const tool = toolOf(call)
      if (tool === undefined) throw new Fault('invalidParams', 'The call has no valid tool name: send params.name once')
      const named = `${server}__${tool}`
      // Another spelling could pass a limit that is for some tools only.
      if (current().some(({ applies }) => !applies(named))) await listed.find(call, tool, next)
      const over = await exceeded(named, call)
      if (!over) return next(call)
      const { limit, seconds } = over
      const text = `Too many calls of ${limit.tools} (at most ${limit.max} in ${limit.every / 1_000} s): try again in ${seconds} s`
      if (call.inBand) return refuse(call, { reason: 'rate_limited', text, data: { retryAfterMs: seconds * 1_000 } })
      throw new Fault('rateLimited', text, { retryAfter: seconds })
    }
}
