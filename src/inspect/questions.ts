/** How many questions to the client of a call are open. */
import type { Seen } from '../ports/seen.js'

/** The open questions after an event, if so many were open before. A round that is told at once counts as one. */
export function openQuestions(before: number, seen: Seen): number {
  if (seen.kind === 'question') {
    if (seen.what === 'parked') return before + 1
    return seen.what === 'answered' || seen.what === 'lost' ? Math.max(0, before - 1) : 0
  }
  if (seen.kind !== 'call') return before
  // The answer of a call that passes unchanged can be a question, of which nothing else tells.
  return seen.what === 'ended' && seen.outcome === 'asks' ? Math.max(1, before) : 0
}
