/** Counts the bytes of all collected and stored messages in one ledger with one bound. */

import { Fault } from '../fault/fault.js'
import { Bound, type BoundOptions, type BoundReached } from './bound.js'

/** Messages in transit of up to this many bytes are not counted: the bounds on calls and connections limit them. */
export const SMALL = 16 * 1024
/** The principal for data that is stored for several principals, or for none. */
export const NOBODY = ''
/** Reservations are multiples of this many bytes, so that the reservation of a message that grows slowly is rarely resized. */
const STEP = 4 * 1024

/** Frees about `bytes` of stored data that is not required: of one principal, if one is named. */
export type GiveUp = (bytes: number, principal: string | undefined) => void

/** The ledger. A bound of bytes, reserved by principals. */
export class Memory {
  readonly #bound: Bound
  readonly #keepers = new Set<GiveUp>()

  constructor(options: BoundOptions) {
    this.#bound = new Bound(options)
  }

  /** Bytes reserved now. */
  get used(): number {
    return this.#bound.used
  }

  get max(): number {
    return this.#bound.max
  }

  /** Sets another bound. Reservations that exceed it stay. */
  resize({ max, share }: Required<BoundOptions>): void {
    Object.assign(this.#bound, { max, share })
  }

  /** Adds a function that can free memory. Functions are called in the order added. The returned function removes it. */
  addKeeper(giveUp: GiveUp): () => void {
    this.#keepers.add(giveUp)
    return () => this.#keepers.delete(giveUp)
  }

  /** Starts a reservation of 0 bytes. The first `free` bytes of it are not counted. */
  reserve(principal: string, free = 0): Reservation {
    return new Reservation(this, principal, free)
  }

  /** Starts a reservation of `bytes`. Throws a Fault if they are not available. */
  mustReserve(principal: string, bytes: number): Reservation {
    const reservation = this.reserve(principal)
    reservation.mustResize(bytes)
    return reservation
  }

  /** Throws a Fault if `bytes` are not available now. Reserves nothing. */
  check(principal: string, bytes: number): void {
    const reached = this.#reached(principal, bytes)
    if (reached) throw noMemory(reached)
  }

  /** Whether `bytes` are available now. Reserves nothing. */
  hasRoom(principal: string, bytes: number): boolean {
    return this.#reached(principal, bytes) === undefined
  }

  /** Reserves `bytes` more, or returns why not. For reservations only. */
  take(principal: string, bytes: number): BoundReached | undefined {
    const reached = this.#reached(principal, bytes)
    if (!reached) this.#bound.occupy(principal, bytes)
    return reached
  }

  /** Takes bytes back. For reservations only. */
  give(principal: string, bytes: number): void {
    this.#bound.vacate(principal, bytes)
  }

  /** Why `bytes` are not available, after asking the keepers to free some. */
  #reached(principal: string, bytes: number): BoundReached | undefined {
    let reached = this.#bound.reached(principal, bytes)
    for (const giveUp of this.#keepers) {
      if (!reached) break
      if (reached === 'full') giveUp(Math.min(bytes, this.used + bytes - this.max), undefined)
      else giveUp(bytes, principal)
      reached = this.#bound.reached(principal, bytes)
    }
    return reached
  }
}

/** The bytes of one holder. Its size is always set in total, so that no byte is returned twice or never. */
export class Reservation {
  readonly principal: string
  readonly #memory: Memory
  readonly #free: number
  #bytes = 0
  #over = false

  constructor(memory: Memory, principal: string, free: number) {
    this.#memory = memory
    this.principal = principal
    this.#free = free
  }

  /** Bytes reserved now. */
  get bytes(): number {
    return this.#bytes
  }

  /**
   * Sets the size of the reservation to `bytes` in total. An increase may be refused: then nothing changes, and the
   * reason is returned. A decrease is never refused. A reservation that has ended refuses every increase.
   */
  resize(bytes: number): BoundReached | undefined {
    const wanted = bytes <= this.#free ? 0 : Math.ceil(bytes / STEP) * STEP
    const more = wanted - this.#bytes
    if (more > 0) {
      if (this.#over) return 'full'
      const reached = this.#memory.take(this.principal, more)
      if (reached) return reached
    } else if (more < 0) {
      this.#memory.give(this.principal, -more)
    }
    // `take` may have made a keeper shrink this reservation.
    this.#bytes += more
    return undefined
  }

  /** As `resize`, but throws a Fault if refused. */
  mustResize(bytes: number): void {
    const reached = this.resize(bytes)
    if (reached) throw noMemory(reached)
  }

  /** Returns all bytes and ends the reservation. Later calls do nothing. */
  end(): void {
    this.resize(0)
    this.#over = true
  }
}

/** A ledger without a bound, for code that runs outside a bridge. */
export const unlimited = (): Memory => new Memory({ max: Number.POSITIVE_INFINITY })

function noMemory(reached: BoundReached): Fault {
  return reached === 'full'
    ? new Fault('overloaded', 'The bridge has no memory left for messages (limits.memory)', { retryAfter: 1 })
    : new Fault('rateLimited', 'The messages of this caller use its whole share of the memory', { retryAfter: 1 })
}
