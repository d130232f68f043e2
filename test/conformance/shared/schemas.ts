/** The larger schemas: of a tool's arguments, and of the forms that tools have a person fill in. */
import type { ElicitRequestFormParams } from '@modelcontextprotocol/sdk/types.js'

type Json = string | number | boolean | Json[] | { [member: string]: Json }

export interface Schema {
  type: 'object'
  properties?: Record<string, { [keyword: string]: Json }>
  required?: string[]
  [keyword: string]: unknown
}

export type Form = ElicitRequestFormParams['requestedSchema']

/** A form with required fields of one type each. */
export function form(fields: Record<string, 'string' | 'boolean'>): Form {
  const properties = Object.entries(fields).map(([name, type]) => [name, { type }])
  return { type: 'object', properties: Object.fromEntries(properties), required: Object.keys(fields) }
}

/** Keywords that a proxy may lose on the way: references, composition, conditions, a closed list of properties. */
export const schema2020: Schema = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  $defs: {
    address: {
      $anchor: 'addressDef',
      type: 'object',
      properties: { street: { type: 'string' }, city: { type: 'string' } },
    },
  },
  properties: {
    name: { type: 'string' },
    address: { $ref: '#/$defs/address' },
    contactMethod: { type: 'string', enum: ['phone', 'email'] },
    phone: { type: 'string' },
    email: { type: 'string' },
  },
  allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
  if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
  // biome-ignore lint/suspicious/noThenProperty: the keyword has this name.
  then: { required: ['phone'] },
  else: { required: ['email'] },
  additionalProperties: false,
}

/** A default for each primitive type (SEP-1034). */
export const defaults: Form = {
  type: 'object',
  properties: {
    name: { type: 'string', description: 'Name', default: 'John Doe' },
    age: { type: 'integer', description: 'Age in years', default: 30 },
    score: { type: 'number', description: 'Score', default: 95.5 },
    status: { type: 'string', description: 'Status', enum: ['active', 'inactive', 'pending'], default: 'active' },
    verified: { type: 'boolean', description: 'Verified', default: true },
  },
  required: [],
}

/** Each way to write an enumeration (SEP-1330). */
export const enumerations: Form = {
  type: 'object',
  properties: {
    untitledSingle: { type: 'string', enum: ['option1', 'option2', 'option3'] },
    titledSingle: { type: 'string', oneOf: titled('First Option', 'Second Option', 'Third Option') },
    legacyEnum: {
      type: 'string',
      enum: ['opt1', 'opt2', 'opt3'],
      enumNames: ['Option One', 'Option Two', 'Option Three'],
    },
    untitledMulti: { type: 'array', items: { type: 'string', enum: ['option1', 'option2', 'option3'] } },
    titledMulti: { type: 'array', items: { anyOf: titled('First Choice', 'Second Choice', 'Third Choice') } },
  },
  required: [],
}

function titled(...titles: string[]): { const: string; title: string }[] {
  return titles.map((title, index) => ({ const: `value${index + 1}`, title }))
}
