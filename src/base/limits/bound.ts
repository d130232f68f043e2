/** A bound that principals share: no principal can use all of it alone. Other headers for servers make no other person. */
import { KEYED, personOf } from '../texts/principal.js'

/** The size of a bound, and how much of it one principal may hold. */
export interface BoundOptions {
  /** The number of things, or bytes, that may be held at once. */
  max: number
  /**
   * The part that one principal may hold of what the others leave: more than 0, at most 1. A principal that holds
   * nothing may always take something while anything is left.
   */
  share?: number
}

/** Why nothing more may be taken: the whole bound is used up, or this principal's share. */
export type BoundReached = 'full' | 'share'

/** Counts what each principal holds. */
export class Bound {
  max: number
  share: number
  #used = 0
  /** What each principal holds. */
  readonly #held = new Map<string, number>()

  constructor({ max, share = 1 }: BoundOptions) {
    this.max = max
    this.share = share
  }

  get used(): number {
    return this.#used
  }

  heldBy(principal: string): number {
    return this.#held.get(principal.startsWith(KEYED) ? personOf(principal) : principal) ?? 0
  }

  /** Why a principal may not take `amount` more; undefined if it may. */
  reached(principal: string, amount = 1): BoundReached | undefined {
    if (this.#used + amount > this.max) return 'full'
    return this.share < 1 && this.exceedsShare(principal, amount) ? 'share' : undefined
  }

  /** Whether `amount` more would exceed a principal's share. The room that is left is not considered. */
  exceedsShare(principal: string, amount = 1): boolean {
    if (this.share >= 1) return false
    const held = this.heldBy(principal)
    const left = this.max - (this.#used - held)
    return held > 0 && held + amount > left * this.share
  }

  /** Takes `amount` for a principal, even beyond the bound: call `reached` first. */
  occupy(principal: string, amount = 1): void {
    this.#used += amount
    const person = principal.startsWith(KEYED) ? personOf(principal) : principal
    this.#held.set(person, (this.#held.get(person) ?? 0) + amount)
  }

  /** Gives back `amount`. */
  vacate(principal: string, amount = 1): void {
    this.#used -= amount
    const person = principal.startsWith(KEYED) ? personOf(principal) : principal
    const left = (this.#held.get(person) ?? 0) - amount
    if (left > 0) this.#held.set(person, left)
    else this.#held.delete(person)
  }
}
