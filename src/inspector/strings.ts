/** Strings in JSON that may be truncated. */

/** The position after the string at `start`; the end of the text if the string is truncated. */
export function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    if (text[at] === '\\') at++
    else if (text[at] === '"') return at + 1
  }
  return text.length
}
