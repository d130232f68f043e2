/** Translates names of tools, prompts and tasks to those in a group, `<prefix>__<name>`, and back. */

/** The prefix of a server. It contains no "_", so it ends before the first separator. */
export interface Prefixed {
  readonly prefix: string
}

/**
 * Between prefix and name. APIs of models refuse ".", ":" and "/" in names of tools, and a single "_" would be
 * ambiguous: "a_b_c" could be "a_b" and "c", or "a" and "b_c".
 */
export const SEPARATOR = '__'

/** The name as clients of the group see it. */
export function prefixed({ prefix }: Prefixed, name: string): string {
  return `${prefix}${SEPARATOR}${name}`
}

/** The server of a name in the group, and the server's own name; undefined if no server has the prefix. */
export function splitName<M extends Prefixed>(
  members: readonly M[],
  name: string,
): { member: M; name: string } | undefined {
  const at = name.indexOf(SEPARATOR)
  if (at < 0) return undefined
  const member = members.find(({ prefix }) => prefix.length === at && name.startsWith(prefix))
  return member && { member, name: name.slice(at + SEPARATOR.length) }
}

/** Most characters that APIs of models allow in the name of a tool. */
const LONGEST = 64

/**
 * Whether a name in a group is too long for clients that put the name of the server, here the group, before names of
 * tools, as in `mcp__team__github__search`.
 */
export function isTooLong(group: string, name: string): boolean {
  return `mcp__${group}__${name}`.length > LONGEST
}

const USUAL = /^[A-Za-z0-9_-]*$/

/** Whether a name of a tool has characters that APIs of models refuse. */
export function isUnusual(name: string): boolean {
  return !USUAL.test(name)
}

/** Segments of a path that lead elsewhere. */
const STEPS = /(?<=^|[/\\])(?:\.|%2e){1,2}(?=$|[/\\])/gi

/** The name of a logger as clients of the group see it. It stays below its prefix if a client reads it as a path. */
export function prefixedLogger({ prefix }: Prefixed, logger: string | undefined): string {
  return logger === undefined ? prefix : `${prefix}/${logger.replace(STEPS, (step) => step.replace(/\.|%2e/gi, '_'))}`
}
