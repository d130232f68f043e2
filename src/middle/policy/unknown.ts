/** The error for a name that a caller cannot know: nothing in it tells whether the server has such an item. */
import { Fault } from '../../base/fault/fault.js'
import type { FaultName } from '../../base/fault/faults.js'
import { ECHOED, printable } from '../../base/texts/printable.js'
import type { Call } from '../../mcp/protocol/call.js'

/** What clients use by its name. */
export type NamedItem = 'tool' | 'prompt' | 'event'

const UNKNOWN: Readonly<Record<NamedItem, { fault: FaultName; text: string; data?: object }>> = {
  tool: { fault: 'invalidParams', text: 'Unknown tool' },
  prompt: { fault: 'invalidParams', text: 'Unknown prompt' },
  event: { fault: 'noSuchEvent', text: 'Unknown type of events', data: { kind: 'event' } },
}

const faults = new WeakSet<object>()

/** The Fault of an item that is unknown to the caller. */
export function unknownFault(what: NamedItem, name: string): Fault {
  const { fault, text, data = {} } = UNKNOWN[what]
  const unknown = new Fault(fault, `${text}: ${printable(name, ECHOED)}`, { data: { ...data } })
  faults.add(unknown)
  return unknown
}

/** Whether an error says that the item is unknown. */
export function isOfUnknown(error: unknown): boolean {
  return typeof error === 'object' && error !== null && faults.has(error)
}

/** Throws the Fault of an item that is unknown to the caller. It has the name that the client used. */
export function unknownItem(call: Call, what: NamedItem, name: string): never {
  call.log.note({ refused: `unknown_${what}` })
  throw unknownFault(what, call.called ?? name)
}
