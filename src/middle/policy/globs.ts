/** Matches names of tools and prompts against globs. */
import picomatch from 'picomatch'
import { perObject } from '../../base/rpc/memoize.js'

/** Longest name that is matched against globs, in characters. */
export const MAX_MATCHED_NAME = 256

/** Replaces a slash: globs treat it as an ordinary character, and names do not contain it. */
const SLASH = '\uffff'

/** Returns a function that tells whether a name matches one of the globs. `*` stands for any characters. */
export function globs(list: readonly string[]): (name: string) => boolean {
  if (list.length === 0) return () => false
  const matches = picomatch(list.map(plain), { dot: true, posix: true, windows: false })
  return (name) => name.length <= MAX_MATCHED_NAME && matches(plain(name))
}

const matcherOf = perObject(globs)

/** As `globs`, for lists that are used often: their globs are compiled once. */
export function matchesGlobs(list: readonly string[], name: string): boolean {
  return matcherOf(list)(name)
}

/** The text as a single path segment: names are not paths, so "/", "." and ".." must not be special. */
function plain(text: string): string {
  return `n${text.replaceAll('/', SLASH)}`
}
