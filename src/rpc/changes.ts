/** What the edits of an object change in the text that it was received in: read off the edits, not off the texts. */
import { cut, type Source } from './source.js'
import { type List, memberOf, type Payload, payloadAt, textOf, type Value, write } from './splice.js'

/** One changed value. */
export interface Changed {
  op: 'add' | 'remove' | 'replace'
  /** JSON Pointer (RFC 6901) into the received text; for `add`, to where the new member is put. */
  at: string
  /** The pointer with `*` for each position in a list, for tables. */
  path: string
  /** An element of a list that became another object: both. */
  became?: { before: Payload; after: Payload }
}

/** The changes of an object that is found at `at` in its message, in no particular order. Equal texts are no change. */
export function changesIn(payload: Payload, at: string): Changed[] {
  const changes: Changed[] = []
  inObject(payload, at, at, changes)
  return changes
}

function inObject(payload: Payload, at: string, path: string, changes: Changed[]): void {
  if (!payload.edits) return
  for (const [key, value] of payload.edits) {
    const token = key.includes('~') || key.includes('/') ? key.replaceAll('~', '~0').replaceAll('/', '~1') : key
    const place = { at: `${at}/${token}`, path: `${path}/${token}` }
    const member = memberOf(payload, key)
    if (value === undefined) {
      if (member) changes.push({ op: 'remove', ...place })
    } else if (!member) changes.push({ op: 'add', ...place })
    else if (isFrom(value, payload.source, member.start)) inside(value, place.at, place.path, changes)
    else if (text(value) !== cut(payload.source, member.start, member.end)) changes.push({ op: 'replace', ...place })
  }
}

function inside(nested: Payload | List, at: string, path: string, changes: Changed[]): void {
  if ('members' in nested) return inObject(nested, at, path, changes)
  const { source, elements, replaced } = nested
  // One element that became several moves the others: then the list as a whole is another one.
  for (const payloads of replaced.values())
    if (payloads.length > 1) return void changes.push({ op: 'replace', at, path })
  for (const [index, [after]] of replaced) {
    const place = { at: `${at}/${index}`, path: `${path}/*` }
    const span = elements[index]
    if (!span) continue
    if (!after) changes.push({ op: 'remove', ...place })
    else if (isFrom(after, source, span.start)) inObject(after, place.at, place.path, changes)
    else if (write(after) !== cut(source, span.start, span.end)) {
      const before = payloadAt(source, span)
      changes.push({ op: 'replace', ...place, ...(before && { became: { before, after } }) })
    }
  }
}

/** Whether a value is the one at this position, with edits. */
function isFrom(value: Value, source: Source, start: number): value is Payload | List {
  return typeof value === 'object' && value.source === source && value.start === start
}

function text(value: Value): string {
  return typeof value === 'string' ? value : textOf(value)
}
