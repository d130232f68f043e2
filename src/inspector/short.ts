/** Shortens foreign texts for storage, without a reference to the larger text. */
import { detach } from '../base/rpc/source.js'

/** Most stored characters of a text. */
export const MAX_SHORT_TEXT = 200
/** V8 copies shorter substrings, so they keep nothing else in memory. */
const SLICED = 13

/** At most the first characters of a text, in memory of their own. */
export function short(text: string): string {
  const part = text.length > MAX_SHORT_TEXT ? `${text.slice(0, MAX_SHORT_TEXT - 1)}…` : text
  return part.length < SLICED ? part : detach(part)
}
