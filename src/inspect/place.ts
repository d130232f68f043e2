/** Slots of a cache of recurring objects: a table of fixed size. */

/** A hash of a text, for its slot. Different texts may have the same hash. */
export function mixed(text: unknown): number {
  if (typeof text !== 'string' || text.length === 0) return 0
  return text.length + 3 * text.charCodeAt(text.length - 1) + 13 * text.charCodeAt(text.length >> 1)
}
