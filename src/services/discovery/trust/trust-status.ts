/** The trust status of a server, determined for each call, so that new decisions count at once. */
import type { ToolList, TrustStatus } from '../../../mcp/ports/trust-status.js'
import { type Facts, judge, type TrustVerdict } from './judge.js'
import type { TrustStore } from './store.js'

/** The server, and the store. */
export interface TrustStatusOptions {
  store: TrustStore
  /** What is known of the server now, except its tools. */
  facts(): Omit<Facts, 'tools'>
  /** Called when the verdict changes. */
  changed?: (verdict: TrustVerdict) => void
  now?: () => number
}

/**
 * Returns a function that judges a server by its current tools. It records the tools of servers that are trusted for
 * their key, and withdraws approvals that the tools no longer match.
 */
export function trustStatusOf({ store, facts, changed, now = Date.now }: TrustStatusOptions) {
  let last = ''
  return (tools: ToolList | undefined): TrustStatus => {
    const known = facts()
    const verdict = judge({ ...known, tools }, store, now())
    // Counts in this process at once; the file is written when possible.
    if (verdict.broken) store.withdraw(verdict.broken, verdict.reason).catch(() => {})
    if (verdict.unseen && tools) store.noteTools(known.endpoint, verdict.bound, tools).catch(() => {})
    const said = `${verdict.state} ${verdict.by} ${verdict.reason}`
    if (said !== last) changed?.(verdict)
    last = said
    return verdict
  }
}
