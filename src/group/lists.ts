/** Answers list requests of a group with the merged lists of its servers. */

import type { SealKey } from '../crypto/seal.js'
import { MAX_PAGES } from '../limits/constants.js'
import type { Memory } from '../limits/memory.js'
import { CountedCache } from '../policy/counted-cache.js'
import type { CacheHint, Call, Final } from '../protocol/call.js'
import { edit, type Json, OWN, type Payload, parseObject, raw, write } from '../rpc/splice.js'
import { type Asked, type Asking, type MemberQuestion, unaddressed } from './asking.js'
import { Cursors } from './cursors.js'
import { groupList, type ListedItem, type Listings, type ListPage } from './listings.js'
import { activeIn, type GroupPlan, type Member } from './member.js'
import { itemsOf, joinedLists, joinedMeta, leastHint } from './merge.js'
import { checkRequired, type Missing, noteMissing, unavailable } from './missing.js'
import type { Replace } from './places.js'
import type { UnusableNames } from './unusable-names.js'

export interface ListsOptions {
  group: string
  keys: readonly SealKey[]
  plan(): GroupPlan
  asking: Asking
  listings: Listings
  memory: Memory
  /** The group's own Implementation, as JSON. */
  identity(): Json
  /** Maps the names and URIs of a server to those of the group. */
  replaceFor(member: Member): Replace
  names: UnusableNames
}

/** The sources of one page of a merged list. */
interface Part {
  who: string
  member: Member
  page: ListPage | undefined
  missing: Missing | undefined
  result: Payload | undefined
  hint: CacheHint | undefined
}

/** A server whose list a caller did not get. */
export interface Unheard {
  member: Member
  /** The server may still answer. */
  isLate: boolean
}

/** The complete list of all servers. */
export interface Whole {
  pages: readonly ListPage[]
  /** As clients see them. */
  items: readonly ListedItem[]
  /** Servers that have not answered. */
  missing: readonly string[]
  meta: Json | undefined
  cache: CacheHint
}

/** Lists in which the names of two servers may collide. */
const NAMED: ReadonlySet<string> = new Set(['tools/list', 'prompts/list'])
/** Most remembered merged lists, and their bytes. Callers with the same tools share a list. */
const MAX_JOINED_LISTS = 64
const MAX_JOINED_BYTES = 16 * 1024 * 1024

export class Lists {
  readonly #options: ListsOptions
  readonly #cursors: Cursors
  /** Merged lists by the numbers of their pages. */
  readonly #joined: CountedCache<{ bytes: number; list: Payload }>

  constructor(options: ListsOptions) {
    const { group, keys, memory } = options
    this.#options = options
    this.#cursors = new Cursors(group, keys)
    this.#joined = new CountedCache({ memory, max: MAX_JOINED_LISTS, maxBytes: MAX_JOINED_BYTES })
  }

