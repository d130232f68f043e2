/**
 * Byte-exact edits of a JSON object. A Payload is the text that came in and the edits to be made to it: they gather
 * without cost, and `write` renders them once. Every member that no edit names reaches the other side as the bytes it
 * came in, so `9007199254740993`, `1.0`, duplicate keys deep inside and the order of members all survive.
 */
import { type Member, objectAt, type ScanOptions, scanObject } from './scan.js'

/** JSON text: one value, as it stands on a wire. */
export type Json = string

/** Member name to its new value; `undefined` removes the member. */
export type Edits = Record<string, Json | undefined>

export interface Payload {
  readonly text: string
  readonly start: number
  readonly end: number
  readonly members: readonly Member[]
  readonly edits?: ReadonlyMap<string, Json | undefined>
}

/** The object `{}`: what a message that has no params carries. */
export const EMPTY: Payload = { text: '{}', start: 0, end: 2, members: [] }

/** Takes a text that is one JSON object. Throws a JsonError when it is not. */
export function parseObject(text: string, options?: ScanOptions): Payload {
  const { start, end, members } = scanObject(text, options)
  return { text, start, end, members }
}

/** The object under `key`, or undefined where there is none or it is something else. */
export function objectIn(payload: Payload, key: string): Payload | undefined {
  const edited = payload.edits?.has(key)
  const member = edited ? undefined : find(payload, key)
  const text = edited ? payload.edits?.get(key) : payload.text
  const start = member?.start ?? 0
  if (text === undefined || (!edited && !member) || text[start] !== '{') return undefined
  if (member?.members) return { text, start, end: member.end, members: member.members }
  return { text, ...objectAt(text, start) }
}

/** The text of the value under `key`; of duplicates the last, as JSON.parse has it. */
export function raw(payload: Payload, key: string): Json | undefined {
  if (payload.edits?.has(key)) return payload.edits.get(key)
  const member = find(payload, key)
  return member && payload.text.slice(member.start, member.end)
}

/** The value under `key`, parsed: for what we act on, never for what we carry. */
export function value(payload: Payload, key: string): unknown {
  const text = raw(payload, key)
  return text === undefined ? undefined : JSON.parse(text)
}

export function has(payload: Payload, key: string): boolean {
  return payload.edits?.has(key) ? payload.edits.get(key) !== undefined : find(payload, key) !== undefined
}

/** Names of all members that `write` would render, in their order. */
export function keys(payload: Payload): string[] {
  const names = new Set(payload.members.map((member) => member.key))
  for (const [key, edit] of payload.edits ?? []) {
    if (edit === undefined) names.delete(key)
    else names.add(key)
  }
  return [...names]
}

export function isEmpty(payload: Payload): boolean {
  return payload.edits ? keys(payload).length === 0 : payload.members.length === 0
}

/** A key that stands twice in the object, which two parsers may read differently. */
export function duplicateKey(payload: Payload): string | undefined {
  const { members } = payload
  if (members.length < 2) return undefined
  const seen = new Set<string>()
  for (const { key } of members) {
    if (seen.has(key)) return key
    seen.add(key)
  }
  return undefined
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
  const { text, start, end, members } = payload
  return { text, start, end, members, edits: merged }
}

/**
 * Renders the object. Members in a row that no edit names are copied as one piece, white space included; a replaced
 * member keeps its place, a new one goes to the end, and of duplicates of an edited key none is left.
 */
export function write(payload: Payload): Json {
  const { text, start, end, members, edits } = payload
  if (!edits) return text.length === end - start ? text : text.slice(start, end)
  const placed: string[] = []
  let out = '{'
  let runStart = -1
  let runEnd = -1
  const add = (part: string) => {
    out += out.length === 1 ? part : `,${part}`
  }
  const flush = () => {
    if (runStart >= 0) add(text.slice(runStart, runEnd))
    runStart = -1
  }
  for (const member of members) {
    if (!edits.has(member.key)) {
      if (runStart < 0) runStart = member.at
      runEnd = member.end
      continue
    }
    flush()
    const replacement = edits.get(member.key)
    if (replacement === undefined || placed.includes(member.key)) continue
    placed.push(member.key)
    add(text.slice(member.at, member.start) + replacement)
  }
  flush()
  for (const [key, added] of edits) {
    if (added !== undefined && !placed.includes(key)) add(`${JSON.stringify(key)}:${added}`)
  }
  return `${out}}`
}

function find({ members }: Payload, key: string): Member | undefined {
  for (let i = members.length - 1; i >= 0; i--) if (members[i]?.key === key) return members[i]
  return undefined
}
