/** Remembers the lists of a group's servers: the last pages that each caller received. Equal pages are kept once. */

import { digest } from '../../base/crypto/digest.js'
import { MAX_PAGES } from '../../base/limits/constants.js'
import type { Memory } from '../../base/limits/memory.js'
import { Recent } from '../../base/rpc/memoize.js'
import { detach } from '../../base/rpc/source.js'
import { edit, type Json, NO_ORIGIN, type Payload, raw, sizeOf } from '../../base/rpc/splice.js'
import type { Call } from '../../mcp/protocol/call.js'
import { nextCursor } from '../../mcp/protocol/listed.js'
import { CountedCache } from '../policy/counted-cache.js'
import { personIn } from '../policy/who.js'
import { groupList, type ListPage, pageOf } from './list-page.js'
import type { Member } from './member.js'
import type { Replace } from './places.js'

/** A page, and the server's cursor of the next one. */
export interface ReadPage {
  page: ListPage
  next: Json | undefined
}

/** Whether a page has something, by the names or URIs of its items. */
export type Has = (ids: ReadonlySet<string>) => boolean

type Listing = Pick<Call, 'method' | 'params'>

interface RememberedIds {
  ids: ReadonlySet<string>
  next: Json | undefined
}

/** Which page a caller received. The page itself may be forgotten. */
interface Received {
  bytes: number
  content: string
  next: Json | undefined
}

/** Most remembered pages of all callers. */
const MAX_RECEIVED = 20_000
const MAX_RECEIVED_BYTES = 8 * 1024 * 1024
const PER_RECEIVED = 100
/** Most remembered pages with different content, and their bytes. Their names are remembered for longer than their texts. */
const MAX_CONTENTS = 4_096
const MAX_PAGES_BYTES = 32 * 1024 * 1024
const MAX_NAMES_BYTES = 16 * 1024 * 1024
/** Most remembered answers to `server/discover`, and their bytes. */
const MAX_DISCOVERED = 2_048
const MAX_DISCOVERED_BYTES = 16 * 1024 * 1024
/** Most remembered callers of one person, which differ in their capabilities. */
const MAX_KIN = 8

export class Listings {
  readonly #received: CountedCache<Received>
  readonly #pages: CountedCache<{ bytes: number; page: ListPage }>
  readonly #names: CountedCache<{ bytes: number; ids: ReadonlySet<string> }>
  readonly #discovered: CountedCache<{ bytes: number; result: Payload }>
  /** Pages that are being made, by content. */
  readonly #making = new Map<string, Promise<ListPage>>()
  /** Contents by result object: a cache returns the same result many times. */
  #read = new WeakMap<Payload, { list: string; content: string }>()
  /** Callers by person, which differ in their capabilities; first the one with the newest page. */
  readonly #kin = new Recent<readonly string[]>()
  /** A number for the lists of each server. It changes when they are dropped. */
  readonly #servers = new Map<string, number>()
  #drops = 0

  constructor(memory: Memory) {
    this.#received = new CountedCache({ memory, max: MAX_RECEIVED, maxBytes: MAX_RECEIVED_BYTES })
    this.#pages = new CountedCache({ memory, max: MAX_CONTENTS, maxBytes: MAX_PAGES_BYTES })
    this.#names = new CountedCache({ memory, max: MAX_CONTENTS, maxBytes: MAX_NAMES_BYTES })
    this.#discovered = new CountedCache({ memory, max: MAX_DISCOVERED, maxBytes: MAX_DISCOVERED_BYTES })
  }

  /** The page from a server, as clients of the group see it. */
  async read(member: Member, { method }: Listing, result: Payload, replace: Replace): Promise<ReadPage> {
    const { server } = member
    const list = `${this.#tag(server)}${method}`
    const before = this.#read.get(result)
    const content =
      before?.list === list
        ? before.content
        : this.contentOf(member, method, digest(raw(result, groupList(method).key) ?? ''))
    this.#read.set(result, { list, content })
    const page = this.#pages.get(content)?.page ?? (await this.#make(method, content, result, replace))
    return { page, next: detach(nextCursor(result)) }
  }

  #make(method: string, content: string, result: Payload, replace: Replace): Promise<ListPage> {
    const known = this.#making.get(content)
    if (known) return known
    const making = pageOf({ method, content }, result, replace)
    this.#making.set(content, making)
    return making.finally(() => this.#making.delete(content))
  }

  /** What identifies a page of a server that may be used now, by the digest of its list. */
  contentOf({ server }: Member, method: string, hash: string): string {
    return `${this.#tag(server)}${method} ${hash}`
  }

