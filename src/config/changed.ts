/** Names the options in which two configurations differ, for the log: never their values. */
import { isObject } from './value.js'

/** Options whose members have names of their own, such as servers, and how many names lead to one of their options. */
const DEPTHS: Readonly<Record<string, number>> = { mcpServers: 3, groups: 3 }
const USUAL_DEPTH = 2
const MAX_NAMED_OPTIONS = 50

/** The paths of the options that differ, such as `limits.calls` and `mcpServers.github.env`. */
export function changedOptions(before: object, now: object): string[] {
  const changed = differences(before, now, [])
  return changed.length <= MAX_NAMED_OPTIONS
    ? changed
    : [...changed.slice(0, MAX_NAMED_OPTIONS), `and ${changed.length - MAX_NAMED_OPTIONS} more`]
}

function differences(before: object, now: object, path: readonly string[]): string[] {
  const [one, other] = [new Map(Object.entries(before)), new Map(Object.entries(now))]
  const names = [...new Set([...one.keys(), ...other.keys()])]
  return names.flatMap((name) => {
    const [was, is] = [one.get(name), other.get(name)] as [unknown, unknown]
    const at = [...path, name]
    if (JSON.stringify(was) === JSON.stringify(is)) return []
    const isNested = at.length < (DEPTHS[at[0] as string] ?? USUAL_DEPTH) && isObject(was) && isObject(is)
    return isNested ? differences(was, is, at) : [at.join('.')]
  })
}
