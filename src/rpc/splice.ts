/**
 * Byte-exact edits of a JSON object. A Payload is a received text with the edits to make; it is rendered once, when
 * sent. Members that no edit names are forwarded as received, so `9007199254740993`, `1.0`, duplicate keys in nested
 * objects and the order of members survive.
 */
import { arrayAt, type Member, objectAt, type ScanOptions, type Span, scanObject } from './scan.js'
import { cut, type Piece, pieces, type Source, sourceOf, type Wire, weightOf } from './source.js'

/** The JSON text of one value. */
export type Json = string

/** New values by member name; `undefined` removes the member. */
export type Edits = Readonly<Record<string, Json | undefined>>

/** A JSON object with pending edits. */
export interface Payload {
  readonly source: Source
  readonly start: number
  readonly end: number
  readonly members: readonly Member[]
  readonly edits: ReadonlyMap<string, Json | undefined> | undefined
}

/** Up to this many members, comparing each with each is faster than a set. */
const FEW = 8
/** From this many members on, an index by name is built. */
const MANY = 64

/** The object `{}`, for messages without params. */
export const EMPTY: Payload = { source: sourceOf('{}'), start: 0, end: 2, members: [], edits: undefined }

/** The object in a text. Throws a JsonError if it is not one JSON object. */
export function parseObject(text: Json, options?: ScanOptions): Payload {
  return parseSource(sourceOf(text), options)
}

export function parseSource(source: Source, options?: ScanOptions): Payload {
  const { start, end, members } = scanObject(source, options)
  return { source, start, end, members, edits: undefined }
}

/** The object at a position of a scanned text; undefined if there is something else. */
export function payloadAt(source: Source, { start, end, members }: Span & Partial<Member>): Payload | undefined {
  if (source.text[start] !== '{') return undefined
  return { source, start, end, members: members ?? objectAt(source, start).members, edits: undefined }
}

/** The object under `key`; undefined if there is none. */
export function objectIn(payload: Payload, key: string): Payload | undefined {
  if (payload.edits?.has(key)) {
    const text = payload.edits.get(key)
    return text?.startsWith('{') ? parseObject(text) : undefined
  }
  const member = find(payload, key)
  return member && payloadAt(payload.source, member)
}

/** The positions of the array under `key` and of its elements; undefined if there is none. */
export function arrayIn(payload: Payload, key: string): (Span & { source: Source; elements: Span[] }) | undefined {
  const edited = payload.edits?.has(key)
  const text = edited ? payload.edits?.get(key) : undefined
  const source = edited ? (text === undefined ? undefined : sourceOf(text)) : payload.source
  const start = edited ? 0 : find(payload, key)?.start
  if (source === undefined || start === undefined || source.text[start] !== '[') return undefined
  return { source, ...arrayAt(source, start) }
}

/**
 * The array under `key`, with each object in it replaced by the result of `change`: one, several or none. Other
 * elements stay, unless `others` replaces them. Undefined if nothing changes.
 */
export function mapElements(
  payload: Payload,
  key: string,
  change: (element: Payload) => Payload | readonly Payload[],
  others?: (element: Json) => Payload | readonly Payload[],
): Json | undefined {
  const array = arrayIn(payload, key)
  if (!array) return undefined
  const { source, elements, start, end } = array
  let out = ''
  let copied = start
  let begun = false
  for (const [at, span] of elements.entries()) {
    const before = payloadAt(source, span)
    const after = before ? change(before) : others?.(cut(source, span.start, span.end))
    if (!after || after === before) {
      begun = true
      continue
    }
    const texts = 'members' in after ? [write(after)] : after.map(write)
    if (texts.length > 0) {
      out += cut(source, copied, span.start) + texts.join(',')
      copied = span.end
      begun = true
    } else if (begun) {
      // A removed element takes the comma before it along; the first one the comma after it.
      out += cut(source, copied, elements[at - 1]?.end ?? copied)
      copied = span.end
    } else {
      out += cut(source, copied, span.start)
      copied = elements[at + 1]?.start ?? end - 1
    }
  }
  return copied === start ? undefined : out + cut(source, copied, end)
}

/** The text of the value under `key`; the last one of duplicates, as with JSON.parse. */
export function raw(payload: Payload, key: string): Json | undefined {
  if (payload.edits?.has(key)) return payload.edits.get(key)
  const member = find(payload, key)
  return member && cut(payload.source, member.start, member.end)
}

/** The first character of the value under `key`, which determines its kind. */
export function opens(payload: Payload, key: string): string | undefined {
  if (payload.edits?.has(key)) return payload.edits.get(key)?.charAt(0)
  const member = find(payload, key)
  return member && payload.source.text.charAt(member.start)
}

