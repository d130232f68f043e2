/** Where things are remembered that recur: in a table with a fixed number of places. */

/** A number for a text, by which its place is found. Equal texts have the same number; different ones may have it, too. */
export function mixed(text: unknown): number {
  if (typeof text !== 'string' || text.length === 0) return 0
  return text.length + 3 * text.charCodeAt(text.length - 1) + 13 * text.charCodeAt(text.length >> 1)
}
