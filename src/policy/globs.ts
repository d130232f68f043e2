/** Globs of the names of tools and prompts. */
import picomatch from 'picomatch'

/** Longest name that is matched against globs, in characters. */
export const MAX_MATCHED_NAME = 256

/** Stands for a slash, and is nothing special for globs. No name has it. */
const SLASH = '\uffff'

/** Returns a function that tells whether a name matches one of the globs. `*` stands for any characters. */
export function globs(list: readonly string[]): (name: string) => boolean {
  if (list.length === 0) return () => false
  const matches = picomatch(list.map(plain), { dot: true, posix: true, windows: false })
  return (name) => name.length <= MAX_MATCHED_NAME && matches(plain(name))
}

/** The text as one segment of a path: names are no paths, so "/" separates nothing, and "." and ".." are ordinary. */
function plain(text: string): string {
  return `n${text.replaceAll('/', SLASH)}`
}
