/** Selects the events for `mcp-bridge tail --json`: all events of matching calls, including calls that match late. */
import type { CallFilter } from '../filter.js'
import { isRunning } from '../phases.js'
import type { RecordedEvent } from '../recorder/events.js'
import type { CallView } from '../views.js'

export class MatchingEvents {
  readonly #filter: CallFilter
  /** The number of the last printed event of a call. */
  readonly #printed = new WeakMap<CallView, number>()

  constructor(filter: CallFilter) {
    this.#filter = filter
  }

  /** The events to print after this one. Until a call matches, its view keeps its events. */
  of(seen: RecordedEvent, call: CallView | undefined): RecordedEvent[] {
    const { matches, isEmpty, isByEnd } = this.#filter
    if (isEmpty) return [seen]
    if (!call || (isByEnd && isRunning(call)) || !matches(call)) return []
    const printed = this.#printed.get(call) ?? 0
    this.#printed.set(call, seen.seq)
    const earlier = call.events.filter(({ seq }) => seq > printed && seq < seen.seq)
    return [...earlier, seen]
  }
}
