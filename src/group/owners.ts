/** Finds the servers of a group that list a name or URI to a caller. */
import type { Call } from '../protocol/call.js'
import { Recent } from '../rpc/memoize.js'
import { unlessAborted } from '../time/time.js'
import { type Listings, type ListPage, whoOf } from './listings.js'
import type { Lists, Unheard } from './lists.js'
import type { Member } from './member.js'

/** The owners of a name or URI. */
export interface OwnedName {
  owners: readonly Member[]
  /** If there is no owner: servers that may be one, because the caller did not get their list. */
  unheard: readonly Unheard[]
}

/** Whether a page has the target, by the names or URIs of its items. */
type Has = (ids: ReadonlySet<string>) => boolean

/** Milliseconds before lists are read again to find a missing name. */
const FRESH = 1_000

export class Owners {
  readonly #lists: Lists
  readonly #listings: Listings
  /** By caller and list: when all pages were last read, and the servers without an answer. Undefined if cancelled. */
  readonly #read = new Recent<{ at: number; unheard: Promise<readonly Unheard[] | undefined> }>()

  constructor(lists: Lists, listings: Listings) {
    this.#lists = lists
    this.#listings = listings
  }

  /** The owner of a name: the first server that lists it. */
  async first(call: Call, method: string, name: string): Promise<OwnedName> {
    const { owners, unheard } = await this.#find(call, method, (ids) => ids.has(name), true)
    return { owners: owners.slice(0, 1), unheard }
  }

  /** All servers whose lists have an item that passes `test`. */
  all(call: Call, method: string, test: (id: string) => boolean): Promise<OwnedName> {
    const has: Has = (ids) => {
      for (const id of ids) if (test(id)) return true
      return false
    }
    return this.#find(call, method, has, false)
  }

  /** Reads the lists if no remembered one has it. With `isOne`, stops at the first server. */
  async #find(call: Call, method: string, has: Has, isOne: boolean): Promise<OwnedName> {
    const who = whoOf(call)
    const some = (pages: Iterable<ListPage>) => {
      for (const { ids } of pages) if (has(ids)) return true
      return false
    }
    const lists = (member: Member) => some(this.#listings.all(who, member, method))
    const find = () => {
      const { members } = this.#lists
      return isOne ? (members.find(lists) ?? []) : members.filter(lists)
    }
    const known = [find()].flat()
    if (known.length > 0) return { owners: known, unheard: [] }
    const unheard = await this.#readAll(call, who, method)
    const found = [find()].flat()
    if (found.length > 0) return { owners: found, unheard: [] }
    // A list of the same person stands in for a missing one: few servers list by capabilities.
    const likely = unheard.flatMap(({ member }) => (some(this.#listings.ofKin(who, member, method)) ? member : []))
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
