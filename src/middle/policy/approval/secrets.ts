/** Finds the members of arguments that a schema marks as secret: their values are not shown to people. */

import { isMembers, type Members, resolved } from '../portable/forms.js'

/** Keywords that hold alternatives or parts of a schema. */
const PARTS = ['anyOf', 'oneOf', 'allOf'] as const
/** Most levels of references and parts that are followed from a member. */
const MAX_FOLLOWED = 8
/** An annotation of a vendor. */
const MARK = /^x-.*(?:secret|sensitive)/i

/** The names of members that are secret somewhere in the schema. */
export function secretNames(schema: unknown): ReadonlySet<string> {
  const names = new Set<string>()
  visit(schema, schema, names)
  return names
}

function visit(node: unknown, root: unknown, names: Set<string>): void {
  if (typeof node !== 'object' || node === null) return
  const { properties } = node as Members
  if (isMembers(properties))
    for (const [name, member] of Object.entries(properties)) if (isSecret(member, root, MAX_FOLLOWED)) names.add(name)
  for (const inner of Object.values(node)) visit(inner, root, names)
}

function isSecret(node: unknown, root: unknown, left: number): boolean {
  if (!isMembers(node) || left === 0) return false
  if (node['format'] === 'password' || node['writeOnly'] === true) return true
  if (Object.entries(node).some(([key, value]) => value === true && MARK.test(key))) return true
  const parts = PARTS.flatMap((key) => (Array.isArray(node[key]) ? (node[key] as unknown[]) : []))
  const target = typeof node['$ref'] === 'string' ? resolved(node['$ref'], root) : undefined
  return [...parts, target, node['items']].some((one) => isSecret(one, root, left - 1))
}
