/** Finds the known name that a misspelt one probably means, for *did you mean*. */
import { distance } from 'fastest-levenshtein'

/** Most letters that may be missing, added or different. */
const MOST = 2
/** Shorter names are never suggested: two letters are too large a part of them. */
const SHORTEST = 4

/** The known name nearest to a word, ignoring case; undefined if none is near. */
export function nearest(word: string, known: Iterable<string>): string | undefined {
  let found: string | undefined
  let least = MOST + 1
  for (const name of known) {
    if (name.length < SHORTEST || Math.abs(name.length - word.length) > MOST) continue
    const away = distance(word.toLowerCase(), name.toLowerCase())
    if (away < least) [found, least] = [name, away]
  }
  return found
}

/** The end of a message about an unknown key: a suggestion, or nothing. */
export function didYouMean(key: string, known: Iterable<string>): string {
  const name = nearest(key, known)
  return name === undefined ? '' : `: did you mean "${name}"?`
}
