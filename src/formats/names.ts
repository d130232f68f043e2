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

/** As `pathName`, but not one of `taken`. Adds the name to `taken`. */
export function freeName(wanted: string, taken: Set<string>): string {
  const name = pathName(wanted)
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
