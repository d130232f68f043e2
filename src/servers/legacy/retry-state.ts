/**
 * Seals and opens `requestState` (MCP 2026-07-28, basic/patterns/mrtr), which a client keeps while its call is parked.
 * A state is valid only for the same call, principal and server.
 */

import { digest } from '../../base/crypto/digest.js'
import { Sealer } from '../../base/crypto/seal.js'
import { Fault } from '../../base/fault/fault.js'
import { canonical } from '../../base/rpc/canonical.js'
import { type Json, write } from '../../base/rpc/splice.js'
import { OwnedByReplica } from '../../mcp/ports/replicas.js'
import type { Call } from '../../mcp/protocol/call.js'
import type { ServerOptions } from '../options.js'

/** For which server and with which keys something is sealed. */
export interface SealingOptions extends Pick<ServerOptions, 'name'> {
  parked: Pick<ServerOptions['parked'], 'keys'>
  replicas?: Pick<NonNullable<ServerOptions['replicas']>, 'id'> | undefined
}

/** The sealed fields. Their names are short because every round carries them. */
export interface RetryState {
  /** The id of the parked call. */
  x: string
  /** The id of the replica that owns the call, if there are several. */
  o?: string
  /** The number of the round, from 1. */
  r: number
  /** The server's name. */
  up: string
  /** A hash of the principal. */
  p: string
  /** The method. */
  m: string
  /** A digest of the parameters. */
  d: string
  /** When it expires, in milliseconds of the wall clock (`Date.now()`). */
  exp: number
}

export class RetryStates {
  readonly #options: SealingOptions
  readonly #sealer: Sealer

  constructor(options: SealingOptions) {
    this.#options = options
    this.#sealer = new Sealer(options.parked.keys ?? [], 'rs')
  }

  /** Seals the state for one round of a call. `lifetime` is in milliseconds. Returns it as JSON. */
  seal(call: Call, { id, round, lifetime }: { id: string; round: number; lifetime: number }): Json {
    const { name: up, replicas } = this.#options
    const fields = {
      x: id,
      ...(replicas && { o: replicas.id }),
      r: round,
      up,
      p: this.#sealer.hash(call.principal),
      m: call.method,
      d: digestOf(call),
      exp: Date.now() + lifetime,
    }
    return JSON.stringify(this.#sealer.seal(fields))
  }

  /**
   * Opens a state. Throws a Fault if the bridge did not seal it, or sealed it for another call. Does not check its
   * expiry.
   */
  open(json: Json, call: Call): RetryState {
    if (!json.startsWith('"')) throw new Fault('invalidParams', 'requestState has to be a string')
    const state = this.#sealer.openJson(json) as RetryState | undefined
    if (!state) throw invalid('requestState is invalid: this bridge did not issue it, or has changed its key since')
    if (!this.#sealer.standsFor(state.p, call.principal)) call.foreign?.('foreignState')
    if (!this.#fits(state, call)) throw invalid('requestState belongs to another call')
    return state
  }

  /** Throws OwnedByReplica if the state of a retry is valid and another replica owns its call. */
  checkOwner(call: Call): void {
    const replica = this.#options.replicas?.id
    if (replica === undefined || call.answers?.state === undefined) return
    const state = this.#sealer.openJson(call.answers.state) as RetryState | undefined
    if (state?.o === undefined || state.o === replica) return
    if (state.exp > Date.now() && this.#fits(state, call)) throw new OwnedByReplica(state.o, 'call')
  }

  #fits(state: RetryState, call: Call): boolean {
    return (
      state.up === this.#options.name &&
      this.#sealer.standsFor(state.p, call.principal) &&
      state.m === call.method &&
      state.d === digestOf(call)
    )
  }
}

/** A digest of a call's parameters. It does not depend on the order of members or on whitespace. */
function digestOf(call: Call): string {
  return digest(canonical(write(call.params)))
}

/** The Fault for a `requestState` that cannot be used. */
export function invalid(message: string): Fault {
  return new Fault('invalidState', message)
}
