/**
 * Edits JSON objects byte for byte. A Payload is a received text with pending edits; it is rendered once, when it is
 * sent. Members without edits are forwarded as received, so `9007199254740993`, `1.0`, duplicate keys in nested objects
 * and the order of members survive.
 */
import { JsonError, type ScanOptions, scan, scanAt } from './scan.js'
import { cut, detach, type JsonSource, type Piece, pieces, sourceOf, type Wire, weightOf } from './source.js'
import { AT, END, elementsAt, find, type JsonRange, keyAt, NEXT, ROW, START, type Table } from './table.js'

/** The JSON text of one value. */
export type Json = string

/** A new value: its text, or an object or a list with edits of its own, which is rendered with the rest. */
export type Value = Json | Payload | List

/** New values by member name; `undefined` removes the member. */
export type Edits = Readonly<Record<string, Value | undefined>>

/** A JSON object with pending edits. */
export interface Payload {
  readonly source: JsonSource
  readonly start: number
  readonly end: number
  /** The positions of its members, and its own row in it. */
  readonly table: Table
  readonly row: number
  readonly edits: ReadonlyMap<string, Value | undefined> | undefined
}

/** A JSON array with pending edits: objects that replace elements, by their positions in the array. */
export interface List {
  readonly source: JsonSource
  readonly start: number
  readonly end: number
  readonly elements: readonly JsonRange[]
  readonly replaced: ReadonlyMap<number, readonly Payload[]>
  /** The text, after the first rendering: a list of tools is stored, and sent many times. */
  text?: Json
}

/** With at most this many members, comparing all pairs is faster than a set. */
const FEW = 8
const QUOTE = 0x22
const OPEN_BRACE = 0x7b
const OPEN_BRACKET = 0x5b

/** The object `{}`, for messages without params. */
export const EMPTY: Payload = parseObject('{}')

/** The object `{}`, for messages of the bridge itself: its edits are not recorded as changes of a received message. */
export const NO_ORIGIN: Payload = parseObject('{}')
/** As EMPTY, for requests of the bridge itself that have no params. */
export const NO_PARAMS: Payload = { ...NO_ORIGIN, edits: new Map() }

/** The object in a text. Throws a JsonError if it is not one JSON object. */
export function parseObject(text: Json, options?: ScanOptions): Payload {
  return parseSource(sourceOf(text), options)
}

export function parseSource(source: JsonSource, options?: ScanOptions): Payload {
  const table = scan(source, options)
  const payload = payloadIn(source, table, 0)
  if (!payload) throw new JsonError('Expected an object', table[START] as number)
  return payload
}

/** The object at a row of a table; undefined for another value. */
export function payloadIn(source: JsonSource, table: Table, row: number): Payload | undefined {
  const start = table[row + START] as number
  if (source.text.charCodeAt(start) !== OPEN_BRACE) return undefined
  const end = table[row + END] as number
  // The members of an inner object may not be listed.
  if (row === 0 || (table[row + NEXT] as number) > row + ROW)
    return { source, start, end, table, row, edits: undefined }
  return { source, start, end, table: scanAt(source, start), row: 0, edits: undefined }
}

/** The object at a position of a scanned text; undefined for another value. */
export function payloadAt(source: JsonSource, { start }: Pick<JsonRange, 'start'>): Payload | undefined {
  return source.text.charCodeAt(start) === OPEN_BRACE ? payloadIn(source, scanAt(source, start), 0) : undefined
}

/** The object under `key`; undefined if there is none. */
export function objectIn(payload: Payload, key: string): Payload | undefined {
  const { source, table, row, edits } = payload
  if (edits?.has(key)) {
    const edited = edits.get(key)
    if (typeof edited === 'string') return edited.startsWith('{') ? parseObject(edited) : undefined
    return edited && 'table' in edited ? edited : undefined
  }
  const member = find(source, table, row, key)
  return member < 0 ? undefined : payloadIn(source, table, member)
}