  /** Remembers a page for a caller. Returns whether it is another one than the last. */
  keep(who: string, { server }: Member, listing: Listing, { page, next }: ReadPage): boolean {
    const { content } = page
    if (!this.#isNow(server, content)) return false
    if (!this.#pages.has(content)) this.#pages.keep(content, { bytes: page.bytes, page })
    if (!this.#names.has(content)) this.#names.keep(content, { bytes: page.bytesOfIds, ids: page.ids })
    const key = keyOf(who, server, listing)
    const last = this.#received.get(key)
    if (last?.content === content && last.next === next) return false
    const bytes = key.length + content.length + (next?.length ?? 0) + PER_RECEIVED
    this.#received.keep(key, { bytes, content, next })
    const kin = this.callersOf(personIn(who))
    if (kin[0] !== who) this.#kin.set(personIn(who), [who, ...kin.filter((one) => one !== who)].slice(0, MAX_KIN))
    return true
  }

  /** The remembered callers of a person, first the one with the newest page. */
  callersOf(person: string): readonly string[] {
    return this.#kin.get(person) ?? []
  }

  /** The last page that a caller received; undefined if there is none. */
  known(who: string, { server }: Member, listing: Listing): ReadPage | undefined {
    const last = this.#lastOf(keyOf(who, server, listing), server)
    const page = last && this.#pages.get(last.content)?.page
    return page && { page, next: last.next }
  }

  /** As `known`, or else the last page that the same person received with other capabilities. */
  likely(who: string, member: Member, listing: Listing): ReadPage | undefined {
    return this.#ofKin(who, (one) => this.known(one, member, listing))
  }

  /** What is found for a caller, or else for the same person with other capabilities. */
  #ofKin<T extends object>(who: string, find: (who: string) => T | undefined): T | undefined {
    const own = find(who)
    if (own) return own
    for (const one of this.callersOf(personIn(who))) {
      const found = one === who ? undefined : find(one)
      if (found) return found
    }
    return undefined
  }

  /** All pages of a list that a caller received; undefined if one is not remembered. */
  wholeOf(who: string, member: Member, method: string): ReadPage[] | undefined {
    const pages: ReadPage[] = []
    let params = NO_ORIGIN
    while (pages.length < MAX_PAGES) {
      const read = this.known(who, member, { method, params })
      if (!read) return undefined
      pages.push(read)
      if (read.next === undefined) return pages
      params = edit(NO_ORIGIN, { cursor: read.next })
    }
    return undefined
  }

  /** What begins the content of each page of a server that may still be used. */
  #tag(server: string): string {
    let number = this.#servers.get(server)
    if (number === undefined) {
      number = this.#drops
      this.#servers.set(server, number)
    }
    return `${number} ${server} `
  }

  #isNow(server: string, content: string): boolean {
    return content.startsWith(this.#tag(server))
  }

  #lastOf(key: string, server: string): Received | undefined {
    const last = this.#received.get(key)
    return last && this.#isNow(server, last.content) ? last : undefined
  }

  /**
   * The names or URIs on the remembered pages of a list for a caller, in order, with the cursors of the next ones; and whether
   * that is the whole list.
   */
  *#all(who: string, { server }: Member, method: string): Generator<RememberedIds, boolean> {
    let params = NO_ORIGIN
    for (let pages = 0; pages < MAX_PAGES; pages++) {
      const last = this.#lastOf(keyOf(who, server, { method, params }), server)
      const names = last && this.#names.get(last.content)
      if (!names) return false
      yield { ids: names.ids, next: last.next }
      if (last.next === undefined) return true
      params = edit(NO_ORIGIN, { cursor: last.next })
    }
    return false
  }

  /** The names or URIs on the remembered pages of a list for a caller. */
  idsOf(who: string, member: Member, method: string): ReadonlySet<string>[] {
    return Array.from(this.#all(who, member, method), ({ ids }) => ids)
  }

  /** The names or URIs on the remembered pages of a list for a caller before the page at `cursor`; none if that is unknown. */
  idsBefore(who: string, member: Member, method: string, cursor: Json): ReadonlySet<string>[] {
    const before: ReadonlySet<string>[] = []
    for (const { ids, next } of this.#all(who, member, method)) {
      before.push(ids)
      if (next === cursor) return before
    }
    return []
  }

  /** Whether a remembered page of a list for a caller has something, by the names or URIs of its items. */
  has(who: string, member: Member, method: string, test: Has): boolean {
    for (const { ids } of this.#all(who, member, method)) if (test(ids)) return true
    return false
  }

  /** As `has`, for the same person with other capabilities. The lists may differ from the caller's. */
  kinHas(who: string, member: Member, method: string, test: Has): boolean {
    const kin = this.callersOf(personIn(who))
    return kin.some((one) => one !== who && this.has(one, member, method, test))
  }

  /** Whether the names or URIs of a whole list are remembered for a caller. */
  isWhole(who: string, member: Member, method: string): boolean {
    const all = this.#all(who, member, method)
    let next = all.next()
    while (!next.done) next = all.next()
    return next.value
  }

  learnDiscovered(who: string, { server }: Member, result: Payload): void {
    this.#discovered.keep(`${who} ${server}`, { bytes: sizeOf(result), result })
    const kin = this.callersOf(personIn(who))
    if (!kin.includes(who)) this.#kin.set(personIn(who), [...kin, who].slice(0, MAX_KIN))
  }

  discovered(who: string, { server }: Member): Payload | undefined {
    return this.#discovered.get(`${who} ${server}`)?.result
  }

  /** As `discovered`, or else what the same person received with other capabilities. */
  likelyDiscovered(who: string, member: Member): Payload | undefined {
    return this.#ofKin(who, (one) => this.discovered(one, member))
  }

  /** Drops the lists of all servers but these: others may list something else under their names. */
  keepOnly(members: readonly Member[]): void {
    const kept = new Set(members.map(({ server }) => server))
    this.#drops++
    for (const server of this.#servers.keys()) if (!kept.has(server)) this.#servers.delete(server)
  }

  /** Drops everything: names may have changed. */
  clear(): void {
    this.#drops++
    this.#servers.clear()
    this.#read = new WeakMap()
    this.#received.clear()
    this.#pages.clear()
    this.#names.clear()
  }

  close(): void {
    this.#received.close()
    this.#pages.close()
    this.#names.close()
    this.#discovered.close()
  }
}

function keyOf(who: string, server: string, { method, params }: Listing): string {
  const cursor = raw(params, 'cursor')
  return `${who} ${server} ${method}${cursor === undefined ? '' : ` ${digest(cursor)}`}`
}
