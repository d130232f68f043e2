/** Wraps a handler in policies, in order. A call meets the first policy first. */
import type { Handler, Policy } from '../../mcp/protocol/call.js'

/** The handler wrapped in the policies, the first one outermost. */
export function compose(handler: Handler, ...policies: readonly Policy[]): Handler {
  return policies.reduceRight((next, policy) => policy(next), handler)
}
