/** How far a server is trusted, asked again for each call: what has been said in the meantime counts at once. */
import type { Standing, ToolList } from '../../ports/trust-status.js'
import { type Facts, judge, type Verdict } from './judge.js'
import type { TrustStore } from './store.js'

export interface StandingOptions {
  store: TrustStore
  /** What is known of the server at this moment, its tools aside. */
  facts(): Omit<Facts, 'tools'>
  /** It is another verdict than the last one. */
  changed?: (verdict: Verdict) => void
  now?: () => number
}

/**
 * Judges a server by the tools that it lists now, and notes what follows from it: which tools a server has that is trusted
 * for its key, and that what somebody approved is not what there is any more.
 */
export function standingOf({ store, facts, changed, now = Date.now }: StandingOptions) {
  let last = ''
  return (tools: ToolList | undefined): Standing => {
    const known = facts()
    const verdict = judge({ ...known, tools }, store, now())
    // What is noted holds in this process at once, and is written when it can be.
    if (verdict.broken) store.withdraw(verdict.broken, verdict.reason).catch(() => {})
    if (verdict.unseen && tools) store.noteTools(known.endpoint, verdict.bound, tools).catch(() => {})
    const said = `${verdict.state} ${verdict.by} ${verdict.reason}`
    if (said !== last) changed?.(verdict)
    last = said
    return verdict
  }
}
