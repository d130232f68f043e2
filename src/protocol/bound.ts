/** A bound that principals share: whatever one of them holds, something is left for the others. */

export interface BoundOptions {
  /** Things, or bytes, at once. */
  max: number
  /**
   * The part of what the others leave that one principal may hold, over 0 and up to 1. One who holds nothing may always
   * take something, as long as there is anything left.
   */
  share?: number
}

/** Why nothing more can be had: the bound is reached, or this principal's share of it. */
export type Reached = 'full' | 'share'

export class Bound {
  max: number
  share: number
  #used = 0
  /** What each principal holds. Not kept where nobody has to leave anything for others. */
  readonly #held = new Map<string, number>()

  constructor({ max, share = 1 }: BoundOptions) {
    this.max = max
    this.share = share
  }

  get used(): number {
    return this.#used
  }

  heldBy(principal: string): number {
    return this.#held.get(principal) ?? 0
  }

  /** Why a principal cannot have so much more; undefined where it can. */
  reached(principal: string, amount = 1): Reached | undefined {
    if (this.#used + amount > this.max) return 'full'
    return this.exceedsShare(principal, amount) ? 'share' : undefined
  }

  /** Whether a principal would hold more than its share with so much more, whether or not there is room. */
  exceedsShare(principal: string, amount = 1): boolean {
    if (this.share >= 1) return false
    const held = this.heldBy(principal)
    const left = this.max - (this.#used - held)
    return held > 0 && held + amount > left * this.share
  }

  /** Takes so much for a principal, whether or not there is room: who asks first looks at `reached`. */
  take(principal: string, amount = 1): void {
    this.#used += amount
    this.#held.set(principal, this.heldBy(principal) + amount)
  }

  /** Gives back what was taken. */
  give(principal: string, amount = 1): void {
    this.#used -= amount
    const left = this.heldBy(principal) - amount
    if (left > 0) this.#held.set(principal, left)
    else this.#held.delete(principal)
  }
}
