/** Events as JSON. Lists of changes are most of it, and they recur: their JSON is remembered. */
import type { Change, Seen } from '../ports/seen.js'

const known = new WeakMap<readonly Change[], string>()

/** The JSON of an event. */
export function jsonOf(seen: Seen): string {
  if (seen.kind !== 'message' || !seen.changes || seen.changes.length === 0) return JSON.stringify(seen)
  const { changes } = seen
  let list = known.get(changes)
  if (list === undefined) {
    list = JSON.stringify(changes)
    known.set(changes, list)
  }
  return `${JSON.stringify({ ...seen, changes: undefined }).slice(0, -1)},"changes":${list}}`
}
