/**
 * Leaves out items of lists that clients have from elsewhere: those that are on an earlier page of their server, and without
 * prefixes those of an earlier server.
 */
import { EVENT_LIST } from '../../mcp/protocol/methods.js'
import type { Inside } from './inside.js'
import { type ListedItem, UNIQUE } from './list-page.js'
import { activeIn, type GroupPlan, type Member } from './member.js'
import type { Part } from './member-lists.js'

/** Lists in which the names or the URIs of two servers may collide. */
const NAMED: ReadonlySet<string> = new Set(['tools/list', 'prompts/list', EVENT_LIST])
const ADDRESSED: ReadonlySet<string> = new Set(['resources/list', 'resources/templates/list'])

/** Whether names or URIs of two servers may collide in a list. */
export function mayCollide({ members, bareNames, bareUris }: GroupPlan, method: string): boolean {
  if (members.length < 2) return false
  return (bareNames && NAMED.has(method)) || (bareUris && ADDRESSED.has(method))
}

export class LeftOut {
  readonly #inside: Inside

  constructor(inside: Inside) {
    this.#inside = inside
  }

  /** The items of each part that clients get. Parts of one server have to be in the order of its pages. */
  itemsOf(parts: readonly Part[], method: string): (readonly ListedItem[])[] {
    const once = UNIQUE.has(method) ? this.#once(parts, method) : parts.map(({ page }) => page?.items ?? [])
    return mayCollide(this.#inside.plan(), method) ? this.#untaken(parts, once, method) : once
  }

  /** The items of each part without those that are on an earlier page of their server. */
  #once(parts: readonly Part[], method: string): (readonly ListedItem[])[] {
    const { listings } = this.#inside
    /** By server, the names or URIs of its earlier pages. */
    const earlier = new Map<Member, Set<string>>()
    return parts.map(({ who, member, cursor, next, page }) => {
      if (!page) return []
      // Most lists have one page.
      if (cursor === undefined && next === undefined) return page.items
      const remembered = () => (cursor === undefined ? [] : listings.idsBefore(who, member, method, cursor))
      const before = earlier.get(member) ?? joined(remembered())
      const left = this.#without(page.items, before, (id) => this.#inside.log.hide(member, method, id, 'twice'))
      for (const id of page.ids) before.add(id)
      earlier.set(member, before)
      return left
    })
  }

  /** The items of each part without names and URIs that an earlier server has, by the lists that the caller got. */
  #untaken(
    parts: readonly Part[],
    items: readonly (readonly ListedItem[])[],
    method: string,
  ): (readonly ListedItem[])[] {
    const { listings, plan, log } = this.#inside
    const left = [...items]
    const taken = new Set<string>()
    for (const member of activeIn(plan())) {
      const own = parts.flatMap((part, at) => (part.member === member ? at : []))
      for (const at of own)
        left[at] = this.#without(left[at] ?? [], taken, (id) => log.hide(member, method, id, 'taken'))
      const who = parts[0]?.who
      const remembered = who === undefined ? [] : listings.idsOf(who, member, method)
      for (const ids of [...remembered, ...own.flatMap((at) => parts[at]?.page?.ids ?? [])])
        for (const id of ids) taken.add(id)
    }
    return left
  }

  /** Calls `leave` with each name or URI that is left out. */
  #without(
    items: readonly ListedItem[],
    others: ReadonlySet<string>,
    leave: (id: string) => void,
  ): readonly ListedItem[] {
    const left = items.filter(({ id }) => {
      if (id === undefined || !others.has(id)) return true
      leave(id)
      return false
    })
    return left.length === items.length ? items : left
  }
}

function joined(sets: readonly ReadonlySet<string>[]): Set<string> {
  const all = new Set<string>()
  for (const ids of sets) for (const id of ids) all.add(id)
  return all
}
