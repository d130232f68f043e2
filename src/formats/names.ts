/** Names of servers as they stand in paths: letters, digits, ".", "_" and "-". */

const LENGTH = 64
const GOOD = /^[\w.-]{1,64}$/

/**
 * A name that can stand in a path, and be a key of anything: letters, digits, ".", "_" and "-", with a letter or a digit at
 * both ends.
 */
export function pathName(text: string): string {
  const name = text
    .slice(0, 1_000)
    .replace(/[^A-Za-z0-9._-]+/g, '-')
    .replace(/^[._-]+/, '')
  const trimmed = name.slice(0, LENGTH).replace(/(?<![._-])[._-]+$/, '')
  // Objects have these from birth.
  return trimmed === '' || trimmed in {} ? `${trimmed}server` : trimmed
}

/** The same, and none of those that are taken; it is taken from then on. */
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

/** Names as they are where they will do, which no other gets; by the names that were given. */
export function servedNames(given: readonly string[]): ReadonlyMap<string, string> {
  const taken = new Set(given.filter((name) => GOOD.test(name) && !(name in {})))
  return new Map(given.map((name) => [name, taken.has(name) ? name : freeName(name, taken)]))
}