  /** The answer to a list. Rejects with a Fault if the cursor is invalid, or if a required server is missing. */
  async page(call: Call): Promise<Final> {
    const { method, params, log } = call
    const { plan, identity } = this.#options
    const members = activeIn(plan())
    const { left, first } = this.#cursors.opened(plan(), method, raw(params, 'cursor'))
    const parts = await this.#parts(call, left, first)
    this.#check(parts)
    const whole = left.length === members.length && first === undefined && this.#joinedOf(parts, method)
    if (whole) return whole
    const until = parts.findIndex(({ page }) => page?.next !== undefined)
    const used = until < 0 ? parts : parts.slice(0, until + 1)
    const last = used.at(-1)
    const next = last?.page?.next
    const missing = used.filter((part) => part.missing)
    noteMissing(log, missing)
    const result = edit(OWN, {
      [groupList(method).key]: joinedLists(
        used.map((part) => this.#shown(part, method, this.#takenBefore(part, method, members))),
      ),
      nextCursor: next === undefined || !last ? undefined : this.#cursors.sealed(plan(), method, last.member, next),
      _meta: joinedMeta(
        used.flatMap((part) => part.result ?? []),
        unavailable(missing),
      ),
    })
    const hints = missing.length > 0 ? [] : used.flatMap((part) => (part.page ? [part.hint] : []))
    return { kind: 'result', result, server: identity(), cache: leastHint(hints) }
  }

  /** The answer if each server has one page and none is missing; otherwise undefined. */
  #joinedOf(parts: readonly Part[], method: string): Final | undefined {
    if (parts.some(({ missing, page }) => missing || page?.next !== undefined)) return undefined
    const used = parts.filter(({ page }) => page)
    const meta = joinedMeta(used.flatMap(({ result }) => result ?? []))
    const key = [method, ...used.map(({ page }) => page?.number), meta].join(' ')
    let joined = this.#joined.get(key)
    if (!joined) {
      const items = parts.map((part, i) =>
        this.#shown(part, method, (id) => parts.slice(0, i).some(({ page }) => page?.ids.has(id))),
      )
      const text = write(edit(OWN, { [groupList(method).key]: joinedLists(items), _meta: meta }))
      joined = { bytes: text.length + key.length, list: parseObject(text) }
      this.#joined.keep(key, joined)
    }
    const cache = leastHint(used.map(({ hint }) => hint))
    return { kind: 'result', result: joined.list, server: this.#options.identity(), cache }
  }

  /** Drops the merged lists: equal parts may merge differently now. */
  clear(): void {
    this.#joined.clear()
  }

  close(): void {
    this.#joined.close()
  }

  /** The complete list of all servers. Rejects as `page` does. */
  async whole(call: Call, method: string): Promise<Whole> {
    const members = activeIn(this.#options.plan())
    const parts = await this.#readEach(unaddressed(call, method), members)
    const firsts = parts.flatMap(([first]) => first ?? [])
    this.#check(firsts)
    const missing = parts.flatMap((pages) => pages.find((part) => part.missing) ?? [])
    noteMissing(call.log, missing)
    const found = parts.flat()
    return {
      pages: found.flatMap(({ page }) => page ?? []),
      items: found.flatMap((part) => this.#itemsOf(part, method, this.#takenBefore(part, method, members))),
      missing: missing.map(({ member: { server } }) => server),
      meta: joinedMeta(
        firsts.flatMap(({ result }) => result ?? []),
        unavailable(missing),
      ),
      cache: leastHint(missing.length > 0 ? [] : found.flatMap(({ page, hint }) => (page ? [hint] : []))),
    }
  }

  /**
   * Reads all pages of a list of all servers, and remembers them for the caller. Resolves to the servers without any
   * page.
   */
  async readAll(call: Call, method: string): Promise<readonly Unheard[]> {
    const parts = await this.#readEach(unaddressed(call, method), activeIn(this.#options.plan()))
    return parts
      .flat()
      .flatMap(({ member, page, missing }) => (missing && !page ? { member, isLate: missing.isLate } : []))
  }

  /** All pages of these servers. */
  #readEach(listing: Call, members: readonly Member[]): Promise<Part[][]> {
    return Promise.all(
      members.map(async (member) => {
        const parts: Part[] = []
        let cursor: Json | undefined
        do {
          const [part] = await this.#parts(listing, [member], cursor)
          if (!part) break
          parts.push(part)
          cursor = part.page?.next
        } while (cursor !== undefined && parts.length < MAX_PAGES)
        return parts
      }),
    )
  }

  async #parts(call: Call, members: readonly Member[], first: Json | undefined): Promise<Part[]> {
    const answers = await this.#options.asking.ask(call, members, { first })
    return answers.map(({ question, asked }) => this.#part(question, asked))
  }

  #part(question: MemberQuestion, asked: Asked): Part {
    const { who, member, call } = question
    if (asked.kind === 'answer') {
      const { result, cache: hint } = asked.reply
      return { who, member, page: this.learn(question, result), missing: undefined, result, hint }
    }
    const missing = asked.kind === 'missing' ? asked : undefined
    // Remembered items of a missing server stay listed.
    const page = missing && this.#options.listings.known(who, member, call)
    return { who, member, page, missing, result: undefined, hint: undefined }
  }

  /** Remembers a page, unless its server has been replaced in the meantime: the new one may hide some items. */
  learn({ who, member, call }: MemberQuestion, result: Payload): ListPage {
    const { listings, plan, replaceFor, names } = this.#options
    const replace = replaceFor(member)
    const page = listings.read(member, call, result, replace)
    if (plan().members.includes(member)) listings.keep(who, member, call, page)
    if (call.method === 'tools/list') names.measure(member, page, (name) => replace('name', name))
    return page
  }

  /** Throws a Fault if a required server is missing, or if all have failed and nothing is known. */
  #check(parts: readonly Part[]): void {
    const plan = this.#options.plan()
    checkRequired(plan, parts)
    const [first] = parts
    // A single server decides who may see its lists, even remembered ones.
    if (first?.missing?.why.refused && plan.members.length === 1) throw first.missing.why
    const isNothing = parts.every(({ page, missing }) => missing && !missing.isLate && !page)
    if (isNothing && first?.missing) throw first.missing.why
  }

  /** The items of a part as clients see them, as JSON text. */
  #shown(part: Part, method: string, isTaken: (id: string) => boolean): string {
    const { page } = part
    if (!page) return ''
    if (!this.#mayCollide(method)) return page.text
    const items = this.#itemsOf(part, method, isTaken)
    if (items.length === page.items.length) return page.text
    return itemsOf(joinedLists(items.map(({ text }) => text)))
  }

  /** The items of a part. Without prefixes, names that an earlier server has are omitted. */
  #itemsOf({ member, page }: Part, method: string, isTaken: (id: string) => boolean): readonly ListedItem[] {
    if (!page || !this.#mayCollide(method)) return page?.items ?? []
    return page.items.filter(({ id }) => {
      if (id === undefined || !isTaken(id)) return true
      this.#options.names.hide(member, method, id)
      return false
    })
  }

  #mayCollide(method: string): boolean {
    return this.#options.plan().bareNames && NAMED.has(method)
  }

  /** Returns a function that tells whether an earlier server has a name, by the lists that the caller got. */
  #takenBefore({ who, member }: Part, method: string, members: readonly Member[]): (id: string) => boolean {
    const { listings } = this.#options
    const earlier = members.slice(0, members.indexOf(member))
    return (id) => earlier.some((one) => listings.has(who, one, method, (ids) => ids.has(id)))
  }
}
