/** Finds the servers of a group that list a name or URI to a caller. */
import { whoOf } from '../policy/who.js'
import type { Call } from '../protocol/call.js'
import { Recent } from '../rpc/memoize.js'
import { unlessAborted } from '../time/time.js'
import type { Has, Listings } from './listings.js'
import type { Lists, Unheard } from './lists.js'
import { activeIn, type GroupPlan, type Member } from './member.js'

/** The owners of a name or URI. */
export interface OwnedName {
  owners: readonly Member[]
  /** If there is no owner: servers that may be one, because the caller did not get their list. */
  unheard: readonly Unheard[]
}

/** Milliseconds before lists are read again to find a missing name. */
const FRESH = 1_000

export class Owners {
  readonly #plan: () => GroupPlan
  readonly #lists: Lists
  readonly #listings: Listings
  /** By caller and list: when all pages were last read, and the servers without an answer. Undefined if cancelled. */
  readonly #read = new Recent<{ at: number; unheard: Promise<readonly Unheard[] | undefined> }>()

  constructor(plan: () => GroupPlan, lists: Lists, listings: Listings) {
    this.#plan = plan
    this.#lists = lists
    this.#listings = listings
  }

  /** The servers whose lists have it, in the order of the group. Reads the lists if no remembered one has it. */
  async of(call: Call, method: string, has: Has): Promise<OwnedName> {
    const who = whoOf(call)
    const find = () => activeIn(this.#plan()).filter((member) => this.#listings.has(who, member, method, has))
    const known = find()
    if (known.length > 0) return { owners: known, unheard: [] }
    const unheard = await this.#readAll(call, who, method)
    const found = find()
    if (found.length > 0) return { owners: found, unheard: [] }
    // A list of the same person stands in for a missing one: few servers list by capabilities.
    const likely = unheard.flatMap(({ member }) => (this.#listings.kinHas(who, member, method, has) ? member : []))
    return { owners: likely, unheard }
  }

  /** Reads a list of all servers, unless it was read for the caller less than FRESH ago. */
  async #readAll(call: Call, who: string, method: string): Promise<readonly Unheard[]> {
    const key = `${who} ${method}`
    const now = performance.now()
    const last = this.#read.get(key)
    const recent = last && now - last.at < FRESH ? await unlessAborted(last.unheard, call.signal) : undefined
    if (recent) return recent
    const reading = this.#lists.readAll(call, method)
    this.#read.set(key, { at: now, unheard: reading.catch(() => undefined) })
    return reading
  }
}
