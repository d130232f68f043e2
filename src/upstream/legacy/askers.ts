/** Which tools, prompts and resources of a server have been seen to ask something in the middle of a call. */
import type { Call } from '../../protocol/call.js'
import { methodTraits } from '../../protocol/methods.js'
import { value } from '../../rpc/splice.js'

/** Entries, and characters of a name. */
const MAX_ASKERS = 1_000
const MAX_NAME = 256

export class Askers {
  readonly #seen = new Set<string>()

  add(call: Call | undefined): void {
    const key = keyOf(call)
    if (key === undefined || this.#seen.has(key)) return
    const [oldest] = this.#seen
    if (oldest !== undefined && this.#seen.size >= MAX_ASKERS) this.#seen.delete(oldest)
    this.#seen.add(key)
  }

  has(call: Call | undefined): boolean {
    const key = this.#seen.size > 0 ? keyOf(call) : undefined
    return key !== undefined && this.#seen.has(key)
  }
}

/** Undefined for calls that are not remembered. */
function keyOf(call: Call | undefined): string | undefined {
  if (!call) return undefined
  const { named } = methodTraits(call.method)
  if (named === undefined) return undefined
  const name = value(call.params, named)
  return typeof name === 'string' && name.length <= MAX_NAME ? `${call.method} ${name}` : undefined
}
