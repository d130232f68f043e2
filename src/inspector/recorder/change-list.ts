/** The changes of a message, in order. Equal lists share one object, because messages of one kind have the same changes. */
import type { Became, Collected, Op, Place } from './changes.js'
import type { Change } from './events.js'

/** The rule of a change. */
type RuleOf = (op: Op, path: string, became?: Became) => string

/** Maximum number of changes that are listed for one message. `more` counts those beyond. */
export const MAX_CHANGES = 100
/** Most cached lists. Further lists are not cached. */
const MAX_CHANGE_LISTS = 5_000
/** Approximate characters of the JSON of a change, without its pointer. */
const CHANGE_JSON = 60
/** Approximate bytes of a change, without its pointer. */
const CHANGE_BYTES = 250

/** A list, with the lists that have one more change. */
export class ChangeList implements Collected<ChangeList> {
  /** Number of further changes, which are not listed. */
  readonly more: number = 0
  /** Approximate bytes of this list if an event stores it. Cached lists count as 0. */
  readonly weight: number = 0
  /** Approximate characters of its JSON. */
  readonly size: number = 0
  readonly #ruleOf: RuleOf
  readonly #before: ChangeList | undefined
  readonly #last: Change | undefined
  readonly #length: number
  readonly #count: { lists: number }
  #next: Record<Op, Map<Place, ChangeList>> | undefined
  #all: readonly Change[] | undefined

  /** An empty list, or a list with one more change than `before`. Without `last`, that change is only counted. */
  constructor(ruleOf: RuleOf, before?: ChangeList, last?: Change, isKept = before === undefined) {
    this.#ruleOf = ruleOf
    this.#before = before
    this.#last = last
    this.#length = before ? before.#length + (last ? 1 : 0) : 0
    this.#count = before ? before.#count : { lists: 0 }
    if (before) this.more = before.more + (last ? 0 : 1)
    if (before) this.size = before.size + (last ? CHANGE_JSON + last.at.length : 0)
    if (!isKept) this.weight = (before?.weight ?? 0) + CHANGE_BYTES + (last?.at.length ?? 0)
  }

  get all(): readonly Change[] {
    this.#all ??= this.#before ? [...this.#before.all, ...(this.#last ? [this.#last] : [])] : []
    return this.#all
  }

  with(op: Op, place: Place, became?: Became): ChangeList {
    const known = became ? undefined : this.#next?.[op].get(place)
    return known ?? this.#add(op, place, became)
  }

  #add(op: Op, place: Place, became: Became | undefined): ChangeList {
    if (this.#length >= MAX_CHANGES) return new ChangeList(this.#ruleOf, this, undefined, false)
    const change = { at: place.at, op, rule: this.#ruleOf(op, place.path, became) }
    const isKept = !became && place.isKept && this.weight === 0 && this.#count.lists < MAX_CHANGE_LISTS
    const list = new ChangeList(this.#ruleOf, this, change, isKept)
    if (!isKept) return list
    this.#count.lists++
    this.#next ??= { add: new Map(), remove: new Map(), replace: new Map() }
    this.#next[op].set(place, list)
    return list
  }
}
