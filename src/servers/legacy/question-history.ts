/** Remembers tools, prompts and resources during whose calls the server has sent requests to the client. */
import { BoundedSet } from '../../base/limits/bounded.js'
import { stringUnder } from '../../base/rpc/splice.js'
import type { Call } from '../../mcp/protocol/call.js'
import { methodTraits } from '../../mcp/protocol/methods.js'

/** The maximum number of entries, and of characters in a name. */
const MAX_ASKERS = 1_000
const MAX_ASKER_NAME = 256

type Named = Partial<Pick<Call, 'method' | 'params'>>

export class QuestionHistory {
  readonly #seen = new BoundedSet<string>(MAX_ASKERS)

  add(call: Named | undefined): void {
    const key = keyOf(call)
    if (key !== undefined) this.#seen.add(key)
  }

  has(call: Named | undefined): boolean {
    const key = this.#seen.size > 0 ? keyOf(call) : undefined
    return key !== undefined && this.#seen.has(key)
  }
}

/** The key of what a call names; undefined for calls that are not remembered. */
function keyOf(call: Named | undefined): string | undefined {
  if (call?.method === undefined || !call.params) return undefined
  const { named } = methodTraits(call.method)
  if (named === undefined) return undefined
  const name = stringUnder(call.params, named)
  return typeof name === 'string' && name.length <= MAX_ASKER_NAME ? `${call.method} ${name}` : undefined
}
