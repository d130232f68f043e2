/** *Did you mean*: the known name that a misspelt one was probably meant to be. */
import { distance } from 'fastest-levenshtein'

/** Letters that may be missing, too many or different. */
const MOST = 2
/** Shorter names are never suggested: two letters are too large a part of them. */
const SHORTEST = 4

/** The known name that is nearest to a word, in upper or lower case; undefined if none is near. */
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

/** The end of a message about an unknown key: the name that was probably meant, or nothing. */
export function didYouMean(key: string, known: Iterable<string>): string {
  const name = nearest(key, known)
  return name === undefined ? '' : `: did you mean "${name}"?`
}
