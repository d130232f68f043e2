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
  /** An element of a list that was removed, or became another object. */
  became?: { before: Payload; after: Payload | undefined }
}

/** Changes, and the number of those that are not listed. */
export interface Found {
  changes: Changed[]
  more: number
}

/**
 * The changes of an object that is found at `at` in its message, in no particular order: at most so many. Equal texts
 * are no change.
 */
export function changesIn(payload: Payload, at: string, most = Number.POSITIVE_INFINITY): Found {
  const found: Found = { changes: [], more: 0 }
  inObject(payload, at, at, (change) => {
    if (found.changes.length < most) found.changes.push(change)
    else found.more++
  })
  return found
}

type Report = (change: Changed) => void

function inObject(payload: Payload, at: string, path: string, report: Report): void {
  if (!payload.edits) return
  for (const [key, value] of payload.edits) {
    const token = key.includes('~') || key.includes('/') ? key.replaceAll('~', '~0').replaceAll('/', '~1') : key
    const place = { at: `${at}/${token}`, path: `${path}/${token}` }
    const member = memberOf(payload, key)
    if (value === undefined) {
      if (member) report({ op: 'remove', ...place })
    } else if (!member) report({ op: 'add', ...place })
    else if (isFrom(value, payload.source, member.start)) inside(value, place.at, place.path, report)
    else if (text(value) !== cut(payload.source, member.start, member.end)) report({ op: 'replace', ...place })
  }
}

function inside(nested: Payload | List, at: string, path: string, report: Report): void {
  if ('members' in nested) return inObject(nested, at, path, report)
  const { source, elements, replaced } = nested
  // One element that became several moves the others: then the list as a whole is another one.
  for (const payloads of replaced.values()) if (payloads.length > 1) return report({ op: 'replace', at, path })
  for (const [index, [after]] of replaced) {
    const place = { at: `${at}/${index}`, path: `${path}/*` }
    const span = elements[index]
    if (!span) continue
    if (after && isFrom(after, source, span.start)) inObject(after, place.at, place.path, report)
    else if (!after || write(after) !== cut(source, span.start, span.end)) {
      const before = payloadAt(source, span)
      report({ op: after ? 'replace' : 'remove', ...place, ...(before && { became: { before, after } }) })
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
