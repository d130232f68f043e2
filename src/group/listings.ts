/** Remembers the lists of a group's servers: the last pages that each caller received. */

import { digest } from '../crypto/digest.js'
import { MAX_PAGES } from '../limits/constants.js'
import type { Memory } from '../limits/memory.js'
import { CountedCache } from '../policy/counted-cache.js'
import { personIn } from '../policy/who.js'
import type { Call } from '../protocol/call.js'
import { nextCursor } from '../protocol/listed.js'
import { LISTS, type ListTraits } from '../protocol/methods.js'
import { Recent } from '../rpc/memoize.js'
import { cut, own } from '../rpc/source.js'
import { arrayIn, edit, type Json, OWN, type Payload, payloadAt, raw, sizeOf, value } from '../rpc/splice.js'
import type { Member } from './member.js'
import { itemsOf } from './merge.js'
import { type Replace, replaced } from './places.js'

type GroupList = Pick<ListTraits, 'key' | 'id'>

/** The lists of a group, by method. */
export const GROUP_LISTS: ReadonlyMap<string, GroupList> = new Map<string, GroupList>([
  ...LISTS,
  ['skills/list', { key: 'skills', id: 'uri' }],
])

/** A list of a group. `method` must be one of `GROUP_LISTS`. */
export function groupList(method: string): GroupList {
  return GROUP_LISTS.get(method) as GroupList
}

/** An item of a list: its name or URI at its server and in the group, and its JSON for clients. */
export interface ListedItem {
  id: string | undefined
  shown: string | undefined
  text: Json
}

let pages = 0

/** One page of a list of one server. */
export class ListPage {
  /** Identifies the page in keys. */
  readonly number = ++pages
  /** The list as the server sent it. */
  readonly received: Json
  /** The cursor of the next page. */
  readonly next: Json | undefined
  /** The items for clients of the group, without the brackets of the list. */
  readonly text: string
  readonly bytes: number
  readonly #id: GroupList['id']
  #items: readonly ListedItem[] | undefined
  #ids: ReadonlySet<string> | undefined

  constructor(method: string, result: Payload, received: Json, replace: Replace) {
    const { key, id } = groupList(method)
    this.#id = id
    this.received = own(received)
    this.next = own(nextCursor(result))
    this.text = own(itemsOf(raw(replaced(method, result, replace), key) ?? '[]'))
    // The items are a second copy of the list.
    this.bytes = this.received.length + 2 * this.text.length
  }

  /** The single items. */
  get items(): readonly ListedItem[] {
    this.#items ??= this.#read()
    return this.#items
  }

  /** The server's names or URIs of all items. */
  get ids(): ReadonlySet<string> {
    this.#ids ??= new Set(this.items.flatMap(({ id }) => id ?? []))
    return this.#ids
  }

