/**
 * Reads members that every program reads in the same way. Some programs use the first of two equal members, some the
 * last, and some ignore case.
 */
import { type Payload, receivedKeys, value } from '../rpc/splice.js'

/**
 * A name without its case, as programs compare names that ignore it. Case is folded both ways, because some characters
 * have an ASCII letter as their other case: U+017F that of s, U+212A that of k.
 */
export function folded(name: string): string {
  return name.toUpperCase().toLowerCase()
}

/** Whether no received member but the one under `key`, if there is one, can be taken for it. */
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
  if (!isUnambiguous(payload, key)) return undefined
  const found = value(payload, key)
  return typeof found === 'string' ? found : undefined
}
