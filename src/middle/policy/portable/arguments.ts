/** Maps the arguments of a call that fit the portable schema of a tool to those of its own schema. */
import { EMPTY, edit, has, objectIn, type Payload, raw, type Value } from '../../../base/rpc/splice.js'
import type { Mapping } from './schema.js'

/** The arguments for the server. What does not fit the portable schema stays, so that the server judges it. */
export function original(args: Payload | undefined, mapping: Mapping): Payload | undefined {
  const { within } = mapping
  if (within !== undefined) return (args && objectIn(args, within)) ?? args
  const given = args ?? EMPTY
  const names = Object.entries(mapping.names ?? {})
  const edits = new Map<string, Value | undefined>()
  for (const [shown, name] of names)
    if (has(given, shown)) {
      edits.set(shown, undefined)
      edits.set(name, raw(given, shown))
    }
  for (const [name, inside] of Object.entries(mapping.members ?? {})) {
    const member = objectIn(given, names.find(([, at]) => at === name)?.[0] ?? name)
    if (member) edits.set(name, original(member, inside))
  }
  for (const name of mapping.nulls ?? []) if (!has(given, name) && !edits.has(name)) edits.set(name, 'null')
  return edit(given, Object.fromEntries(edits))
}
