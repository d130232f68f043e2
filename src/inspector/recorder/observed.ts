/** Records the events that metrics count, except calls: these record themselves. */
import type { BridgeEvent, Observe } from '../../mcp/ports/events.js'
import { UNRECORDED } from '../../mcp/ports/recorder.js'
import type { RecordEvent, TraceEvent } from './events.js'

export function observing(record: RecordEvent): Observe {
  return (event) => {
    const trace = traceOf(event)
    if (trace) record(trace)
  }
}

function traceOf(event: BridgeEvent): TraceEvent | undefined {
  switch (event.kind) {
    case 'question':
      return event.call === UNRECORDED ? undefined : named(event)
    case 'session':
      return named(event)
    case 'verdict':
    case 'child':
      return event
    case 'member': {
      const { group, server, what, why } = event
      const text = what === 'back' ? `${server} answers again` : `${server} does not answer: ${why}`
      return { kind: 'config', text: `group ${group}: ${text}` }
    }
    case 'refusal': {
      const { server, status, reason: why, said, path, from } = named(event)
      return { kind: 'refused', status, why, said, path, from, ...(server !== '' && { server }) }
    }
    case 'discovery':
      return { kind: 'trust', server: event.server, text: `${event.phase}: ${event.reason}` }
    // Calls record themselves.
    case 'call':
    case 'downlevelled':
    case 'cache':
    case 'approval':
    case 'cut':
    case 'forwarded':
      return undefined
  }
}

/** The event; for one of a group, with the group in place of the server. */
function named<E extends { server: string; group?: string | undefined }>({ group, ...event }: E): Omit<E, 'group'> {
  return group === undefined ? event : { ...event, server: group }
}