/** The array under `key`, rendered first if its elements have edits; undefined if there is none. */
export function arrayIn(payload: Payload, key: string): List | undefined {
  const list = listIn(payload, key)
  return list && list.replaced.size > 0 ? listIn(edit(EMPTY, { [key]: write(list) }), key) : list
}

/** The array under `key`, with the edits of its elements; undefined if there is none. */
export function listIn(payload: Payload, key: string): List | undefined {
  let { source, table } = payload
  let row = 0
  if (payload.edits?.has(key)) {
    const edited = payload.edits.get(key)
    if (typeof edited === 'object') return 'table' in edited ? undefined : edited
    if (edited === undefined) return undefined
    source = sourceOf(edited)
    table = scanAt(source, 0)
  } else {
    row = find(source, table, payload.row, key)
    if (row < 0) return undefined
  }
  const start = table[row + START] as number
  if (source.text.charCodeAt(start) !== OPEN_BRACKET) return undefined
  const end = table[row + END] as number
  // The elements of an inner array may not be listed.
  const isListed = row === 0 || (table[row + NEXT] as number) > row + ROW
  const elements = isListed ? elementsAt(table, row) : elementsAt(scanAt(source, start))
  return { source, start, end, elements, replaced: NOTHING }
}

const NOTHING: List['replaced'] = new Map()

/** The objects in the array under `key`, one after the other; none if there is no array. */
export function* objectsIn(payload: Payload, key: string): Generator<Payload> {
  const list = arrayIn(payload, key)
  for (const span of list?.elements ?? []) {
    const object = list && payloadAt(list.source, span)
    if (object) yield object
  }
}

/**
 * The array under `key`, with each object in it replaced by the result of `change`: one, several or none. Other
 * elements stay, unless `others` replaces them. Undefined if nothing changes, or if there is no array.
 */
export function mapElements(
  payload: Payload,
  key: string,
  change: (element: Payload) => Payload | readonly Payload[],
  others?: (element: Json) => Payload | readonly Payload[] | undefined,
): List | undefined {
  const list = listIn(payload, key)
  if (!list) return undefined
  const { source, elements, start, end } = list
  let replaced: Map<number, readonly Payload[]> | undefined
  for (let at = 0; at < elements.length; at++) {
    const span = elements[at] as JsonRange
    const before = list.replaced.get(at) ?? payloadAt(source, span)
    const after = !before
      ? others?.(cut(source, span.start, span.end))
      : 'table' in before
        ? change(before)
        : before.flatMap(change)
    if (!after || after === before || isSame(after, before)) continue
    replaced ??= new Map(list.replaced)
    replaced.set(at, 'table' in after ? [after] : after)
  }
  return replaced && { source, start, end, elements, replaced }
}

function isSame(after: Payload | readonly Payload[], before: Payload | readonly Payload[] | undefined): boolean {
  if (!before || 'table' in before || 'table' in after) return false
  return after.length === before.length && after.every((one, at) => one === before[at])
}

/** The text of the value under `key`; the last one of duplicates, as with JSON.parse. */
export function raw(payload: Payload, key: string): Json | undefined {
  if (payload.edits?.has(key)) {
    const edited = payload.edits.get(key)
    return typeof edited === 'object' ? write(edited) : edited
  }
  const { source, table, row } = payload
  const member = find(source, table, row, key)
  return member < 0 ? undefined : cut(source, table[member + START] as number, table[member + END] as number)
}

/** The first character of the value under `key`, which determines its type. */
export function opens(payload: Payload, key: string): string | undefined {
  if (payload.edits?.has(key)) {
    const edited = payload.edits.get(key)
    return typeof edited === 'object' ? ('table' in edited ? '{' : '[') : edited?.charAt(0)
  }
  const { source, table, row } = payload
  const member = find(source, table, row, key)
  return member < 0 ? undefined : source.text.charAt(table[member + START] as number)
}

/** The parsed value under `key`. For values that the bridge uses, not for values that it forwards. */
export function value(payload: Payload, key: string): unknown {
  const text = raw(payload, key)
  if (text === undefined) return undefined
  const isPlain = payload.source.plain && text.charCodeAt(0) === QUOTE && !payload.edits?.has(key)
  return isPlain ? detach(text.slice(1, -1)) : JSON.parse(text)
}

