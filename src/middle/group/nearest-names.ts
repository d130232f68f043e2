/** Finds the names of tools that an unknown name probably means. */

import { lettersApart } from '../../base/texts/nearest.js'
import { folded } from '../policy/unambiguous.js'
import { SEPARATOR } from './names.js'

/** Most names that are suggested. */
const MAX_NEAREST = 5
/** Longest names that are compared, in characters. */
const MAX_COMPARED = 300
/** One letter in so many may differ. */
const PER_LETTER = 4
/** What another prefix counts, in letters. */
const OTHER_PREFIX = 0.5

/**
 * The nearest names, best first: those that differ only in their prefix or in what separates words; then those with few other
 * letters; then those `found` by words.
 */
export function nearestNames(wrong: string, names: readonly string[], found: readonly string[]): string[] {
  const wanted = formsOf(wrong.slice(0, MAX_COMPARED))
  const near = names.flatMap((name) => {
    const away = name.length > MAX_COMPARED ? undefined : awayFrom(wanted, formsOf(name))
    return away === undefined ? [] : { name, away }
  })
  near.sort((a, b) => a.away - b.away)
  return [...new Set([...near.map(({ name }) => name), ...found])].slice(0, MAX_NEAREST)
}

/** A name without case and separators. */
interface Forms {
  whole: string
  /** Also without its prefix. */
  bare: string
}

function formsOf(name: string): Forms {
  const plain = (text: string) => folded(text).replace(/[^\p{L}\p{M}\p{N}]+/gu, '')
  const at = name.indexOf(SEPARATOR)
  return { whole: plain(name), bare: plain(at < 0 ? name : name.slice(at + SEPARATOR.length)) }
}

/** How far a name is from the wanted one; undefined if it is not near. The right prefix counts a little. */
function awayFrom(wanted: Forms, name: Forms): number | undefined {
  const inWhole = apart(wanted.whole, name.whole)
  const inBare = apart(wanted.bare, name.bare) ?? apart(wanted.whole, name.bare)
  if (inWhole === undefined) return inBare === undefined ? undefined : inBare + OTHER_PREFIX
  return inBare === undefined ? inWhole : Math.min(inWhole, inBare + OTHER_PREFIX)
}

function apart(wanted: string, name: string): number | undefined {
  return wanted === '' ? undefined : lettersApart(wanted, name, Math.floor(wanted.length / PER_LETTER))
}
