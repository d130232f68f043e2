/** Counts the open questions to the client of a call. */
import type { RecordedEvent } from './recorder/events.js'

/** The number of open questions after an event, from the number before it. A round sent at once counts as one. */
export function openQuestions(before: number, seen: RecordedEvent): number {
  if (seen.kind === 'question') {
    if (seen.what === 'parked') return before + 1
    return seen.what === 'answered' || seen.what === 'lost' ? Math.max(0, before - 1) : 0
  }
  if (seen.kind !== 'call') return before
  // An answer that passes unread can be a question, without any other event.
  return seen.what === 'ended' && seen.outcome === 'asks' ? Math.max(1, before) : 0
}
