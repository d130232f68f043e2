/** Bytes: one ledger from which everything borrows that gathers or keeps them, so that all together have one bound. */
import { Bound, type BoundOptions, type Reached } from './bound.js'
import { Fault } from './fault.js'

/** Bytes up to which a message on its way is not counted: the bounds on calls and connections are enough for it. */
export const SMALL = 16 * 1024
/** Who borrows what is kept for several principals, or for none that is known. */
export const NOBODY = ''
/** What is borrowed is a multiple of so many bytes: whoever grows by little asks rarely. */
const STEP = 4 * 1024

/** Gives up some of what it keeps and can do without: about so many bytes, of one principal where one is named. */
export type GiveUp = (bytes: number, principal: string | undefined) => void

export class Memory {
  readonly #bound: Bound
  readonly #keepers = new Set<GiveUp>()

  constructor(options: BoundOptions) {
    this.#bound = new Bound(options)
  }

  /** Bytes that are lent. */
  get used(): number {
    return this.#bound.used
  }

  get max(): number {
    return this.#bound.max
  }

  /** Takes over another bound. What is lent beyond it stays lent. */
  resize({ max, share }: Required<BoundOptions>): void {
    Object.assign(this.#bound, { max, share })
  }

  /** Names somebody who keeps what others may need more. Whoever was named first is asked first, until it is withdrawn. */
  addKeeper(giveUp: GiveUp): () => void {
    this.#keepers.add(giveUp)
    return () => this.#keepers.delete(giveUp)
  }

  /** Begins a loan of nothing yet. As long as it is at most `free` bytes, it is not counted. */
  borrow(principal: string, free = 0): Loan {
    return new Loan(this, principal, free)
  }

  /** Lends so many bytes at once. Throws a Fault where they cannot be had. */
  lend(principal: string, bytes: number): Loan {
    const loan = this.borrow(principal)
    loan.demand(bytes)
    return loan
  }

  /** Throws a Fault where so many bytes could not be lent now. Nothing is lent. */
  check(principal: string, bytes: number): void {
    const reached = this.#reached(principal, bytes)
    if (reached) throw noMemory(reached)
  }

  /** Lends more, or says why not. For loans. */
  take(principal: string, bytes: number): Reached | undefined {
    const reached = this.#reached(principal, bytes)
    if (!reached) this.#bound.take(principal, bytes)
    return reached
  }

  /** Takes bytes back. For loans. */
  give(principal: string, bytes: number): void {
    this.#bound.give(principal, bytes)
  }

  /** Why so many bytes cannot be had, whatever others give up for them. */
  #reached(principal: string, bytes: number): Reached | undefined {
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

/** What one borrower has. It says how much that is to be in all, so that nothing is given back twice or forgotten. */
export class Loan {
  readonly principal: string
  readonly #memory: Memory
  readonly #free: number
  #lent = 0
  #over = false

  constructor(memory: Memory, principal: string, free: number) {
    this.#memory = memory
    this.principal = principal
    this.#free = free
  }

  /** Bytes that are lent. */
  get lent(): number {
    return this.#lent
  }

  /**
   * Has so many bytes from now on, in all. Where that is more than before, it may be refused: then everything is as it was,
   * and this says why. Less is never refused. A loan that is over gives nothing.
   */
  hold(bytes: number): Reached | undefined {
    const wanted = bytes <= this.#free ? 0 : Math.ceil(bytes / STEP) * STEP
    const more = wanted - this.#lent
    if (more > 0) {
      if (this.#over) return 'full'
      const reached = this.#memory.take(this.principal, more)
      if (reached) return reached
    } else if (more < 0) {
      this.#memory.give(this.principal, -more)
    }
    // Asking for more may have made this very borrower give something up.
    this.#lent += more
    return undefined
  }

  /** The same, for those who cannot go on without. Throws a Fault where it is refused. */
  demand(bytes: number): void {
    const reached = this.hold(bytes)
    if (reached) throw noMemory(reached)
  }

  /** Gives everything back, for good. Calling it again does nothing. */
  end(): void {
    this.hold(0)
    this.#over = true
  }
}

/** A ledger without an end, for whoever is not part of a bridge. */
export const unlimited = (): Memory => new Memory({ max: Number.POSITIVE_INFINITY })

function noMemory(reached: Reached): Fault {
  return reached === 'full'
    ? new Fault('overloaded', 'The bridge has no memory left for messages (limits.memory)', { retryAfter: 1 })
    : new Fault('rateLimited', 'The messages of this caller use all of its share of the memory', { retryAfter: 1 })
}
