/** Puts policies around a handler: the first one named is the first one that a call meets. */
import type { Handler, Policy } from '../protocol/call.js'

export function compose(handler: Handler, ...policies: readonly Policy[]): Handler {
  return policies.reduceRight((next, policy) => policy(next), handler)
}
