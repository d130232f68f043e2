/**
 * The types of src/app/embed/file-options.ts as the package has them: written out with their descriptions, and without zod. Made of the
 * JSON Schema of the configuration.
 */
import { isDeepStrictEqual } from 'node:util'
import { jsonSchema } from '../src/config/json-schema.js'

/** As much of JSON Schema as that of the configuration uses. */
interface Schema {
  type?: string | string[]
  description?: string
  const?: unknown
  enum?: readonly unknown[]
  anyOf?: readonly Schema[]
  items?: Schema
  properties?: Readonly<Record<string, Schema>>
  required?: readonly string[]
  additionalProperties?: Schema | boolean
  $ref?: string
}

/** The text of the declaration. */
export function fileOptionsModule(): string {
  const { mcpServers = {}, groups = {}, ...others } = (jsonSchema() as Schema).properties ?? {}
  const [program = {}, address = {}] = valuesOf(mcpServers).anyOf ?? []
  const group = valuesOf(groups.anyOf?.[1])
  const properties = {
    mcpServers: { ...mcpServers, additionalProperties: { $ref: 'ProgramEntry | AddressEntry' } },
    groups: { ...groups, anyOf: [{ const: false }, { type: 'object', additionalProperties: { $ref: 'GroupEntry' } }] },
    ...others,
  }
  const [shared, ofPrograms, ofAddresses] = apart(program, address)
  const types: [string, string, Schema][] = [
    ['ServerOptions', 'Options that concern a server whatever it is.', shared],
    ['ProgramEntry extends ServerOptions', 'A server that is a program.', ofPrograms],
    ['AddressEntry extends ServerOptions', 'A server at an address.', ofAddresses],
    ['GroupEntry', 'A group of servers.', group],
    ['FileOptions', 'The options of a configuration file.', { type: 'object', properties }],
  ]
  return [
    '/** The options of a configuration file. */\n',
    ...types.map(([name, about, one]) => `/** ${about} */\nexport interface ${name} ${typeOf(one)}\n`),
  ].join('\n')
}

/** The options that two kinds of entries have in common, and those that only one of them has. */
function apart(a: Schema, b: Schema): [shared: Schema, ofA: Schema, ofB: Schema] {
  const [ofA, ofB] = [a.properties ?? {}, b.properties ?? {}]
  const isShared = (name: string) => isDeepStrictEqual(ofA[name], ofB[name])
  const only = (schema: Schema, keeps: (name: string) => boolean): Schema => ({
    ...schema,
    properties: Object.fromEntries(Object.entries(schema.properties ?? {}).filter(([name]) => keeps(name))),
  })
  return [only(a, isShared), only(a, (name) => !isShared(name)), only(b, (name) => !isShared(name))]
}

/** The schema of the values of an object with any keys. */
function valuesOf(schema: Schema | undefined): Schema {
  return typeof schema?.additionalProperties === 'object' ? schema.additionalProperties : {}
}

function typeOf(schema: Schema): string {
  // The only definition is that of any JSON; otherwise it is one of the types here.
  if (schema.$ref !== undefined) return schema.$ref.startsWith('#') ? 'unknown' : schema.$ref
  if (schema.const !== undefined) return literal(schema.const)
  if (schema.enum) return schema.enum.map(literal).join(' | ')
  if (schema.anyOf) return schema.anyOf.map(typeOf).join(' | ')
  if (Array.isArray(schema.type)) return schema.type.map((type) => typeOf({ ...schema, type })).join(' | ')
  switch (schema.type) {
    case 'array':
      return `readonly ${itemOf(schema.items ?? {})}[]`
    case 'object':
      return objectOf(schema)
    case 'integer':
      return 'number'
    case 'string':
    case 'number':
    case 'boolean':
      return schema.type
    default:
      return 'unknown'
  }
}

/** A union, or another list, has to be in parentheses. */
function itemOf(schema: Schema): string {
  const isWhole = !schema.anyOf && !schema.enum && !Array.isArray(schema.type) && schema.type !== 'array'
  return isWhole ? typeOf(schema) : `(${typeOf(schema)})`
}

function objectOf({ properties, required = [], additionalProperties }: Schema): string {
  if (!properties) {
    const values = typeof additionalProperties === 'object' ? typeOf(additionalProperties) : 'unknown'
    return `Readonly<Record<string, ${values}>>`
  }
  const members = Object.entries(properties).map(([name, one]) => {
    const about = one.description === undefined ? '' : `/** ${one.description.replaceAll('*/', '*\\/')} */\n`
    return `${about}${/^[\w$]+$/.test(name) ? name : literal(name)}${required.includes(name) ? '' : '?'}: ${typeOf(one)};`
  })
  return `{\n${members.join('\n').replaceAll(/^/gm, '    ')}\n}`
}

function literal(value: unknown): string {
  return typeof value === 'string' ? `'${value.replace(/['\\]/g, '\\$&')}'` : String(value)
}