  #read(): ListedItem[] {
    const theirs = elementsOf(this.received)
    const ours = elementsOf(`[${this.text}]`)
    return ours.map(({ text, idOf }, i) => ({ id: theirs[i]?.idOf(this.#id), shown: idOf(this.#id), text }))
  }
}

function elementsOf(list: Json): { text: Json; idOf(key: string): string | undefined }[] {
  const array = arrayIn(edit(OWN, { list }), 'list')
  if (!array) return []
  const { source, elements } = array
  return elements.map((span) => ({
    text: cut(source, span.start, span.end),
    idOf(key) {
      const element = payloadAt(source, span)
      const id = element && value(element, key)
      return typeof id === 'string' ? id : undefined
    },
  }))
}

/** Whether a page has something, by the names or URIs of its items. */
export type Has = (ids: ReadonlySet<string>) => boolean

/** Most remembered pages of all callers, and their bytes. */
const MAX_REMEMBERED_PAGES = 2_048
const MAX_PAGES_BYTES = 16 * 1024 * 1024
/** Most remembered callers of one person, which differ in their capabilities. */
const MAX_KIN = 8
/** Most pages of a list that are compared with a new page: usually, callers get equal pages. */
const RECENT = 4

export class Listings {
  readonly #pages: CountedCache<{ bytes: number; page: ListPage }>
  readonly #discovered: CountedCache<{ bytes: number; result: Payload }>
  /** The last pages of each list of each server, for any caller. */
  readonly #recent = new Map<string, readonly WeakRef<ListPage>[]>()
  /** Pages by result object: a cache returns the same result many times. */
  #read = new WeakMap<Payload, { server: string; method: string; page: ListPage }>()
  /** Callers by person, which differ in their capabilities; first the one with the newest page. */
  readonly #kin = new Recent<readonly string[]>()

  constructor(memory: Memory) {
    this.#pages = new CountedCache({ memory, max: MAX_REMEMBERED_PAGES, maxBytes: MAX_PAGES_BYTES })
    this.#discovered = new CountedCache({ memory, max: MAX_REMEMBERED_PAGES, maxBytes: MAX_PAGES_BYTES })
  }

  /** The page from a server, as clients of the group see it. */
  read({ server }: Member, { method }: Pick<Call, 'method'>, result: Payload, replace: Replace): ListPage {
    const before = this.#read.get(result)
    if (before?.server === server && before.method === method) return before.page
    const received = raw(result, groupList(method).key) ?? '[]'
    const list = `${server} ${method}`
    const recent = this.#recent.get(list) ?? []
    const next = nextCursor(result)
    const pages = recent.flatMap((page) => page.deref() ?? [])
    const known = pages.find((one) => one.received === received && one.next === next)
    const page = known ?? new ListPage(method, result, received, replace)
    if (!known) this.#recent.set(list, [new WeakRef(page), ...recent.slice(0, RECENT - 1)])
    this.#read.set(result, { server, method, page })
    return page
  }

  /** Remembers a page for a caller. */
  keep(who: string, { server }: Member, call: Pick<Call, 'method' | 'params'>, page: ListPage): void {
    const key = keyOf(who, server, call)
    if (this.#pages.get(key)?.page === page) return
    this.#pages.keep(key, { bytes: page.bytes, page })
    const kin = this.#kin.get(personIn(who)) ?? []
    if (kin[0] !== who) this.#kin.set(personIn(who), [who, ...kin.filter((one) => one !== who)].slice(0, MAX_KIN))
  }

  /** The last page that a caller received; undefined if there is none. */
  known(who: string, { server }: Member, call: Pick<Call, 'method' | 'params'>): ListPage | undefined {
    return this.#pages.get(keyOf(who, server, call))?.page
  }

  /** All remembered pages of a list for a caller, in order. */
  *#all(who: string, member: Member, method: string): Generator<ListPage> {
    let params = OWN
    for (let pages = 0; pages < MAX_PAGES; pages++) {
      const page = this.known(who, member, { method, params })
      if (!page) return
      yield page
      if (page.next === undefined) return
      params = edit(OWN, { cursor: page.next })
    }
  }

  /** Whether a remembered page of a list for a caller has something, by the names or URIs of its items. */
  has(who: string, member: Member, method: string, test: Has): boolean {
    for (const { ids } of this.#all(who, member, method)) if (test(ids)) return true
    return false
  }

  /** As `has`, for the same person with other capabilities. The lists may differ from the caller's. */
  kinHas(who: string, member: Member, method: string, test: Has): boolean {
    const kin = this.#kin.get(personIn(who)) ?? []
    return kin.some((one) => one !== who && this.has(one, member, method, test))
  }

  learnDiscovered(who: string, { server }: Member, result: Payload): void {
    this.#discovered.keep(`${who} ${server}`, { bytes: sizeOf(result), result })
  }

  discovered(who: string, { server }: Member): Payload | undefined {
    return this.#discovered.get(`${who} ${server}`)?.result
  }

  /** Drops everything: names may have changed. */
  clear(): void {
    this.#recent.clear()
    this.#read = new WeakMap()
    this.#pages.clear()
  }

  close(): void {
    this.#recent.clear()
    this.#pages.close()
    this.#discovered.close()
  }
}

function keyOf(who: string, server: string, { method, params }: Pick<Call, 'method' | 'params'>): string {
  const cursor = raw(params, 'cursor')
  return `${who} ${server} ${method}${cursor === undefined ? '' : ` ${digest(cursor)}`}`
}
