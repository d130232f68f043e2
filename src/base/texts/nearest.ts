/** Finds the known name that a misspelt one probably means, for *did you mean*. */
import { distance } from 'fastest-levenshtein'

/** Most letters that may be missing, added or different. */
const MOST = 2
/** Shorter names are never suggested: two letters are too large a part of them. */
const SHORTEST = 4

/** How many letters of two words are missing, added or different; undefined if more than `most`. */
export function lettersApart(one: string, other: string, most: number): number | undefined {
  if (Math.abs(one.length - other.length) > most) return undefined
  const apart = distance(one, other)
  return apart > most ? undefined : apart
}

/** Most names that a message lists. */
const MAX_NAMES_SAID = 30

/** Names as a list in a message. */
export function namesInWords(names: readonly string[]): string {
  const more = names.length - MAX_NAMES_SAID
  return more > 0 ? `${names.slice(0, MAX_NAMES_SAID).join(', ')} and ${more} more` : names.join(', ')
}

/** The end of a message about a name that is none of the known ones: the one that was probably meant, and all of them. */
export function amongNames(word: string, names: readonly string[]): string {
  if (names.length === 0) return 'it has none'
  const meant = nearest(word, names)
  const all = namesInWords(names)
  return meant === undefined ? `it has ${all}` : `did you mean "${meant}"? It has ${all}`
}

/** The known name nearest to a word, ignoring case; undefined if none is near. */
export function nearest(word: string, known: Iterable<string>): string | undefined {
  let found: string | undefined
  let least = MOST + 1
  for (const name of known) {
    const away = name.length < SHORTEST ? undefined : lettersApart(word.toLowerCase(), name.toLowerCase(), MOST)
    if (away !== undefined && away < least) [found, least] = [name, away]
  }
  return found
}

/** The end of a message about an unknown key: a suggestion, or nothing. */
export function didYouMean(key: string, known: Iterable<string>): string {
  const name = nearest(key, known)
  return name === undefined ? '' : `: did you mean "${name}"?`
}
