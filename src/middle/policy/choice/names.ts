/** Decides from the configuration which tools or prompts of a server clients see, and under which names. */
import { globs, MAX_MATCHED_NAME } from '../globs.js'

/** Globs of the names at the server. Without `allow`, all are allowed; `deny` wins. */
export interface Rules {
  readonly allow?: readonly string[] | undefined
  readonly deny: readonly string[]
}

/** Whether rules say in so many words that they hide nothing: they allow `*`, and deny none. */
export function showsAll({ allow, deny }: Rules): boolean {
  return allow?.includes('*') === true && deny.length === 0
}

/**
 * Returns a function that gives the name for clients of a name at the server; undefined if it is hidden. `renamed` maps
 * names at the server to names for clients.
 */
export function chosenNames(
  { allow = ['*'], deny }: Rules,
  renamed: ReadonlyMap<string, string> = new Map(),
): (name: string) => string | undefined {
  const [allowed, denied] = [globs(allow), globs(deny)]
  // Globs do not match longer names, so these would pass `deny`.
  const isAllowed = (name: string) => name.length <= MAX_MATCHED_NAME && allowed(name) && !denied(name)
  // A configured name belongs to its tool, even if another tool of the server has the same one.
  const taken = new Set([...renamed].flatMap(([name, shown]) => (isAllowed(name) ? shown : [])))
  return (name) => (isAllowed(name) ? (renamed.get(name) ?? (taken.has(name) ? undefined : name)) : undefined)
}
