/** Answers list requests of a group with the merged lists of its servers. */

import { digest } from '../../base/crypto/digest.js'
import { Recent } from '../../base/rpc/memoize.js'
import { edit, type Json, NO_ORIGIN, type Payload, parseObject, raw, write } from '../../base/rpc/splice.js'
import type { CacheHint, Call, Final } from '../../mcp/protocol/call.js'
import { isFirst } from '../../mcp/protocol/listed.js'
import { CountedCache } from '../policy/counted-cache.js'
import { type MemberQuestion, unaddressed } from './asking.js'
import { Cursors } from './cursors.js'
import type { Inside } from './inside.js'
import { LeftOut, mayCollide } from './left-out.js'
import { groupList, type ListedItem } from './list-page.js'
import type { ReadPage } from './listings.js'
import { activeIn, type Member } from './member.js'
import { type Part, Parts } from './member-lists.js'
import { joinedLists, joinedMeta, leastHint } from './merge.js'
import { checkRequired, type Missing, noteMissing, unavailable } from './missing.js'
import { type ReadList, WholeLists } from './whole-lists.js'

/** A server whose list a caller did not get. */
export interface Unheard {
  member: Member
  /** The server may still answer. */
  isLate: boolean
}

/** The complete list of one server. */
export interface WholeList {
  member: Member
  /** Equal for equal items. */
  key: string
  /** As clients see them. */
  items: readonly ListedItem[]
}

/** The complete list of all servers. */
export interface Whole {
  /** In the order of the group. */
  lists: readonly WholeList[]
  /** Servers whose list is missing, or was not read to its end (cut). */
  missing: readonly { server: string; isCut: boolean }[]
  meta: Json | undefined
  cache: CacheHint
}

/** The names or URIs in the lists of all servers. */
export interface ReadNames {
  ids: ReadonlyMap<Member, readonly ReadonlySet<string>[]>
  /** Servers without any page. */
  unheard: readonly Unheard[]
  /** Whether all of them are remembered for the caller now. */
  isKept: boolean
}

/** Most bytes of a page. The servers that are left come on the next page. */
const MAX_PAGE_BYTES = 4 * 1024 * 1024
/** Most remembered merged lists, and their bytes. Callers with the same tools share a list. */
const MAX_JOINED_LISTS = 64
const MAX_JOINED_BYTES = 16 * 1024 * 1024

export class Lists {
  readonly #inside: Inside
  readonly #cursors: Cursors
  readonly #parts: Parts
  readonly #wholeLists: WholeLists
  readonly #leftOut: LeftOut
  /** Merged lists by the contents of their pages. */
  readonly #joined: CountedCache<{ bytes: number; list: Payload }>
  /** Lists that were not read to their end, by caller, server and method: they are not read ahead again. */
  readonly #isCut = new Recent<true>()

  constructor(inside: Inside) {
    const { name, keys, memory, log } = inside
    this.#inside = inside
    this.#cursors = new Cursors(name, keys)
    this.#parts = new Parts(inside)
    this.#leftOut = new LeftOut(inside)
    this.#wholeLists = new WholeLists({ parts: this.#parts, memory, log })
    this.#joined = new CountedCache({ memory, max: MAX_JOINED_LISTS, maxBytes: MAX_JOINED_BYTES })
  }

  /**
   * The answer to a list: the next page of each server that has more. Rejects with a Fault if the cursor is invalid, or if a
   * required server is missing.
   */
  async page(call: Call): Promise<Final> {
    const { method, params, log } = call
    const { plan, identity } = this.#inside
    const cursor = raw(params, 'cursor')
    const places = this.#cursors.opened(plan(), method, cursor)
    const parts = await this.#parts.some(call, places, MAX_PAGE_BYTES)
    this.#check(parts, isFirst(cursor))
    const left = [
      // A page that names itself as the next one is the last one.
      ...parts.flatMap(({ member, next }, i) =>
        next === undefined || next === places[i]?.cursor ? [] : { member, cursor: next },
      ),
      ...places.slice(parts.length),
    ]
    if (method === 'tools/list')
      this.#inside.log.large(
        parts.flatMap(({ member: { server }, cursor, page }) =>
          page ? { server, cursor, characters: page.text.length, count: page.items.length } : [],
        ),
      )
    const missing = parts.filter((part) => part.missing)
    if (missing.length === 0 && left.length === 0 && isFirst(cursor)) return this.#joinedOf(parts, method)
    noteMissing(log, missing)
    await this.#readAhead(call, method, parts)
    const result = edit(NO_ORIGIN, {
      [groupList(method).key]: joinedLists(this.#shown(parts, method)),
      nextCursor: left.length === 0 ? undefined : this.#cursors.sealed(plan(), method, left),
      _meta: joinedMeta(
        parts.flatMap(({ about }) => about ?? []),
        unavailable(missing),
      ),
    })
    const hints = missing.length > 0 ? [] : parts.flatMap(({ page, hint }) => (page ? [hint] : []))
    return { kind: 'result', result, server: identity(), cache: leastHint(hints) }
  }

