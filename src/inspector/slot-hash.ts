/** A hash for the slot of an object in a cache of fixed size. */

/** A cheap hash of a text. Different texts may have the same one. */
export function slotHash(text: unknown): number {
  if (typeof text !== 'string' || text.length === 0) return 0
  return text.length + 3 * text.charCodeAt(text.length - 1) + 13 * text.charCodeAt(text.length >> 1)
}