/** The parsed value under `key`. For values that the bridge uses, not for values that it forwards. */
export function value(payload: Payload, key: string): unknown {
  const text = raw(payload, key)
  return text === undefined ? undefined : JSON.parse(text)
}

/** The string under `key`, or the JSON text of another value. For messages about what a peer sent. */
export function textUnder(payload: Payload, key: string): string {
  const found = value(payload, key)
  return typeof found === 'string' ? found : String(raw(payload, key))
}

export function has(payload: Payload, key: string): boolean {
  return payload.edits?.has(key) ? payload.edits.get(key) !== undefined : find(payload, key) !== undefined
}

/** Names of all members after the edits, in order. */
export function keys(payload: Payload): string[] {
  const names = new Set(payload.members.map((member) => member.key))
  for (const [key, edit] of payload.edits ?? []) {
    if (edit === undefined) names.delete(key)
    else names.add(key)
  }
  return [...names]
}

export function isEmpty(payload: Payload): boolean {
  const { members, edits } = payload
  if (!edits) return members.length === 0
  for (const edited of edits.values()) if (edited !== undefined) return false
  return members.every(({ key }) => edits.has(key))
}

/** A duplicate key of the object: parsers may disagree about its value. */
export function duplicateKey({ members }: Payload): string | undefined {
  if (members.length <= FEW) {
    return members.find(({ key }, at) => members.some((other, before) => before < at && other.key === key))?.key
  }
  const seen = new Set<string>()
  for (const { key } of members) {
    if (seen.has(key)) return key
    seen.add(key)
  }
  return undefined
}

/** The memory that the object keeps alive, in characters and bytes: its whole text, and its edits. */
export function sizeOf({ source, edits }: Payload): number {
  let size = weightOf(source)
  for (const text of edits?.values() ?? []) size += text?.length ?? 0
  return size
}

/** The object with these members set or removed. Nothing is rendered yet. */
export function edit(payload: Payload, edits: Edits): Payload {
  let merged: Map<string, Json | undefined> | undefined
  for (const key in edits) {
    const text = edits[key]
    if (text === undefined && !payload.edits?.has(key) && !find(payload, key)) continue
    merged ??= new Map(payload.edits)
    merged.set(key, text)
  }
  if (!merged) return payload
  const { source, start, end, members } = payload
  return { source, start, end, members, edits: merged }
}

/** Renders the object as a text. */
export function write(payload: Payload): Json {
  const { source, start, end, edits } = payload
  if (!edits) return cut(source, start, end)
  let out = ''
  for (const part of render(payload, edits)) out += typeof part === 'string' ? part : cut(source, part.start, part.end)
  return out
}

/** Renders the object for sending; large unchanged parts stay bytes. */
export function wire(payload: Payload): Wire {
  const { source, start, end, edits } = payload
  if (!source.asides) return write(payload)
  if (!edits) return pieces(source, start, end)
  return render(payload, edits).flatMap((part): Piece[] =>
    typeof part === 'string' ? [part] : pieces(source, part.start, part.end),
  )
}

/**
 * The parts of the rendered object: new texts and spans of the old one. Consecutive unchanged members are one span,
 * including white space. A replaced member keeps its place; a new one goes to the end. All duplicates of an edited key
 * are removed.
 */
function render({ members }: Payload, edits: ReadonlyMap<string, Json | undefined>): (string | Span)[] {
  const parts: (string | Span)[] = []
  const placed = new Set<string>()
  let separator = '{'
  let run: Span | undefined
  for (const member of members) {
    if (!edits.has(member.key)) {
      if (run) run.end = member.end
      else {
        run = { start: member.at, end: member.end }
        parts.push(separator, run)
        separator = ','
      }
      continue
    }
    run = undefined
    const replacement = edits.get(member.key)
    if (replacement === undefined || placed.has(member.key)) continue
    placed.add(member.key)
    parts.push(separator, { start: member.at, end: member.start }, replacement)
    separator = ','
  }
  for (const [key, added] of edits) {
    if (added === undefined || placed.has(key)) continue
    parts.push(`${separator}${JSON.stringify(key)}:${added}`)
    separator = ','
  }
  parts.push(separator === '{' ? '{}' : '}')
  return parts
}

/** Indexes of large objects, built on demand. Of equal names, the last counts. */
const indices = new WeakMap<readonly Member[], ReadonlyMap<string, Member>>()

function find({ members }: Payload, key: string): Member | undefined {
  if (members.length > MANY) return indexOf(members).get(key)
  for (let i = members.length - 1; i >= 0; i--) if (members[i]?.key === key) return members[i]
  return undefined
}

function indexOf(members: readonly Member[]): ReadonlyMap<string, Member> {
  let index = indices.get(members)
  if (!index) {
    index = new Map(members.map((member) => [member.key, member]))
    indices.set(members, index)
  }
  return index
}
