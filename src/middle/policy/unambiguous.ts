/**
 * Reads only members that every program reads in the same way. Of duplicate members, some programs use the first and some
 * the last; some programs ignore case.
 */
import { type Payload, receivedKeys, stringUnder } from '../../base/rpc/splice.js'

/**
 * A name in the form in which programs that ignore case compare names. Case is folded in both directions, because some
 * characters become ASCII letters in one of them: U+017F becomes S, and U+212A becomes k.
 */
export function folded(name: string): string {
  return name.toUpperCase().toLowerCase()
}

/** Whether no received member other than the one under `key` can be mistaken for it. */
export function isUnambiguous(payload: Payload, key: string): boolean {
  const wanted = folded(key)
  let found = false
  for (const name of receivedKeys(payload)) {
    if (name !== key && folded(name) !== wanted) continue
    if (found || name !== key) return false
    found = true
  }
  return true
}

/** The string under `key`; undefined if there is none, or if it is ambiguous. */
export function stringIn(payload: Payload, key: string): string | undefined {
  return isUnambiguous(payload, key) ? stringUnder(payload, key) : undefined
}
