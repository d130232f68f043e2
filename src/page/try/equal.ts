/** Whether two values of JSON are equal, whatever the order of their keys. Pure. */

/** Deepest values that are compared: deeper ones count as different. */
const MAX_COMPARED = 200

export function equalJson(a: unknown, b: unknown, depth = 0): boolean {
  if (a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null || depth > MAX_COMPARED) return false
  if (Array.isArray(a) !== Array.isArray(b)) return false
  const keys = Object.keys(a)
  return (
    keys.length === Object.keys(b).length &&
    keys.every((key) => Object.hasOwn(b, key) && equalJson(a[key as never], b[key as never], depth + 1))
  )
}
