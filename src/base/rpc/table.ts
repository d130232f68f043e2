/** Finds values in the table of positions that a scan writes. */
import { cut, type JsonSource } from './source.js'

/** A half-open range of a JSON text. */
export interface JsonRange {
  start: number
  end: number
}

/** A member of an object. `at` is the start of its key; `start` and `end` enclose its value. */
export interface JsonMember extends JsonRange {
  key: string
  at: number
}

/**
 * The positions of values in a text: ROW numbers for each, in the order of the text. The first row is the outermost value;
 * the rows of its members or elements follow. The rows of the members of an object under a key of `descend`, and those of
 * the elements of an array under `elements`, follow its own row, up to its NEXT.
 */
export type Table = readonly number[]

/** The start of the key; in an array, the start of the element. */
export const AT = 0
/** The end of the key. Negative if the key is not written as it reads: it has an escape, or was set aside. */
const KEY_END = 1
/** Where the value starts, and where it ends. */
export const START = 2
export const END = 3
/** The row after those of the value's members. */
export const NEXT = 4
/** The length of a row. */
export const ROW = 5

const BACKSLASH = 0x5c
/** From this many rows on, an index by key is built. */
const MANY = 64

/** The row of the member with this key in the object at `row`; of equal keys the last, as with JSON.parse. -1 if there is none. */
export function find(source: JsonSource, table: Table, row: number, key: string): number {
  const { text } = source
  const end = table[row + NEXT] as number
  if (end - row > MANY * ROW) return indexOf(source, table, row).get(key) ?? -1
  let found = -1
  for (let at = row + ROW; at < end; at = table[at + NEXT] as number) {
    const start = table[at + AT] as number
    const length = (table[at + KEY_END] as number) - start - 2
    if (length < 0 ? keyAt(source, table, at) === key : length === key.length && text.startsWith(key, start + 1))
      found = at
  }
  return found
}

/** The key of the member at `row`. */
export function keyAt(source: JsonSource, table: Table, row: number): string {
  const start = table[row + AT] as number
  const end = table[row + KEY_END] as number
  return end < 0 ? unquote(cut(source, start, -end)) : source.text.slice(start + 1, end - 1)
}

/** Whether the key between two positions is written as it reads: it has no escape, and was not set aside. */
export function isWrittenAsRead(source: JsonSource, start: number, end: number): boolean {
  if (source.asides) return start === end || unquote(cut(source, start, end)).length === end - start - 2
  for (let at = start; at < end; at++) if (source.text.charCodeAt(at) === BACKSLASH) return false
  return true
}

/** The members of the object at `row`, in order. */
export function membersAt(source: JsonSource, table: Table, row = 0): JsonMember[] {
  const members: JsonMember[] = []
  const end = table[row + NEXT] as number
  for (let at = row + ROW; at < end; at = table[at + NEXT] as number)
    members.push({
      key: keyAt(source, table, at),
      at: table[at + AT] as number,
      start: table[at + START] as number,
      end: table[at + END] as number,
    })
  return members
}

/** The positions of the elements of the array at `row`, in order. */
export function elementsAt(table: Table, row = 0): JsonRange[] {
  const elements: JsonRange[] = []
  const end = table[row + NEXT] as number
  for (let at = row + ROW; at < end; at = table[at + NEXT] as number)
    elements.push({ start: table[at + START] as number, end: table[at + END] as number })
  return elements
}

/** The value of a string, from its JSON text. */
export function unquote(json: string): string {
  return json.includes('\\') ? (JSON.parse(json) as string) : json.slice(1, -1)
}

/** Indexes of large objects by key, built on demand, for each table. */
const indexes = new WeakMap<Table, Map<number, ReadonlyMap<string, number>>>()

function indexOf(source: JsonSource, table: Table, row: number): ReadonlyMap<string, number> {
  const known = indexes.get(table) ?? new Map<number, ReadonlyMap<string, number>>()
  const found = known.get(row)
  if (found) return found
  const index = new Map<string, number>()
  const end = table[row + NEXT] as number
  for (let at = row + ROW; at < end; at = table[at + NEXT] as number) index.set(keyAt(source, table, at), at)
  indexes.set(table, known.set(row, index))
  return index
}
