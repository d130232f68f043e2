/** Changes members inside an object, in one pass. Each function returns the same object if nothing changes. */
import { cut } from '../../../base/rpc/source.js'
import {
  edit,
  type Json,
  keys,
  mapElements,
  objectIn,
  type Payload,
  parseObject,
  payloadAt,
  type Value,
  write,
} from '../../../base/rpc/splice.js'
import { membersAt } from '../../../base/rpc/table.js'
import { holdsSchemas } from './schemas.js'

type Change = (before: Payload) => Payload
type Changes = Parameters<typeof mapElements> extends [Payload, string, ...infer Rest] ? Rest : never

/** One member of an object, for objects with many members. */
export interface MemberEntry {
  key: string
  /** The value, if it is an object. */
  object: Payload | undefined
  /** The first character of the value. */
  opens: string
  /** The value as text. */
  json(): Json
  /** The member, key and value, as text. */
  text(): Json
}

export function entriesOf(object: Payload): MemberEntry[] {
  const { source, table, row } = object.edits ? parseObject(write(object)) : object
  return membersAt(source, table, row).map((member) => ({
    key: member.key,
    object: payloadAt(source, member),
    opens: source.text.charAt(member.start),
    json: () => cut(source, member.start, member.end),
    text: () => cut(source, member.at, member.end),
  }))
}

/** An object of these members. */
export function objectOf(members: readonly Json[]): Payload {
  return parseObject(`{${members.join(',')}}`)
}

/** Changes the object under `key`, if there is one. */
export function inObject(object: Payload, key: string, change: Change): Payload {
  const before = objectIn(object, key)
  const after = before && change(before)
  return !after || after === before ? object : edit(object, { [key]: after })
}

/** Changes the elements of the array under `key`, if there is one, as `mapElements` does. */
export function inArray(object: Payload, key: string, ...changes: Changes): Payload {
  const after = mapElements(object, key, ...changes)
  return after === undefined ? object : edit(object, { [key]: after })
}

/**
 * Changes each object in an object that holds others by name, such as the properties of a schema. `others` replaces
 * values that are not objects; undefined keeps them.
 */
export function mapMembers(
  object: Payload,
  change: (before: Payload, key: string) => Payload,
  others?: (entry: MemberEntry) => Json | undefined,
): Payload {
  // The last of duplicate members counts.
  const entries = new Map(entriesOf(object).map((entry) => [entry.key, entry]))
  const edits = [...entries].flatMap(([key, entry]): [string, Value][] => {
    const after = entry.object ? change(entry.object, key) : others?.(entry)
    return after === undefined || after === entry.object ? [] : [[key, after]]
  })
  return edits.length === 0 ? object : edit(object, Object.fromEntries(edits))
}

/** Changes each schema directly inside a schema. `name` is its name, if the keyword holds schemas by name. */
export function mapSchemas(
  schema: Payload,
  change: (inner: Payload, keyword: string, name?: string) => Payload,
): Payload {
  let changed = schema
  for (const keyword of keys(schema)) {
    const holds = holdsSchemas(keyword)
    const each = (inner: Payload) => change(inner, keyword)
    if (holds === 'by name')
      changed = inObject(changed, keyword, (named) => mapMembers(named, (inner, name) => change(inner, keyword, name)))
    else if (holds) changed = inArray(inObject(changed, keyword, each), keyword, each)
  }
  return changed
}

/** Keeps only the members for which `keep` is true. */
export function keepMembers(object: Payload, keep: (key: string) => boolean): Payload {
  const others = keys(object).filter((key) => !keep(key))
  return others.length === 0 ? object : edit(object, Object.fromEntries(others.map((key) => [key, undefined])))
}
