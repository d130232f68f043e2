/** What the inspector learns of the calls of clients: their ids, and which call continues which. One for the whole bridge. */
import type { Witness } from '../ports/seen.js'
import { own } from '../rpc/own.js'
import type { Json } from '../rpc/splice.js'

/** Most calls that are remembered because they wait for answers of their clients. */
const MAX_ASKING = 1_000
/** Characters of a `requestState` that identify it, together with its length. */
const ENOUGH = 256

/** Tells a witness, and knows which call is which. */
export class Watch {
  readonly witness: Witness
  #calls = 0
  /** Calls that ended with a question, by the `requestState` that the client has to send back. */
  readonly #asking = new Map<string, string>()

  constructor(witness: Witness) {
    this.witness = witness
  }

  /** The id of a new call. */
  begin(): string {
    return `c${++this.#calls}`
  }

  /** Notes that the answer to a call asks its client something. */
  asks(call: string, state: Json): void {
    const [oldest] = this.#asking.keys()
    if (oldest !== undefined && this.#asking.size >= MAX_ASKING) this.#asking.delete(oldest)
    this.#asking.set(keyOf(state), call)
  }

  /** The call that a call with this `requestState` continues; undefined if it is not known. */
  continued(state: Json): string | undefined {
    return this.#asking.get(keyOf(state))
  }
}

function keyOf(state: Json): string {
  return own(`${state.length} ${state.slice(-ENOUGH)}`)
}
