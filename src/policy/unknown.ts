/** The error for a name that a caller cannot know: nothing in it tells whether the server has such an item. */
import { Fault } from '../fault/fault.js'
import type { Call } from '../protocol/call.js'
import { ECHOED, printable } from '../texts/printable.js'

const faults = new WeakSet<object>()

/** The Fault of a tool or prompt that is unknown to the caller. */
export function unknownFault(what: 'tool' | 'prompt', name: string): Fault {
  const named = printable(name, ECHOED)
  const fault = new Fault('invalidParams', what === 'tool' ? `Unknown tool: ${named}` : `Unknown prompt: ${named}`)
  faults.add(fault)
  return fault
}

/** Whether an error says that the tool or prompt is unknown. */
export function isOfUnknown(error: unknown): boolean {
  return typeof error === 'object' && error !== null && faults.has(error)
}

/** Throws the Fault of a tool or prompt that is unknown to the caller. It has the name that the client used. */
export function unknownItem(call: Call, what: 'tool' | 'prompt', name: string): never {
  call.log.note({ refused: `unknown_${what}` })
  throw unknownFault(what, call.called ?? name)
}