  /** The answer if each server has one page, and none is missing. */
  #joinedOf(parts: readonly Part[], method: string): Final {
    const used = parts.filter(({ page }) => page)
    const meta = joinedMeta(used.flatMap(({ about }) => about ?? []))
    const key = [method, ...used.map(({ page }) => page?.content), meta].join(' ')
    let joined = this.#joined.get(key)
    if (!joined) {
      const items = joinedLists(this.#shown(used, method))
      const text = write(edit(NO_ORIGIN, { [groupList(method).key]: items, _meta: meta }))
      joined = { bytes: text.length + key.length, list: parseObject(text) }
      this.#joined.keep(key, joined)
    }
    const cache = leastHint(used.map(({ hint }) => hint))
    return { kind: 'result', result: joined.list, server: this.#inside.identity(), cache }
  }

  /** Drops the merged lists: equal parts may merge differently now. */
  clear(): void {
    this.#joined.clear()
  }

  close(): void {
    this.#joined.close()
  }

  /** Remembers a page that came after its callers had stopped waiting. */
  learn(question: MemberQuestion, result: Payload): Promise<ReadPage> {
    return this.#parts.learn(question, result)
  }

  /**
   * Calls `use` with the complete list of all servers, whose pages are counted in the ledger until it has returned. Rejects
   * as `page` does.
   */
  whole<T>(call: Call, method: string, use: (whole: Whole) => T | Promise<T>): Promise<T> {
    return this.#readAll(call, method, (lists) => {
      const firsts = lists.flatMap(({ parts: [first] }) => first ?? [])
      this.#check(firsts, true)
      const missing = lists.flatMap(missingIn)
      noteMissing(call.log, missing)
      const parts = lists.flatMap((list) => list.parts)
      const items = this.#leftOut.itemsOf(parts, method)
      const shown = new Map(parts.map((part, i) => [part, items[i] ?? []]))
      return use({
        lists: lists.map((list) => ({
          member: list.member,
          key: list.parts.map((part) => keyOf(part, shown.get(part) ?? [])).join(' '),
          items: list.parts.flatMap((part) => shown.get(part) ?? []),
        })),
        missing: missing.map(({ member: { server }, isCut }) => ({ server, isCut })),
        meta: joinedMeta(
          firsts.flatMap(({ about }) => about ?? []),
          unavailable(missing),
        ),
        cache: leastHint(missing.length > 0 ? [] : parts.flatMap(({ page, hint }) => (page ? [hint] : []))),
      })
    })
  }

  /** The names or URIs in a list of all servers. Remembers them for the caller, if there is room. */
  names(call: Call, method: string): Promise<ReadNames> {
    const { listings } = this.#inside
    return this.#readAll(call, method, (lists) => ({
      ids: new Map(
        lists.map(({ member, parts }) => [
          member,
          parts.flatMap(({ page, isLikely, missing }) => (isLikely && missing ? [] : (page?.ids ?? []))),
        ]),
      ),
      unheard: lists.flatMap(({ member, parts: [first] }) =>
        first?.missing && (!first.page || first.isLikely) ? { member, isLate: first.missing.isLate } : [],
      ),
      isKept: lists.every(({ member, parts, cut }) => {
        const [first] = parts
        return cut !== undefined || !first?.page || listings.isWhole(first.who, member, method)
      }),
    }))
  }

  #readAll<T>(call: Call, method: string, use: (lists: readonly ReadList[]) => T | Promise<T>): Promise<T> {
    const places = activeIn(this.#inside.plan()).map((member) => ({ member }))
    return this.#wholeLists.read(unaddressed(call, method), places, use)
  }

  /**
   * Without prefixes, a page must not list a name or URI that is on a later page of an earlier server. Reads the names of servers
   * that come before one on this page and are not on it with their last page.
   */
  async #readAhead(call: Call, method: string, parts: readonly Part[]): Promise<void> {
    const last = parts.findLast(({ page }) => page)
    if (!last || !mayCollide(this.#inside.plan(), method)) return
    const members = activeIn(this.#inside.plan())
    const { listings } = this.#inside
    const over = new Set(parts.flatMap(({ member, next }) => (next === undefined ? member : [])))
    const unread = members
      .slice(0, members.indexOf(last.member))
      .filter((member) => !over.has(member) && !listings.isWhole(last.who, member, method))
    const fresh = unread.filter(({ server }) => !this.#isCut.get(`${last.who} ${server} ${method}`))
    if (fresh.length === 0) return
    const places = fresh.map((member) => ({ member }))
    await this.#wholeLists.read(unaddressed(call, method), places, (lists) => {
      for (const { member, cut } of lists) if (cut) this.#isCut.set(`${last.who} ${member.server} ${method}`, true)
    })
  }

  /** Throws a Fault if a required server is missing, or if all have failed on the first page and nothing is known. */
  #check(parts: readonly Part[], isFirstPage: boolean): void {
    const plan = this.#inside.plan()
    checkRequired(plan, parts)
    if (!isFirstPage) return
    const [first] = parts
    // A single server decides who may see its lists, even remembered ones.
    if (first?.missing?.why.refused && plan.members.length === 1) throw first.missing.why
    const isNothing = parts.every(({ page, missing }) => missing && !missing.isLate && !page)
    if (isNothing && first?.missing) throw first.missing.why
  }

  /** The items of parts as clients see them, as JSON text for each part. */
  #shown(parts: readonly Part[], method: string): string[] {
    const items = this.#leftOut.itemsOf(parts, method)
    return parts.map(({ page }, i) => {
      const shown = items[i]
      return !page || shown === page.items ? (page?.text ?? '') : (shown ?? []).map(({ text }) => text).join(',')
    })
  }
}

/** A server whose list is missing, or was not read to its end. */
function missingIn({ member, parts, cut }: ReadList): { member: Member; missing: Missing; isCut: boolean }[] {
  if (cut) return [{ member, missing: { kind: 'missing', why: cut, isLate: false }, isCut: true }]
  return parts.flatMap(({ missing }) => (missing ? { member, missing, isCut: false } : [])).slice(0, 1)
}

/** Identifies the items of a part. Without prefixes, some of its page may be left out. */
function keyOf({ page }: Part, items: readonly ListedItem[]): string {
  if (!page || items === page.items) return page?.content ?? ''
  return `${page.content} ${digest(JSON.stringify(items.map(({ shown }) => shown)))}`
}
