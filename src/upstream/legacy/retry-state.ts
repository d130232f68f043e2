/**
 * What a client keeps of a call that waits for it: the sealed `requestState` (MCP 2026-07-28, basic/patterns/mrtr), which leads
 * back to that very call of that very caller, and to nothing else.
 */
import { OwnedByReplica } from '../../ports/replicas.js'
import type { Call } from '../../protocol/call.js'
import { Fault } from '../../protocol/fault.js'
import { canonical } from '../../rpc/canonical.js'
import { type Json, write } from '../../rpc/splice.js'
import { digest, newKey, Sealer, type SealKey } from '../../seal.js'

export interface RetryStatesOptions {
  /** The server that the calls are with: a state leads to no other. */
  server: string
  /** The first one seals, all of them open; one of our own by default. */
  keys?: readonly SealKey[]
  /** This replica, where there are others that a state may lead to. */
  replica?: string | undefined
}

/** What a state says. */
export interface RetryState {
  /** The parked call. */
  x: string
  /** The replica that has the call, where there are several. */
  o?: string
  /** The round of questions. */
  r: number
  /** The server. */
  up: string
  /** Stands for the principal. */
  p: string
  /** The method, and a digest of the parameters. */
  m: string
  d: string
  /** When it expires, by the time of day. */
  exp: number
}

export class RetryStates {
  readonly #options: RetryStatesOptions
  readonly #sealer: Sealer

  constructor(options: RetryStatesOptions) {
    this.#options = options
    this.#sealer = new Sealer(options.keys ?? [newKey()], 'rs')
  }

  /** The state for one round of a call, as the client gets it; it holds for so many milliseconds. */
  seal(call: Call, { id, round, lifetime }: { id: string; round: number; lifetime: number }): Json {
    const { server, replica } = this.#options
    const fields = {
      x: id,
      ...(replica !== undefined && { o: replica }),
      r: round,
      up: server,
      p: this.#sealer.hash(call.principal),
      m: call.method,
      d: digestOf(call),
      exp: Date.now() + lifetime,
    }
    return JSON.stringify(this.#sealer.seal(fields))
  }

  /** Reads a state. Throws a Fault where it is not one of ours for this very call. */
  open(json: Json, call: Call): RetryState {
    const text = JSON.parse(json) as unknown
    if (typeof text !== 'string') throw new Fault('invalidParams', 'requestState has to be a string')
    const state = this.#sealer.open(text) as RetryState | undefined
    if (!state) throw invalid('requestState is not one that was given out here')
    if (!this.#fits(state, call)) throw invalid('requestState belongs to another call')
    return state
  }

  /** Throws OwnedByReplica where a retry leads to a call that another replica has, and holds in all other ways. */
  checkOwner(call: Call): void {
    const { replica } = this.#options
    if (replica === undefined || call.answers?.state === undefined) return
    const text = JSON.parse(call.answers.state) as unknown
    const state = typeof text === 'string' ? (this.#sealer.open(text) as RetryState | undefined) : undefined
    if (state?.o === undefined || state.o === replica) return
    if (state.exp > Date.now() && this.#fits(state, call)) throw new OwnedByReplica(state.o, 'call')
  }

  #fits(state: RetryState, call: Call): boolean {
    return (
      state.up === this.#options.server &&
      this.#sealer.standsFor(state.p, call.principal) &&
      state.m === call.method &&
      state.d === digestOf(call)
    )
  }
}

/** What the parameters of a call come to, however they are written. */
function digestOf(call: Call): string {
  return digest(canonical(write(call.params)))
}

/** A state that does not hold. */
export function invalid(message: string): Fault {
  return new Fault('invalidState', message)
}
