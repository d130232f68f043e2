/**
 * Remembers which names the server has listed to each caller. Only these may be called, because a server may accept
 * other spellings of a name, and names that it does not list.
 */

import { MAX_PAGES, MAX_TOOLS } from '../../../base/limits/constants.js'
import { type Memory, type Reservation, SMALL } from '../../../base/limits/memory.js'
import { Recent } from '../../../base/rpc/memoize.js'
import { detach } from '../../../base/rpc/source.js'
import { type Json, type Payload, raw } from '../../../base/rpc/splice.js'
import { unlessAborted } from '../../../base/time/time.js'
import { type Call, type Final, type Handler, type Policy, withResult } from '../../../mcp/protocol/call.js'
import { reading } from '../pages.js'
import { whoOf } from '../who.js'

/** A page as clients see it, and its items by the names that clients see. */
export interface SeenPage<T> {
  result: Payload
  items: ReadonlyMap<string, T>
}

/** The list, and how to read it. */
export interface ListedOptions<T> {
  server: string
  method: string
  /** Edits a page of the server for clients. */
  see(page: Payload): SeenPage<T>
  memory: Memory
  /** Milliseconds for which a list is current: an unknown name does not cause another read. */
  current?: number
  /** Milliseconds of a monotonic clock. */
  now?: () => number
}

/** The pages that one caller has seen. */
interface Known<T> {
  /** By cursor; the first page has none. The most recent ones are at the end. */
  pages: Map<Json | undefined, ReadonlyMap<string, T>>
  /** When the whole list was last read and remembered. */
  readAt: number
  reading: Promise<ReadonlyMap<string, T>> | undefined
  reservation: Reservation
}

/** Milliseconds for which a list is current, by default. */
const CURRENT = 1_000
/** Estimated bytes of an item without its name. */
const PER_ITEM = 100
const LONG_AGO = Number.NEGATIVE_INFINITY

export class ChosenList<T> {
  readonly #options: Required<ListedOptions<T>>
  readonly #known = new Recent<Known<T>>({ dropped: ({ reservation }) => reservation.end() })

  /** How often it has been outdated. */
  #changes = 0

  constructor(options: ListedOptions<T>) {
    this.#options = { now: () => performance.now(), current: CURRENT, ...options }
  }

  /** A page of the server as clients see it. Remembers its items for this caller. */
  learn(call: Call, page: Payload): Payload {
    const { result, items } = this.#options.see(page)
    this.#keep(this.#of(call), detach(raw(call.params, 'cursor')), items)
    return result
  }

  /** Answers a request for the list, with what clients see of it. */
  async answer(call: Call, next: Handler): Promise<Final> {
    return withResult(await next(call), (result) => this.learn(call, result))
  }

  /** Answers a request for the list as the server does, and remembers it. */
  async remember(call: Call, next: Handler): Promise<Final> {
    const last = await next(call)
    if (last.kind === 'result') this.learn(call, last.result)
    return last
  }

  /** Remembers the lists that pass. */
  readonly policy: Policy = (next) => (call) =>
    call.method === this.#options.method ? this.remember(call, next) : next(call)

  /** The caller's item with this name. Reads the list if the name is unknown. Rejects with a Fault. */
  async find(call: Call, name: string, next: Handler): Promise<T | undefined> {
    const known = this.#of(call)
    for (const items of known.pages.values()) {
      const item = items.get(name)
      if (item !== undefined) return item
    }
    const { now, current } = this.#options
    if (now() - known.readAt < current) return undefined
    known.reading ??= this.#read(known, call, next).finally(() => {
      known.reading = undefined
    })
    return (await unlessAborted(known.reading, call.signal)).get(name)
  }

  /** Has unknown names looked for in the list again, because it has changed. */
  outdate(): void {
    this.#changes++
    for (const known of this.#known.values()) known.readAt = LONG_AGO
  }

  async #read(known: Known<T>, call: Call, next: Handler): Promise<ReadonlyMap<string, T>> {
    const { method, server, see } = this.#options
    const changes = this.#changes
    const items = await reading(call, method, next, server, async (pages) => {
      const all = new Map<string, T>()
      for await (const page of pages) for (const [name, item] of see(page).items) all.set(name, item)
      return all
    })
    known.pages.clear()
    const isKept = this.#keep(known, undefined, items)
    if (isKept && changes === this.#changes) known.readAt = this.#options.now()
    return items
  }

  /** Remembers a page, and drops the oldest ones if there are too many. Returns whether all are remembered. */
  #keep(known: Known<T>, cursor: Json | undefined, items: ReadonlyMap<string, T>): boolean {
    const { pages, reservation } = known
    pages.delete(cursor)
    pages.set(cursor, items)
    let names = 0
    for (const { size } of pages.values()) names += size
    let isWhole = true
    for (const [oldest, { size }] of pages) {
      if (pages.size <= MAX_PAGES && names <= MAX_TOOLS && reservation.resize(weightOf(pages)) === undefined) break
      pages.delete(oldest)
      names -= size
      isWhole = false
    }
    reservation.resize(weightOf(pages))
    // Dropped pages can be read again.
    if (!isWhole) known.readAt = LONG_AGO
    return isWhole
  }

  #of(call: Call): Known<T> {
    const key = whoOf(call)
    let known = this.#known.get(key)
    if (!known) {
      const reservation = this.#options.memory.reserve(call.principal, SMALL)
      known = { pages: new Map(), readAt: LONG_AGO, reading: undefined, reservation }
      this.#known.set(key, known)
    }
    return known
  }
}

function weightOf(pages: ReadonlyMap<Json | undefined, ReadonlyMap<string, unknown>>): number {
  let weight = 0
  for (const [cursor, items] of pages) {
    weight += cursor?.length ?? 0
    for (const name of items.keys()) weight += name.length + PER_ITEM
  }
  return weight
}
