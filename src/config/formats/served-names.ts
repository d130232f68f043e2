/** Names of servers that can be part of a path: letters, digits, ".", "_" and "-". */

const LENGTH = 64
const GOOD = /^[\w.-]{1,64}$/

/**
 * Turns a text into a name that can be part of a path and a key of any object: letters, digits, ".", "_" and "-",
 * starting and ending with a letter or digit.
 */
export function pathName(text: string): string {
  const name = text
    .slice(0, 1_000)
    .replace(/[^A-Za-z0-9._-]+/g, '-')
    .replace(/^[._-]+/, '')
  const trimmed = name.slice(0, LENGTH).replace(/(?<![._-])[._-]+$/, '')
  // Names of members of Object.prototype.
  return trimmed === '' || trimmed in {} ? `${trimmed}server` : trimmed
}

/** Letters and digits that names cannot have. */
const LOST = /[^\P{L}A-Za-z]|[^\P{N}0-9]/gu
/** Most characters of what stands for them. */
const MAX_LOST = 24

/** As `pathName`, with the code points of lost letters, so that a name does not depend on others in the same script. */
function ownName(text: string): string {
  const lost = text.slice(0, 1_000).match(LOST) ?? []
  const points = lost.map((letter) => (letter.codePointAt(0) as number).toString(16)).join('')
  return points === ''
    ? pathName(text)
    : `${pathName(text).slice(0, LENGTH - MAX_LOST - 1)}-${points.slice(0, MAX_LOST)}`
}

/** A name for a text that is not one of `taken`. Adds it to `taken`. */
export function freeName(wanted: string, taken: Set<string>): string {
  const name = ownName(wanted)
  let free = name
  for (let number = 2; taken.has(free); number++) {
    const suffix = `-${number}`
    free = name.slice(0, LENGTH - suffix.length) + suffix
  }
  taken.add(free)
  return free
}

/** Valid names by the given ones. Valid ones do not change. */
export function servedNames(given: readonly string[]): ReadonlyMap<string, string> {
  const taken = new Set(given.filter((name) => GOOD.test(name) && !(name in {})))
  return new Map(given.map((name) => [name, taken.has(name) ? name : freeName(name, taken)]))
}
