/** Finds the servers of a group that list a name or URI to a caller. */

import { Recent } from '../../base/rpc/memoize.js'
import { unlessAborted } from '../../base/time/time.js'
import type { Call } from '../../mcp/protocol/call.js'
import { whoOf } from '../policy/who.js'
import type { Inside } from './inside.js'
import type { Has } from './listings.js'
import type { Lists, ReadNames, Unheard } from './lists.js'
import { activeIn, type Member } from './member.js'

/** The owners of a name or URI. */
export interface OwnedName {
  owners: readonly Member[]
  /** If there is no owner: servers that may be one, because the caller did not get their list. */
  unheard: readonly Unheard[]
}

/** Milliseconds before lists are read again to find a missing name. */
const FRESH = 1_000

export class Owners {
  readonly #inside: Inside
  readonly #lists: Lists
  /** By caller and list: when all pages were last read and remembered, and the servers without an answer. */
  readonly #read = new Recent<{ at: number; unheard: readonly Unheard[] }>()
  /** Readings in progress, by caller and list. Undefined if cancelled. */
  readonly #reading = new Map<string, Promise<ReadNames | undefined>>()

  constructor(inside: Inside, lists: Lists) {
    this.#inside = inside
    this.#lists = lists
  }

  /**
   * The servers whose lists have it, in the order of the group. Reads the lists if no remembered one has it. If it has to be
   * unique (`isUnique`), also if pages of lists are unread that may have it, too.
   */
  async of(call: Call, method: string, has: Has, { isUnique = false } = {}): Promise<OwnedName> {
    const who = whoOf(call)
    const find = (listHas: (member: Member) => boolean) => activeIn(this.#inside.plan()).filter(listHas)
    const known = find((member) => this.#inside.listings.has(who, member, method, has))
    const key = `${who} ${method}`
    const last = this.#read.get(key)
    const isSure = !isUnique || last !== undefined || this.#hasAllPages(who, method)
    if (known.length > 0 && isSure) return { owners: known, unheard: [] }
    let unheard = last && performance.now() - last.at < FRESH ? last.unheard : undefined
    if (!unheard) {
      const read = await this.#readNames(call, key, method)
      // Names that there was no room to remember are found all the same.
      const found = find((member) => read.ids.get(member)?.some(has) ?? false)
      if (found.length > 0) return { owners: found, unheard: [] }
      unheard = read.unheard
    }
    // A list of the same person stands in for a missing one: few servers list by capabilities.
    const likely = unheard.flatMap(({ member }) =>
      this.#inside.listings.kinHas(who, member, method, has) ? member : [],
    )
    return { owners: likely, unheard }
  }

  /** Whether the remembered lists of a caller have all of their pages. */
  #hasAllPages(who: string, method: string): boolean {
    return activeIn(this.#inside.plan()).every(
      (member) =>
        this.#inside.listings.isWhole(who, member, method) ||
        !this.#inside.listings.has(who, member, method, () => true),
    )
  }

  /** Reads a list of all servers, or joins a reading for the same caller. */
  async #readNames(call: Call, key: string, method: string): Promise<ReadNames> {
    const running = this.#reading.get(key)
    const joined = running && (await unlessAborted(running, call.signal))
    if (joined) return joined
    const began = performance.now()
    const reading = this.#lists.names(call, method)
    const shared = reading.catch(() => undefined)
    this.#reading.set(key, shared)
    try {
      const read = await reading
      if (read.isKept) this.#read.set(key, { at: began, unheard: read.unheard })
      return read
    } finally {
      if (this.#reading.get(key) === shared) this.#reading.delete(key)
    }
  }
}
