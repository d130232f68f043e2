/** The error for a name that a caller cannot know: nothing in it tells whether the server has such an item. */
import { Fault } from '../fault/fault.js'
import type { Call } from '../protocol/call.js'
import { ECHOED, printable } from '../texts/printable.js'

/** Throws the Fault of a tool or prompt that is unknown to the caller. */
export function unknownItem(call: Call, what: 'tool' | 'prompt', name: string): never {
  call.log.note({ refused: `unknown_${what}` })
  const named = printable(name, ECHOED)
  throw new Fault('invalidParams', what === 'tool' ? `Unknown tool: ${named}` : `Unknown prompt: ${named}`)
}