/** The string under `key`; undefined for another value, which is not parsed: an object of a megabyte takes long. */
export function stringUnder(payload: Payload, key: string): string | undefined {
  const text = raw(payload, key)
  if (text?.charCodeAt(0) !== QUOTE) return undefined
  return payload.source.plain && !payload.edits?.has(key) ? detach(text.slice(1, -1)) : (JSON.parse(text) as string)
}

/** The string under `key`, or the JSON text of another value. For error messages that quote a peer. */
export function textUnder(payload: Payload, key: string): string {
  const found = value(payload, key)
  return typeof found === 'string' ? found : String(raw(payload, key))
}

export function has(payload: Payload, key: string): boolean {
  const { source, table, row, edits } = payload
  return edits?.has(key) ? edits.get(key) !== undefined : find(source, table, row, key) >= 0
}

/** Names of all members after the edits, in order. */
export function keys(payload: Payload): string[] {
  const names = new Set(receivedKeys(payload))
  for (const [key, edit] of payload.edits ?? []) {
    if (edit === undefined) names.delete(key)
    else names.add(key)
  }
  return [...names]
}

/** The keys of the object as received, in order, including duplicates. */
export function receivedKeys({ source, table, row }: Payload): string[] {
  const keys: string[] = []
  const end = table[row + NEXT] as number
  for (let at = row + ROW; at < end; at = table[at + NEXT] as number) keys.push(keyAt(source, table, at))
  return keys
}

export function isEmpty(payload: Payload): boolean {
  const { source, table, row, edits } = payload
  const end = table[row + NEXT] as number
  if (!edits) return end === row + ROW
  for (const edited of edits.values()) if (edited !== undefined) return false
  for (let at = row + ROW; at < end; at = table[at + NEXT] as number)
    if (!edits.has(keyAt(source, table, at))) return false
  return true
}

/** A duplicate key of the object, or `only` if that is one. Parsers disagree about the value of such a key. */
export function duplicateKey({ source, table, row }: Payload, only?: string): string | undefined {
  const names: string[] = []
  let seen: Set<string> | undefined
  const end = table[row + NEXT] as number
  for (let at = row + ROW; at < end; at = table[at + NEXT] as number) {
    const name = keyAt(source, table, at)
    if (only !== undefined && name !== only) continue
    if (seen ? seen.has(name) : names.includes(name)) return name
    if (seen) seen.add(name)
    else if (names.push(name) === FEW) seen = new Set(names)
  }
  return undefined
}

/** The memory that the object keeps alive, in characters and bytes: its whole text, and its edits. */
export function sizeOf(payload: Payload): number {
  return weightOf(payload.source) + sizeOfEdits(payload, payload.source)
}

function sizeOfEdits({ edits }: Payload, counted: JsonSource): number {
  let size = 0
  for (const edited of edits?.values() ?? []) {
    if (typeof edited === 'string') size += edited.length
    else if (edited) size += sizeOfNested(edited, counted)
  }
  return size
}

function sizeOfNested(nested: Payload | List, counted: JsonSource): number {
  const own = nested.source === counted ? 0 : weightOf(nested.source)
  if ('table' in nested) return own + sizeOfEdits(nested, nested.source)
  let size = own + nested.end - nested.start
  for (const payloads of nested.replaced.values())
    for (const payload of payloads) size += sizeOfNested(payload, nested.source)
  return size
}

/** The object with these members set or removed. Nothing is rendered yet. */
export function edit(payload: Payload, edits: Edits): Payload {
  const { source, start, end, table, row, edits: before } = payload
  let merged: Map<string, Value | undefined> | undefined
  for (const key in edits) {
    const edited = edits[key]
    const isSame = before?.has(key)
      ? before.get(key) === edited
      : edited === undefined && find(source, table, row, key) < 0
    if (isSame) continue
    merged ??= new Map(before)
    merged.set(key, edited)
  }
  if (!merged) return payload
  return { source, start, end, table, row, edits: merged }
}

