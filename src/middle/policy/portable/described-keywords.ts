/**
 * What a portable schema says in words, because models' APIs refuse the keyword: at the end of the description. The server
 * still checks it.
 */
import { isMembers, type Members } from './forms.js'

/** Most characters of a value in words. */
const LONGEST = 120

type Say = (value: unknown, schema: Members) => string | undefined

const shown = (value: unknown): string => {
  const text = JSON.stringify(value) ?? ''
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text
}
const rule =
  (what: string): Say =>
  (value) =>
    `${what}: ${shown(value)}.`

/** Per keyword: what is said of its value. */
const SAYINGS: Readonly<Record<string, Say>> = {
  default: rule('Default'),
  format: (value) => (value === 'date-time' ? undefined : typeof value === 'string' ? `Format: ${value}.` : undefined),
  multipleOf: (value) => `A multiple of ${shown(value)}.`,
  exclusiveMinimum: (value, { type }) => (saysBound(value, type) ? `Greater than ${shown(value)}.` : undefined),
  exclusiveMaximum: (value, { type }) => (saysBound(value, type) ? `Less than ${shown(value)}.` : undefined),
  uniqueItems: (value) => (value === true ? 'No item occurs twice.' : undefined),
  contains: rule('At least one item fits'),
  minContains: rule('Least number of such items'),
  maxContains: rule('Greatest number of such items'),
  prefixItems: (value) => (isUniform(value) ? undefined : rule('The items in this order')(value, {})),
  items: (value) =>
    Array.isArray(value) && !isUniform(value) ? rule('The items in this order')(value, {}) : undefined,
  unevaluatedItems: (value) => (value === false ? 'No further items.' : undefined),
  minProperties: (value) => `At least ${shown(value)} members.`,
  maxProperties: (value) => `At most ${shown(value)} members.`,
  propertyNames: rule('Names of members'),
  patternProperties: rule('Members by patterns of names'),
  additionalProperties: (value) =>
    isMembers(value) && Object.keys(value).length > 0 ? `Further members: ${shown(value)}.` : undefined,
  unevaluatedProperties: (value) =>
    isMembers(value) && Object.keys(value).length > 0 ? `Further members: ${shown(value)}.` : undefined,
  dependentRequired: rule('Members that require others'),
  dependentSchemas: rule('Conditions by member'),
  dependencies: rule('Conditions by member'),
  not: rule('Not'),
  if: (value, schema) => rule('If, then, else')([value, schema['then'] ?? true, schema['else'] ?? true], schema),
}

/** The exclusive bound of an integer becomes an inclusive one. */
const saysBound = (value: unknown, type: unknown) => typeof value === 'number' && type !== 'integer'

/** Whether all schemas of a list are the same: then `items` says it. */
export const isUniform = (schemas: unknown): schemas is readonly unknown[] =>
  Array.isArray(schemas) && schemas.length > 0 && new Set(schemas.map((one) => JSON.stringify(one))).size === 1

/** What a schema without alternatives requires beyond what its portable form says. Adds its keywords to `said`. */
export function sayings(schema: Members, said: Set<string>): string[] {
  return Object.entries(schema).flatMap(([key, value]) => {
    const saying = Object.hasOwn(SAYINGS, key) ? SAYINGS[key]?.(value, schema) : undefined
    if (saying === undefined) return []
    said.add(key)
    return saying
  })
}

/** Keywords that are said in words: a value that the portable schema takes can miss them. */
export const SAID: readonly string[] = Object.keys(SAYINGS)
