/** Removes the dialect of a JSON Schema that has the same meaning in draft 7. */
import { edit, type Payload, value, write } from '../../../base/rpc/splice.js'

const DIALECT_2020 = /^https?:\/\/json-schema\.org\/draft\/2020-12\/schema#?$/
/** Keywords that draft 7 lacks or reads differently (JSON Schema 2019-09 and 2020-12, release notes). */
const NEWER: ReadonlySet<string> = new Set([
  ...['prefixItems', 'unevaluatedItems', 'unevaluatedProperties', 'minContains', 'maxContains'],
  ...['dependentRequired', 'dependentSchemas', '$anchor', '$dynamicAnchor', '$dynamicRef', '$vocabulary'],
  ...['$recursiveAnchor', '$recursiveRef', '$id'],
])
/** Keywords that have a meaning beside `$ref`, or need none. Draft 7 ignores all others there. */
const NOTES: ReadonlySet<string> = new Set([
  ...['$ref', '$schema', '$comment', '$defs', 'definitions', 'title', 'description', 'default', 'examples'],
  ...['deprecated', 'readOnly', 'writeOnly'],
])
/** Levels of nested schemas that are examined. */
const MAX_DIALECT_DEPTH = 64

/**
 * The schema without `$schema`, if that names 2020-12 and the schema means the same in draft 7: clients whose validator
 * knows only draft 7 refuse the tool otherwise.
 */
export function withoutIdleDialect(schema: Payload): Payload {
  const dialect = value(schema, '$schema')
  if (typeof dialect !== 'string' || !DIALECT_2020.test(dialect)) return schema
  return isOfEveryDialect(JSON.parse(write(schema))) ? edit(schema, { $schema: undefined }) : schema
}

/**
 * Whether a parsed schema of 2020-12 means the same in every dialect since draft 7. False if unsure: a property that
 * has the name of a keyword counts as the keyword.
 */
function isOfEveryDialect(schema: unknown, level = 0): boolean {
  if (typeof schema !== 'object' || schema === null) return true
  if (level > MAX_DIALECT_DEPTH) return false
  if (Array.isArray(schema)) return schema.every((one) => isOfEveryDialect(one, level + 1))
  const keys = Object.keys(schema)
  if (keys.some((key) => NEWER.has(key))) return false
  if (keys.includes('$ref') && !keys.every((key) => NOTES.has(key))) return false
  return Object.values(schema).every((one) => isOfEveryDialect(one, level + 1))
}