/** Renders the object or list as a text. */
export function write(nested: Payload | List): Json {
  const { source } = nested
  const parts = 'table' in nested ? nested.edits && render(nested, nested.edits) : (nested.text ?? renderList(nested))
  if (!parts) return cut(source, nested.start, nested.end)
  if (typeof parts === 'string') return parts
  let out = ''
  for (const part of parts)
    out += typeof part === 'string' ? part : 'source' in part ? write(part) : cut(source, part.start, part.end)
  if (!('table' in nested)) nested.text = out
  return out
}

/** Renders the object for sending; large unchanged parts stay bytes. */
export function wire(payload: Payload): Wire {
  if (!payload.source.asides) return write(payload)
  return piecesOf(payload)
}

/** A part of a rendered object or list: a new text, a span of the received text, or a value with edits of its own. */
type Part = string | JsonRange | Payload | List

function piecesOf(nested: Payload | List): Piece[] {
  const { source, start, end } = nested
  const parts = 'table' in nested ? nested.edits && render(nested, nested.edits) : renderList(nested)
  if (!parts) return pieces(source, start, end)
  return parts.flatMap((part): Piece[] => {
    if (typeof part === 'string') return [part]
    return 'source' in part ? piecesOf(part) : pieces(source, part.start, part.end)
  })
}

/**
 * The parts of the rendered object. Consecutive unchanged members are one span, including white space. A replaced member
 * keeps its place; a new one is appended. All duplicates of an edited key are removed.
 */
function render({ source, table, row }: Payload, edits: NonNullable<Payload['edits']>): Part[] {
  const parts: Part[] = []
  /** Edited members that have a place in the received text. */
  let placed: Set<string> | undefined
  let separator = '{'
  let run: JsonRange | undefined
  const last = table[row + NEXT] as number
  for (let member = row + ROW; member < last; member = table[member + NEXT] as number) {
    const key = keyAt(source, table, member)
    const end = table[member + END] as number
    if (!edits.has(key)) {
      if (run) run.end = end
      else {
        run = { start: table[member + AT] as number, end }
        parts.push(separator, run)
        separator = ','
      }
      continue
    }
    run = undefined
    const replacement = edits.get(key)
    if (replacement === undefined || placed?.has(key)) continue
    placed ??= new Set()
    placed.add(key)
    parts.push(separator, { start: table[member + AT] as number, end: table[member + START] as number }, replacement)
    separator = ','
  }
  for (const [key, added] of edits) {
    if (added === undefined || placed?.has(key)) continue
    if (typeof added === 'string') parts.push(`${separator}${JSON.stringify(key)}:${added}`)
    else parts.push(`${separator}${JSON.stringify(key)}:`, added)
    separator = ','
  }
  parts.push(separator === '{' ? '{}' : '}')
  return parts
}

/** The parts of the rendered list: replacements, and spans of the received text between them. */
function renderList({ elements, replaced, start, end }: List): Part[] {
  const parts: Part[] = []
  let copied = start
  let begun = false
  for (const [at, span] of elements.entries()) {
    const after = replaced.get(at)
    if (!after) {
      begun = true
      continue
    }
    if (after.length > 0) {
      parts.push({ start: copied, end: span.start })
      for (const [place, payload] of after.entries()) parts.push(...(place === 0 ? [] : [',']), payload)
      copied = span.end
      begun = true
    } else if (begun) {
      // A removed element takes the comma before it along; the first one the comma after it.
      parts.push({ start: copied, end: elements[at - 1]?.end ?? copied })
      copied = span.end
    } else {
      parts.push({ start: copied, end: span.start })
      copied = elements[at + 1]?.start ?? end - 1
    }
  }
  parts.push({ start: copied, end })
  return parts
}

/** Where the value of a received member starts, regardless of edits; the last of duplicates. -1 if there is none. */
export function startOf({ source, table, row }: Payload, key: string): number {
  const member = find(source, table, row, key)
  return member < 0 ? -1 : (table[member + START] as number)
}
