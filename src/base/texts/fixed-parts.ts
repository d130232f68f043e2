/** Matches texts with patterns that are split at their wildcards. */

/** Whether the text is these parts in order, with any characters between them. Takes linear time. */
export function consistsOf([first = '', ...others]: readonly string[], text = ''): boolean {
  const last = others.pop()
  if (last === undefined) return text === first
  if (!text.startsWith(first)) return false
  let at = first.length
  for (const part of others) {
    const found = text.indexOf(part, at)
    if (found < 0) return false
    at = found + part.length
  }
  return text.length - last.length >= at && text.endsWith(last)
}
