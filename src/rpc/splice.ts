/**
 * Byte-exact edits of a JSON object. A Payload is the text that came in and the edits to be made to it: they gather
 * without cost, and are rendered once, on the way out. Every member that no edit names reaches the other side as the
 * bytes it came in, so `9007199254740993`, `1.0`, duplicate keys deep inside and the order of members all survive.
 */
import { arrayAt, type Member, objectAt, type ScanOptions, type Span, scanObject } from './scan.js'
import { cut, type Piece, pieces, type Source, sourceOf, type Wire, weightOf } from './source.js'

/** JSON text: one value, as it stands on a wire. */
export type Json = string

/** Member name to its new value; `undefined` removes the member. */
export type Edits = Readonly<Record<string, Json | undefined>>

export interface Payload {
  readonly source: Source
  readonly start: number
  readonly end: number
  readonly members: readonly Member[]
  readonly edits: ReadonlyMap<string, Json | undefined> | undefined
}

/** Members up to which comparing each with each is faster than a set. */
const FEW = 8
/** Members from which on they are looked up by name: somebody may look for each of them. */
const MANY = 64

/** The object `{}`: what a message that has no params carries. */
export const EMPTY: Payload = { source: sourceOf('{}'), start: 0, end: 2, members: [], edits: undefined }

/** Takes a text that is one JSON object. Throws a JsonError when it is not. */
export function parseObject(text: Json, options?: ScanOptions): Payload {
  return parseSource(sourceOf(text), options)
}

export function parseSource(source: Source, options?: ScanOptions): Payload {
  const { start, end, members } = scanObject(source, options)
  return { source, start, end, members, edits: undefined }
}

/** The object that stands at a place of a text that has been scanned, or undefined where something else stands. */
export function payloadAt(source: Source, { start, end, members }: Span & Partial<Member>): Payload | undefined {
  if (source.text[start] !== '{') return undefined
  return { source, start, end, members: members ?? objectAt(source, start).members, edits: undefined }
}

/** The object under `key`, or undefined where there is none or it is something else. */
export function objectIn(payload: Payload, key: string): Payload | undefined {
  if (payload.edits?.has(key)) {
    const text = payload.edits.get(key)
    return text?.startsWith('{') ? parseObject(text) : undefined
  }
  const member = find(payload, key)
  return member && payloadAt(payload.source, member)
}

/** Where the array under `key` and its elements stand, or undefined where there is none or it is something else. */
export function arrayIn(payload: Payload, key: string): (Span & { source: Source; elements: Span[] }) | undefined {
  const edited = payload.edits?.has(key)
  const text = edited ? payload.edits?.get(key) : undefined
  const source = edited ? (text === undefined ? undefined : sourceOf(text)) : payload.source
  const start = edited ? 0 : find(payload, key)?.start
  if (source === undefined || start === undefined || source.text[start] !== '[') return undefined
  return { source, ...arrayAt(source, start) }
}

/**
 * The array under `key` with each object in it replaced by what `change` makes of it, which may be several or none;
 * undefined where nothing changes. What is no object stays, unless `others` makes something of it.
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
      // With an element that goes, the comma goes that stands before it, or after it where it is the first.
      out += cut(source, copied, elements[at - 1]?.end ?? copied)
      copied = span.end
    } else {
      out += cut(source, copied, span.start)
      copied = elements[at + 1]?.start ?? end - 1
    }
  }
  return copied === start ? undefined : out + cut(source, copied, end)
}

/** The text of the value under `key`; of duplicates the last, as JSON.parse has it. */
export function raw(payload: Payload, key: string): Json | undefined {
  if (payload.edits?.has(key)) return payload.edits.get(key)
  const member = find(payload, key)
  return member && cut(payload.source, member.start, member.end)
}

/** The first character of the value under `key`, which says what kind of value it is. */
export function opens(payload: Payload, key: string): string | undefined {
  if (payload.edits?.has(key)) return payload.edits.get(key)?.charAt(0)
  const member = find(payload, key)
  return member && payload.source.text.charAt(member.start)
}

/** The value under `key`, parsed: for what we act on, never for what we carry. */
export function value(payload: Payload, key: string): unknown {
  const text = raw(payload, key)
  return text === undefined ? undefined : JSON.parse(text)
}

/** The text under `key`, and of what is no text its JSON: a name for what a peer may have put anything into. */
export function textUnder(payload: Payload, key: string): string {
  const found = value(payload, key)
  return typeof found === 'string' ? found : String(raw(payload, key))
}

export function has(payload: Payload, key: string): boolean {
  return payload.edits?.has(key) ? payload.edits.get(key) !== undefined : find(payload, key) !== undefined
}

/** Names of all members that would be rendered, in their order. */
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

/** A key that stands twice in the object, which two parsers may read differently. */
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

/** What keeping the object costs, in characters and bytes: all of the text that it stands in, and what has been edited. */
export function sizeOf({ source, edits }: Payload): number {
  let size = weightOf(source)
  for (const text of edits?.values() ?? []) size += text?.length ?? 0
  return size
}

/** The same object with these members set or removed. Nothing is rendered yet. */
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

/** Renders the object for a wire: what is large and untouched stays the bytes that it is. */
export function wire(payload: Payload): Wire {
  const { source, start, end, edits } = payload
  if (!source.asides) return write(payload)
  if (!edits) return pieces(source, start, end)
  return render(payload, edits).flatMap((part): Piece[] =>
    typeof part === 'string' ? [part] : pieces(source, part.start, part.end),
  )
}

/**
 * What the rendered object consists of: new text, and spans of the old. Members in a row that no edit names are copied as
 * one span, white space included; a replaced member keeps its place, a new one goes to the end, and of duplicates of an
 * edited key none is left.
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

/** The members of large objects by their names, made when somebody looks for one: of equal names, the last counts. */
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
