/**
 * Keeps the complete lists of a group's servers beyond a restart of the bridge, one record for each server and person. A record
 * is found only with the same person, server, names and version, so whatever changes one of them begins with nothing.
 */

import { digest } from '../../base/crypto/digest.js'
import { Recent } from '../../base/rpc/memoize.js'
import { edit, type Json, NO_ORIGIN, parseObject, write } from '../../base/rpc/splice.js'
import type { ListStore } from '../../mcp/ports/list-store.js'
import { personIn } from '../policy/who.js'
import { GROUP_LISTS, ListPage } from './list-page.js'
import type { Listings } from './listings.js'
import type { GroupPlan, Member } from './member.js'

export interface KeptListsOptions {
  store: ListStore
  listings: Listings
  version: string
  plan(): GroupPlan
}

/** What a server listed to the callers of one person. Callers are what their keys have after the person. */
interface KeptRecord {
  discovered: [caller: string, result: Json][]
  pages: { hash: string; items: [id: string | null, shown: string | null, text: Json][] }[]
  lists: { caller: string; method: string; pages: [index: number, next: Json | null][] }[]
}

/** Milliseconds for which changes are gathered before they are kept. */
const KEEP_AFTER = 1_000
/** Milliseconds after which an unchanged record is kept again, so that it stays. */
const KEEP_AGAIN = 86_400_000
/** Longest record. The lists of a server with more are not kept. */
const MAX_RECORD = 4 * 1024 * 1024
/** Most records that wait to be kept. */
const MAX_CHANGED = 1_000

export class KeptLists {
  readonly #options: KeptListsOptions
  /** Records that have been read, or are being read, by person and server. */
  #read = new Recent<Promise<void> | true>({ max: MAX_CHANGED })
  /** When records were last kept, by person and server. */
  #kept = new Recent<number>({ max: MAX_CHANGED })
  readonly #changed = new Map<string, { person: string; member: Member }>()
  #timer: NodeJS.Timeout | undefined

  constructor(options: KeptListsOptions) {
    this.#options = options
  }

  /** Resolves when the lists that are kept for the person of a caller are known; undefined if they are. */
  restored(who: string, member: Member): Promise<void> | undefined {
    if (member.lists === undefined) return undefined
    const id = idOf(who, member)
    const read = this.#read.get(id)
    if (read) return read === true ? undefined : read
    const reading = this.#restore(personIn(who), member).finally(() => {
      if (this.#read.get(id) === reading) this.#read.set(id, true)
    })
    this.#read.set(id, reading)
    return reading
  }

  /** To be called when a server has listed something to a caller: whether that is new. */
  learned(who: string, member: Member, isNew: boolean): void {
    if (member.lists === undefined) return
    const id = idOf(who, member)
    const last = this.#kept.get(id)
    if (!isNew && last !== undefined && performance.now() - last < KEEP_AGAIN) return
    if (this.#changed.size >= MAX_CHANGED && !this.#changed.has(id)) return
    this.#changed.set(id, { person: personIn(who), member })
    this.#timer ??= setTimeout(() => void this.flush(), KEEP_AFTER).unref()
  }

  /** Keeps what has changed. Never rejects. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const changed = [...this.#changed.values()]
    this.#changed.clear()
    await Promise.all(
      changed.map(({ person, member }) => {
        const body = this.#recordOf(person, member)
        if (body === undefined || !this.#options.plan().members.includes(member)) return undefined
        this.#kept.set(idOf(`${person}/`, member), performance.now())
        const key = this.#keyOf(person, member)
        return this.#options.store.write(key, `${digest(key + body)}\n${body}`)
      }),
    )
  }

  /** To be called when the servers or their names have changed: their records are others. */
  change(): void {
    this.#read = new Recent({ max: MAX_CHANGED })
    this.#kept = new Recent({ max: MAX_CHANGED })
  }

  close(): void {
    clearTimeout(this.#timer)
    this.#changed.clear()
  }

  /** What the names in the lists depend on, too: a record has the items as clients see them. */
  #keyOf(person: string, { lists, server, prefix }: Member): string {
    const { bareNames, bareUris, members } = this.#options.plan()
    return digest(
      JSON.stringify([this.#options.version, person, server, lists, prefix, bareNames, bareUris, members.length > 1]),
    )
  }

  async #restore(person: string, member: Member): Promise<void> {
    const key = this.#keyOf(person, member)
    const text = await this.#options.store.read(key)
    if (text === undefined || !this.#options.plan().members.includes(member)) return
    const end = text.indexOf('\n')
    const body = text.slice(end + 1)
    // Half of a file, or one of somebody else.
    if (text.slice(0, end) !== digest(key + body))
      return this.#options.store.unusable(key, 'it is not as it was written')
    this.#use(person, member, JSON.parse(body) as KeptRecord)
  }

  /** What the servers have listed meanwhile is newer. */
  #use(person: string, member: Member, { discovered, pages, lists }: KeptRecord): void {
    const { listings } = this.#options
    for (const [caller, result] of discovered) {
      const who = `${person}/${caller}`
      if (!listings.discovered(who, member)) listings.learnDiscovered(who, member, parseObject(result))
    }
    // The last one comes first among the callers of its person.
    for (const { caller, method, pages: own } of lists.toReversed()) {
      const who = `${person}/${caller}`
      let params = NO_ORIGIN
      for (const [index, next] of own) {
        const { hash, items } = pages[index] as KeptRecord['pages'][number]
        if (!listings.known(who, member, { method, params })) {
          const shown = items.map(([id, name, text]) => ({ id: id ?? undefined, shown: name ?? undefined, text }))
          const page = new ListPage(listings.contentOf(member, method, hash), shown, [])
          listings.keep(who, member, { method, params }, { page, next: next ?? undefined })
        }
        if (next !== null) params = edit(NO_ORIGIN, { cursor: next })
      }
    }
  }

  /** The record as JSON; undefined if there is nothing complete to keep, or too much. */
  #recordOf(person: string, member: Member): string | undefined {
    const { listings } = this.#options
    const record: KeptRecord = { discovered: [], pages: [], lists: [] }
    const indexes = new Map<ListPage, number>()
    let length = 0
    for (const who of listings.callersOf(person)) {
      const caller = who.slice(person.length + 1)
      const discovered = listings.discovered(who, member)
      if (discovered) record.discovered.push([caller, write(discovered)])
      for (const method of GROUP_LISTS.keys()) {
        const whole = listings.wholeOf(who, member, method)
        if (!whole) continue
        const pages = whole.map(({ page, next }): [number, Json | null] => {
          let index = indexes.get(page)
          if (index === undefined) {
            index = record.pages.length
            indexes.set(page, index)
            length += page.text.length
            const hash = page.content.slice(page.content.lastIndexOf(' ') + 1)
            record.pages.push({
              hash,
              items: page.items.map(({ id, shown, text }) => [id ?? null, shown ?? null, text]),
            })
          }
          return [index, next ?? null]
        })
        record.lists.push({ caller, method, pages })
        if (length > MAX_RECORD) return undefined
      }
    }
    if (record.lists.length === 0) return undefined
    const text = JSON.stringify(record)
    return text.length > MAX_RECORD ? undefined : text
  }
}

function idOf(who: string, { server }: Member): string {
  return `${personIn(who)} ${server}`
}
