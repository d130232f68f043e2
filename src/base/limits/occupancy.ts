/** Keeps track of sessions or processes that share a bound, and ends idle ones to make room. */

import { Fault } from '../fault/fault.js'
import { personOf } from '../texts/principal.js'
import type { Bound } from './bound.js'

/** A session, or a process of a program. */
export interface Occupant {
  /** The principal whose share it uses. */
  readonly principal: string
  /** When it became idle, by `performance.now()`; undefined while it is in use. */
  readonly idleSince: number | undefined
  /** Milliseconds of idle time after which it ends. If undefined, it ends only to make room. */
  readonly idleLimit?: number | undefined
  /** Its clients have gone: it is kept for the next one. */
  readonly isSpare?: boolean
  /** Ends it. It has already left the occupancy. */
  end(): void
}

/** The maximum number of spares of one principal. */
const MAX_SPARES = 1

/** The sessions or processes that share one bound. */
export class Occupancy {
  readonly bound: Bound
  readonly #what: string
  readonly #option: string | undefined
  /** By person: one with other headers for servers has no more room. */
  readonly #occupants = new Map<string, Set<Occupant>>()

  /** `what` names the occupants in messages, in the plural, and `option` what raises the bound. */
  constructor(bound: Bound, what: string, option?: string) {
    this.bound = bound
    this.#what = what
    this.#option = option
  }

  get used(): number {
    return this.bound.used
  }

  /**
   * Adds an occupant, which comes in the place of a spare that it could not use. Ends an idle one if there is no room. Throws a
   * Fault if none is idle.
   */
  enter(occupant: Occupant): void {
    const { principal } = occupant
    for (const spare of this.#sparesOf(principal)) this.#end(spare)
    this.makeRoom(principal)
    this.bound.occupy(principal)
    const others = this.#of(principal)
    if (others) others.add(occupant)
    else this.#occupants.set(personOf(principal), new Set([occupant]))
  }

  /** Removes an occupant. Later calls do nothing. */
  leave(occupant: Occupant): void {
    const { principal } = occupant
    const occupants = this.#of(principal)
    if (!occupants?.delete(occupant)) return
    this.bound.vacate(principal)
    if (occupants.size === 0) this.#occupants.delete(personOf(principal))
  }

  /**
   * Makes room for one more occupant of a principal. A principal that would exceed its share ends its own longest idle
   * one, unless another principal holds more and has idle ones. If the bound is reached, the longest idle one of the
   * principal that holds most ends. Throws a Fault if none is idle.
   */
  makeRoom(principal: string): void {
    const { bound } = this
    if (bound.exceedsShare(principal)) {
      const own = longestIdle(this.#of(principal))
      if (own) return this.#end(own)
      const spare = this.#spare(principal)
      if (!spare || bound.heldBy(spare.principal) <= bound.heldBy(principal) + 1)
        throw new Fault('rateLimited', `This caller already uses its share of the ${this.#name}`, { retryAfter: 1 })
    }
    // More than one has to end if the bound has become smaller.
    while (bound.used >= bound.max) {
      const spare = this.#spare(principal)
      if (!spare) throw new Fault('overloaded', `All ${this.#name} are in use`, { retryAfter: 1 })
      this.#end(spare)
    }
  }

  /** Ends occupants whose idle limit has passed, and the spares of each principal except for its newest ones. */
  endIdle(): void {
    for (const principal of [...this.#occupants.keys()]) this.endIdleOf(principal)
  }

  /** The same for one principal. */
  endIdleOf(principal: string): void {
    const now = performance.now()
    for (const occupant of [...(this.#of(principal) ?? [])]) {
      const { idleSince, idleLimit } = occupant
      if (idleSince !== undefined && idleLimit !== undefined && now - idleSince >= idleLimit) this.#end(occupant)
    }
    const spares = this.#sparesOf(principal).sort((one, other) => sinceOf(other) - sinceOf(one))
    for (const spare of spares.slice(MAX_SPARES)) this.#end(spare)
  }

  #of(principal: string): Set<Occupant> | undefined {
    return this.#occupants.get(personOf(principal))
  }

  #sparesOf(principal: string): Occupant[] {
    return [...(this.#of(principal) ?? [])].filter(({ isSpare }) => isSpare)
  }

  get #name(): string {
    return `${this.bound.max} ${this.#what}${this.#option === undefined ? '' : ` (${this.#option})`}`
  }

  /** The idle occupant to end first. The principal that needs the room counts as if it held one more. */
  #spare(principal: string): Occupant | undefined {
    let spare: Occupant | undefined
    let most = 0
    for (const [holder, occupants] of this.#occupants) {
      const held = occupants.size + (holder === personOf(principal) ? 1 : 0)
      if (held < most) continue
      const idle = longestIdle(occupants)
      if (!idle || (held === most && sinceOf(idle) >= sinceOf(spare))) continue
      spare = idle
      most = held
    }
    return spare
  }

  #end(occupant: Occupant): void {
    this.leave(occupant)
    occupant.end()
  }
}

function longestIdle(occupants: Iterable<Occupant> = []): Occupant | undefined {
  let longest: Occupant | undefined
  for (const occupant of occupants)
    if (occupant.idleSince !== undefined && sinceOf(occupant) < sinceOf(longest)) longest = occupant
  return longest
}

function sinceOf(occupant: Occupant | undefined): number {
  return occupant?.idleSince ?? Number.POSITIVE_INFINITY
}
