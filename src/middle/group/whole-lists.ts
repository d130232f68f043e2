/**
 * Reads lists of servers of a group to their end, within bounds: a server may have any number of pages, and each may be
 * large. A list that exceeds a bound ends there, and says so.
 */

import { Fault } from '../../base/fault/fault.js'
import { MAX_LIST_TIME, MAX_PAGES } from '../../base/limits/constants.js'
import { type Memory, SMALL } from '../../base/limits/memory.js'
import type { Json } from '../../base/rpc/splice.js'
import type { Call } from '../../mcp/protocol/call.js'
import type { ListStart } from './asking.js'
import { someAtOnce } from './at-once.js'
import type { ListLog } from './list-log.js'
import type { Member } from './member.js'
import type { Part, Parts } from './member-lists.js'
import { tellWaiting } from './waiting.js'

/** The list of one server, as far as it was read. */
export interface ReadList {
  member: Member
  /** At least one. */
  parts: readonly Part[]
  /** Why the end was not reached. */
  cut: Fault | undefined
}

export interface WholeListsOptions {
  parts: Parts
  memory: Memory
  log: Pick<ListLog, 'cut'>
  now?: () => number
}

/** Most bytes of the lists that are read for one call. Each server has an equal share. */
const MAX_WHOLE_BYTES = 32 * 1024 * 1024

export class WholeLists {
  readonly #parts: Parts
  readonly #memory: Memory
  readonly #log: WholeListsOptions['log']
  readonly #now: () => number

  constructor({ parts, memory, log, now = () => performance.now() }: WholeListsOptions) {
    this.#parts = parts
    this.#memory = memory
    this.#log = log
    this.#now = now
  }

  /**
   * Reads the lists that begin at these places, and calls `use` with them. Their pages are counted in the ledger until it
   * has returned.
   */
  async read<T>(listing: Call, places: readonly ListStart[], use: (lists: ReadList[]) => T | Promise<T>): Promise<T> {
    const reservation = this.#memory.reserve(listing.principal, SMALL)
    let bytes = 0
    const hasRoom = (more: number) => {
      if (reservation.resize(bytes + more)) return false
      bytes += more
      return true
    }
    const share = Math.floor(MAX_WHOLE_BYTES / Math.max(1, places.length))
    const waiting = tellWaiting(
      listing,
      places.map(({ member }) => member),
    )
    try {
      const lists = await someAtOnce(places, async (place) => {
        const list = await this.#one(listing, place, share, hasRoom)
        waiting?.has(place.member)
        return list
      })
      waiting?.over()
      return await use(lists)
    } finally {
      waiting?.over()
      reservation.end()
    }
  }

  async #one(
    listing: Call,
    { member, cursor }: ListStart,
    share: number,
    hasRoom: (bytes: number) => boolean,
  ): Promise<ReadList> {
    const began = this.#now()
    const parts: Part[] = []
    let bytes = 0
    let at: Json | undefined = cursor
    const cut = (why: string) => {
      this.#log.cut(member, listing.method, why)
      const message = `The bridge does not read ${listing.method} of ${member.server} to its end: ${why}`
      return { member, parts, cut: new Fault('upstreamProtocol', message) }
    }
    for (;;) {
      const part = await this.#parts.one(listing, { member, cursor: at })
      const fits = hasRoom(part.bytes)
      bytes += part.bytes
      parts.push(fits ? part : { ...part, page: undefined, about: undefined })
      if (!fits) return { member, parts, cut: new Fault('overloaded', noMemory(listing, member), { retryAfter: 1 }) }
      if (part.next === undefined) return { member, parts, cut: undefined }
      if (part.next === at) return cut('a page names itself as the next one')
      if (parts.length >= MAX_PAGES) return cut(`the list has more than ${MAX_PAGES} pages`)
      if (bytes >= share) return cut(`its first ${parts.length} pages have ${bytes} bytes`)
      if (this.#now() - began >= MAX_LIST_TIME) return cut(`that took more than ${MAX_LIST_TIME / 1000} s`)
      at = part.next
    }
  }
}

function noMemory({ method }: Call, { server }: Member): string {
  return `The bridge has no memory left for ${method} of ${server}: try again (limits.memory)`
}
