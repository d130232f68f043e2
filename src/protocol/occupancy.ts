/** Keeps track of sessions or processes that share a bound, and ends idle ones when somebody else needs the room. */
import type { Bound } from './bound.js'
import { Fault } from './fault.js'

/** A session, or a process of a program. */
export interface Occupant {
  /** Whose share of the bound it counts towards. */
  readonly principal: string
  /** When it was last used, by `performance.now()`; undefined while it is in use. */
  readonly idleSince: number | undefined
  /** Milliseconds without use after which it ends. Without a limit it ends only to make room. */
  readonly idleLimit?: number | undefined
  /** Ends it. It has left the occupancy by then. */
  end(): void
}

export class Occupancy {
  readonly bound: Bound
  readonly #what: string
  /** By principal, in the order of their last use. */
  readonly #occupants = new Map<string, Set<Occupant>>()

  /** `what` names the occupants for people, in the plural. */
  constructor(bound: Bound, what: string) {
    this.bound = bound
    this.#what = what
  }

  get used(): number {
    return this.bound.used
  }

  /** Adds an occupant, after others have made room for it. Throws a Fault where none can. */
  enter(occupant: Occupant): void {
    const { principal } = occupant
    this.makeRoom(principal)
    this.bound.take(principal)
    const others = this.#occupants.get(principal)
    if (others) others.add(occupant)
    else this.#occupants.set(principal, new Set([occupant]))
  }

  /** Removes an occupant. Doing so again changes nothing. */
  leave(occupant: Occupant): void {
    const { principal } = occupant
    const occupants = this.#occupants.get(principal)
    if (!occupants?.delete(occupant)) return
    this.bound.give(principal)
    if (occupants.size === 0) this.#occupants.delete(principal)
  }

  /** Notes that an occupant is being used, or was until now. */
  touch(occupant: Occupant): void {
    const occupants = this.#occupants.get(occupant.principal)
    if (occupants?.delete(occupant)) occupants.add(occupant)
  }

  /**
   * Makes sure that a principal can have one more. A principal that would exceed its share ends its own longest idle one,
   * unless another principal holds more and has idle ones. Where the bound is reached, the longest idle one of the
   * principal with most ends. Throws a Fault where none is idle.
   */
  makeRoom(principal: string): void {
    const { bound } = this
    if (bound.exceedsShare(principal)) {
      const own = longestIdle(this.#occupants.get(principal))
      if (own) return this.#end(own)
      const spare = this.#spare(principal)
      if (!spare || bound.heldBy(spare.principal) <= bound.heldBy(principal) + 1)
        throw new Fault('rateLimited', `This caller already uses its share of the ${this.#name}`, { retryAfter: 1 })
    }
    if (bound.used < bound.max) return
    const spare = this.#spare(principal)
    if (!spare) throw new Fault('overloaded', `All ${this.#name} are in use`, { retryAfter: 1 })
    this.#end(spare)
  }

  /** Ends what has been idle for as long as it may. */
  endIdle(): void {
    const now = performance.now()
    for (const occupants of [...this.#occupants.values()]) {
      for (const occupant of [...occupants]) {
        const { idleSince, idleLimit } = occupant
        if (idleSince !== undefined && idleLimit !== undefined && now - idleSince >= idleLimit) this.#end(occupant)
      }
    }
  }

  get #name(): string {
    return `${this.bound.max} ${this.#what}`
  }

  /** The idle one that ends first. The principal that needs the room counts as if it held one more. */
  #spare(principal: string): Occupant | undefined {
    let spare: Occupant | undefined
    let most = 0
    for (const [holder, occupants] of this.#occupants) {
      const held = occupants.size + (holder === principal ? 1 : 0)
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

/** They are in the order of their last use, so the first idle one has been idle longest. */
function longestIdle(occupants: Iterable<Occupant> = []): Occupant | undefined {
  for (const occupant of occupants) if (occupant.idleSince !== undefined) return occupant
  return undefined
}

function sinceOf(occupant: Occupant | undefined): number {
  return occupant?.idleSince ?? Number.POSITIVE_INFINITY
}
