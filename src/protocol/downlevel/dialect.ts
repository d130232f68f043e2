/** Which dialect of JSON Schema a schema has to be read in. */
import { edit, type Payload, value, write } from '../../rpc/splice.js'

const DIALECT_2020 = /^https?:\/\/json-schema\.org\/draft\/2020-12\/schema#?$/
/** Keywords that draft 7 does not have, or reads otherwise (JSON Schema 2019-09 and 2020-12, release notes). */
const NEWER: ReadonlySet<string> = new Set([
  ...['prefixItems', 'unevaluatedItems', 'unevaluatedProperties', 'minContains', 'maxContains'],
  ...['dependentRequired', 'dependentSchemas', '$anchor', '$dynamicAnchor', '$dynamicRef', '$vocabulary'],
  ...['$recursiveAnchor', '$recursiveRef', '$id'],
])
/** What may stand beside a `$ref`, of which draft 7 reads nothing else, without changing what the schema takes. */
const NOTES: ReadonlySet<string> = new Set([
  ...['$ref', '$schema', '$comment', '$defs', 'definitions', 'title', 'description', 'default', 'examples'],
  ...['deprecated', 'readOnly', 'writeOnly'],
])
/** Schemas inside one another that are looked at. */
const MAX_NESTING = 64

/** The schema without `$schema` where that names 2020-12 and nothing of it is used: clients that know only draft 7 refuse it. */
export function withoutIdleDialect(schema: Payload): Payload {
  const dialect = value(schema, '$schema')
  if (typeof dialect !== 'string' || !DIALECT_2020.test(dialect)) return schema
  return isOfEveryDialect(JSON.parse(write(schema))) ? edit(schema, { $schema: undefined }) : schema
}

/**
 * Whether a schema of 2020-12, as JSON.parse makes it, means the same in every dialect since draft 7. Says no where it is
 * not sure: a property of the name of a keyword counts as the keyword.
 */
function isOfEveryDialect(schema: unknown, level = 0): boolean {
  if (typeof schema !== 'object' || schema === null) return true
  if (level > MAX_NESTING) return false
  if (Array.isArray(schema)) return schema.every((one) => isOfEveryDialect(one, level + 1))
  const keys = Object.keys(schema)
  if (keys.some((key) => NEWER.has(key))) return false
  if (keys.includes('$ref') && !keys.every((key) => NOTES.has(key))) return false
  return Object.values(schema).every((one) => isOfEveryDialect(one, level + 1))
}
