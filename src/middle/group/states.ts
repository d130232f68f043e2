/**
 * Seals the `requestState` of a server together with its context (MCP 2026-07-28, basic/patterns/mrtr). So the state of
 * one server never reaches another server or another person's call.
 */

import { digest } from '../../base/crypto/digest.js'
import type { SealKey } from '../../base/crypto/seal.js'
import { TextSealer } from '../../base/crypto/text-sealer.js'
import { Fault } from '../../base/fault/fault.js'
import { canonical } from '../../base/rpc/canonical.js'
import { edit, type Json, type Payload, write } from '../../base/rpc/splice.js'
import type { Call } from '../../mcp/protocol/call.js'
import { stateOf } from '../../mcp/protocol/input.js'

/** Milliseconds within which a client must answer. Servers and the halves of the bridge have shorter limits. */
const LIFETIME = 3_600_000

/** The context of a state. */
interface Belonging {
  /** The call, as the client sent it. */
  call: Call
  server: string
  /** The server's name of the target. */
  name: string
}

export class States {
  readonly #group: string
  readonly #sealer: TextSealer

  constructor(group: string, keys: readonly SealKey[]) {
    this.#group = group
    this.#sealer = new TextSealer(keys, 'group-state')
  }

  /** A server's question with its state sealed, if it has one. */
  sealed(input: Payload, { call, server, name }: Belonging): Payload {
    const state = stateOf(input)
    if (state === undefined) return input
    const fields = {
      g: this.#group,
      s: server,
      n: digest(name),
      m: call.method,
      p: this.#sealer.hash(call.principal),
      d: digestOf(call),
      e: Date.now() + LIFETIME,
    }
    return edit(input, { requestState: this.#sealer.seal(fields, state) })
  }

  /** The state of the server. Throws a Fault if the group did not seal it, or sealed it for another call. */
  opened(state: Json, { call, server, name }: Belonging): Json | undefined {
    const carried = this.#sealer.open(state)
    if (!carried) throw invalid('requestState is invalid: this bridge did not issue it, or has changed its key since')
    const { g, s, n, m, p, d, e } = carried.fields
    const isOfCaller = this.#sealer.standsFor(p, call.principal)
    if (!isOfCaller) call.foreign?.('foreignState')
    const isOfCall =
      g === this.#group && s === server && n === digest(name) && m === call.method && d === digestOf(call)
    if (!isOfCall || !isOfCaller) throw invalid('requestState belongs to another call')
    if (typeof e !== 'number' || e < Date.now()) throw invalid('requestState has expired')
    return carried.text
  }
}

/** A digest of the parameters, independent of member order and white space. */
function digestOf({ params }: Call): string {
  return digest(canonical(write(params)))
}

function invalid(message: string): Fault {
  return new Fault('invalidState', message)
}
