/** Derives the changes of a message from the edits of its object, without comparing texts as a whole. */

import { tokenOf } from '../../base/rpc/pointer.js'
import { cut, detach, type JsonSource } from '../../base/rpc/source.js'
import { type List, type Payload, payloadAt, raw, startOf, type Value, write } from '../../base/rpc/splice.js'
import type { Change } from './events.js'

/** Most cached places, and most characters of their pointers. Further places are not cached. */
const MAX_PLACES = 10_000
const MAX_CHARACTERS = 1024 * 1024
/** Most characters of a name that are shown. Places with longer names are not cached. */
const MAX_SHOWN_NAME = 200

/** A place in a message. Messages of a kind share their places, so places are compared by identity. */
export class Place {
  /** JSON Pointer (RFC 6901) into the received text, or to where a new member is added. */
  readonly at: string
  /** The pointer with `*` for each position in a list, for tables. */
  readonly path: string
  /** Whether the place is cached, so that the next message gets the same object. */
  readonly isKept: boolean
  readonly #count: { places: number; characters: number }
  #below: Map<string | number, Place> | undefined

  constructor(at = '', path = at, count = { places: 0, characters: 0 }, isKept = true) {
    this.at = at
    this.path = path
    this.isKept = isKept
    this.#count = count
  }

  /** The place of a member of this object. */
  member(name: string): Place {
    return this.#below?.get(name) ?? this.#add(name, shortToken(name))
  }

  /** The place of an element of this list. */
  element(index: number): Place {
    return this.#below?.get(index) ?? this.#add(index, '*')
  }

  #add(key: string | number, step: string): Place {
    const count = this.#count
    const token = typeof key === 'number' ? String(key) : step
    const characters = this.at.length + token.length + this.path.length + step.length + 2
    const hasRoom = count.places < MAX_PLACES && count.characters + characters <= MAX_CHARACTERS
    const isKept = this.isKept && hasRoom && String(key).length <= MAX_SHOWN_NAME
    const place = new Place(detach(`${this.at}/${token}`), detach(`${this.path}/${step}`), count, isKept)
    if (!isKept) return place
    count.places++
    count.characters += characters
    this.#below ??= new Map()
    this.#below.set(typeof key === 'string' ? detach(key) : key, place)
    return place
  }
}

function shortToken(name: string): string {
  return tokenOf(name.length > MAX_SHOWN_NAME ? `${name.slice(0, MAX_SHOWN_NAME - 1)}…` : name)
}

export type Op = Change['op']

/** An element of a list that was removed or replaced. */
export interface Became {
  before: Payload
  after: Payload | undefined
}

/** A list of changes. */
export interface Collected<T> {
  /** The list with one more change. */
  with(op: Op, place: Place, became?: Became): T
}

/** Adds the changes of the object at this place to the list, in no particular order. Equal texts are no change. */
export function changesIn<T extends Collected<T>>(payload: Payload, place: Place, list: T): T {
  if (!payload.edits) return list
  let found = list
  for (const [key, value] of payload.edits) {
    const start = startOf(payload, key)
    if (value === undefined) {
      if (start >= 0) found = found.with('remove', place.member(key))
    } else if (start < 0) found = found.with('add', place.member(key))
    else if (isFrom(value, payload.source, start)) found = inside(value, place.member(key), found)
    else if (text(value) !== raw({ ...payload, edits: undefined }, key))
      found = found.with('replace', place.member(key))
  }
  return found
}

function inside<T extends Collected<T>>(nested: Payload | List, place: Place, list: T): T {
  if ('table' in nested) return changesIn(nested, place, list)
  const { source, elements, replaced } = nested
  // If one element became several, the others have moved: that counts as a replacement of the whole list.
  for (const payloads of replaced.values()) if (payloads.length > 1) return list.with('replace', place)
  let found = list
  for (const [index, [after]] of replaced) {
    const span = elements[index]
    if (!span) continue
    const element = place.element(index)
    if (after && isFrom(after, source, span.start)) found = changesIn(after, element, found)
    else if (!after || write(after) !== cut(source, span.start, span.end)) {
      const before = payloadAt(source, span)
      found = found.with(after ? 'replace' : 'remove', element, before && { before, after })
    }
  }
  return found
}

/** Whether a value is the one at this position, possibly edited. */
function isFrom(value: Value, source: JsonSource, start: number): value is Payload | List {
  return typeof value === 'object' && value.source === source && value.start === start
}

function text(value: Value): string {
  return typeof value === 'string' ? value : write(value)
}
