/** The form of a JSON Schema: which fields it has, and the JSON of what a person has entered. Pure. */

import { tokenOf } from '../../../base/rpc/pointer.js'
import { isRecord } from '../../record.js'
import { areEqual } from '../../replay/diff.js'
import { referred } from '../../schema-reference.js'
import type { JsonRecord } from '../../try/types.js'

/** One field of a form. */
export interface FormShape {
  kind: 'text' | 'number' | 'integer' | 'boolean' | 'one of' | 'object' | 'array' | 'choice' | 'json'
  title: string | undefined
  about: string | undefined
  /** Values to choose from. */
  values?: readonly { value: unknown; label: string }[]
  /** Of an object, in their order. A member that is not required may be absent. */
  members?: readonly { key: string; required: boolean; schema: unknown }[]
  /** Of an array. */
  items?: unknown
  /** Of a choice: its alternatives. */
  alternatives?: readonly unknown[]
  initial?: unknown
}

/** The content of a field; undefined if it is empty, so that the value is absent. */
export type Draft =
  | undefined
  | { text: string }
  | { value: unknown }
  | { members: ReadonlyMap<string, Draft> }
  | { items: readonly Draft[] }
  | { alternative: number; draft: Draft }

/** A mistake in a draft, at a JSON Pointer. */
export interface Wrong {
  at: string
  why: string
}

/** Most references that are followed from one place. */
const MAX_REFERENCES = 20

/** The shape of a schema. `root` is the schema that references point into. */
export function shapeOf(schema: unknown, root: unknown): FormShape {
  const found = followed(schema, root)
  if (!isRecord(found)) return { kind: 'json', title: undefined, about: undefined }
  const { title, description, default: initial } = found
  const common = { title: textIn(title), about: textIn(description), initial }
  const values = valuesIn(found)
  if (values) return { kind: 'one of', ...common, values }
  const alternatives = found['anyOf'] ?? found['oneOf']
  const { properties, required, items } = found
  const type = typeOf(found)
  // Without properties, any object is allowed: there is nothing to draw, but its JSON can be edited.
  if (type === 'object') {
    const needed = new Set(Array.isArray(required) ? required : [])
    const members = Object.entries(isRecord(properties) ? properties : {}).map(([key, schema]) => ({
      key,
      required: needed.has(key),
      schema,
    }))
    return { kind: 'object', ...common, members }
  }
  if (type === 'array') return { kind: 'array', ...common, items: Array.isArray(items) ? true : (items ?? true) }
  if (type === 'string') return { kind: 'text', ...common }
  if (type === 'number' || type === 'integer' || type === 'boolean') return { kind: type, ...common }
  if (Array.isArray(alternatives) && alternatives.length > 0) return { kind: 'choice', ...common, alternatives }
  return { kind: 'json', ...common }
}

/** The initial content of a field: the default, or required members. */
export function draftOf(shape: FormShape, root: unknown, required: boolean, value: unknown = shape.initial): Draft {
  if (value !== undefined) return filled(shape, root, value)
  if (!required) return undefined
  if (shape.kind === 'object') {
    const members = new Map<string, Draft>()
    for (const { key, required, schema } of shape.members ?? []) {
      const member = shapeOf(schema, root)
      // A schema may require itself without an end.
      if (member.kind !== 'object' || member.initial !== undefined)
        members.set(key, draftOf(member, root, required && member.kind !== 'choice'))
    }
    return { members }
  }
  if (shape.kind === 'array') return { items: [] }
  return undefined
}

/** The draft of a value. A value that does not fit the field becomes JSON, which replaces the field. */
export function filled(shape: FormShape, root: unknown, value: unknown): Draft {
  if (value === undefined) return undefined
  if (!holds(shape, value)) return { text: JSON.stringify(value, null, 2) }
  if (shape.kind === 'text' || shape.kind === 'number' || shape.kind === 'integer') return { text: String(value) }
  if (shape.kind === 'object') {
    const known = new Map((shape.members ?? []).map(({ key, schema }) => [key, schema]))
    const members = Object.entries(value as JsonRecord).map(([key, one]): [string, Draft] => {
      const schema = known.get(key)
      return [key, schema === undefined ? { value: one } : filled(shapeOf(schema, root), root, one)]
    })
    return { members: new Map(members) }
  }
  if (shape.kind === 'array') {
    const item = shapeOf(shape.items, root)
    return { items: (value as unknown[]).map((one) => filled(item, root, one)) }
  }
  if (shape.kind === 'choice') {
    const shapes = (shape.alternatives ?? []).map((one) => shapeOf(one, root))
    const alternative = shapes.findIndex((one) => one.kind !== 'choice' && holds(one, value))
    if (alternative >= 0) return { alternative, draft: filled(shapes[alternative] as FormShape, root, value) }
  }
  return shape.kind === 'json' || shape.kind === 'choice' ? { text: JSON.stringify(value, null, 2) } : { value }
}

/** Whether a field can hold a value. */
function holds({ kind, values = [] }: FormShape, value: unknown): boolean {
  switch (kind) {
    case 'text':
      return typeof value === 'string'
    case 'number':
    case 'integer':
      return typeof value === 'number'
    case 'boolean':
      return typeof value === 'boolean'
    case 'one of':
      return values.some((one) => areEqual(one.value, value))
    case 'object':
      return isRecord(value)
    case 'array':
      return Array.isArray(value)
    case 'choice':
    case 'json':
      return true
  }
}

/** Whether a field is drawn as JSON, because its content does not fit the field. */
export function isInJson({ kind }: FormShape, draft: Draft): boolean {
  return draft !== undefined && 'text' in draft && kind !== 'text' && kind !== 'number' && kind !== 'integer'
}

/** The value of a draft; undefined if it is absent. Mistakes are added to `wrong`. */
export function readDraft(
  shape: FormShape,
  root: unknown,
  draft: Draft,
  required: boolean,
  wrong: Wrong[],
  at = '',
): unknown {
  if (draft === undefined) {
    if (required && shape.kind === 'text') return ''
    if (required) wrong.push({ at, why: 'is required' })
    return undefined
  }
  if ('value' in draft) return draft.value
  if ('members' in draft) {
    const known = new Map((shape.members ?? []).map((member) => [member.key, member]))
    for (const { key, required, schema } of known.values())
      if (required && draft.members.get(key) === undefined && shapeOf(schema, root).kind !== 'text')
        wrong.push({ at: `${at}/${tokenOf(key)}`, why: 'is required' })
    const entries = [...draft.members].flatMap(([key, member]): [string, unknown][] => {
      const { schema, required = false } = known.get(key) ?? {}
      const isMissing = member === undefined
      const value =
        isMissing && !(required && shapeOf(schema, root).kind === 'text')
          ? undefined
          : readDraft(shapeOf(schema, root), root, member, required, wrong, `${at}/${tokenOf(key)}`)
      return value === undefined ? [] : [[key, value]]
    })
    // Object.fromEntries makes own members of any name, also of __proto__.
    return Object.fromEntries(entries)
  }
  if ('items' in draft) {
    const item = shapeOf(shape.items, root)
    return draft.items.map((one, i) => readDraft(item, root, one, true, wrong, `${at}/${i}`) ?? null)
  }
  if ('alternative' in draft) {
    const chosen = shapeOf(shape.alternatives?.[draft.alternative], root)
    return readDraft(chosen, root, draft.draft, true, wrong, at)
  }
  return textValue(shape, draft.text, required, wrong, at)
}

/** Digits that may be more than a number can hold. */
const LARGE = /\d{16}/

/** Whether no whole number in a value has been rounded. */
function isExact(value: unknown): boolean {
  if (typeof value === 'number')
    return Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value))
  return typeof value !== 'object' || value === null || Object.values(value).every(isExact)
}

function textValue(shape: FormShape, text: string, required: boolean, wrong: Wrong[], at: string): unknown {
  if (shape.kind === 'text') return text === '' && !required ? undefined : text
  if (text.trim() === '') {
    if (required) wrong.push({ at, why: 'is required' })
    return undefined
  }
  if (shape.kind === 'number' || shape.kind === 'integer') {
    const number = Number(text)
    if (!isExact(number)) wrong.push({ at, why: `is not a number that can be sent exactly: ${text}` })
    else if (shape.kind === 'integer' && !Number.isInteger(number)) wrong.push({ at, why: 'must be a whole number' })
    return number
  }
  try {
    const value: unknown = JSON.parse(text)
    if (LARGE.test(text) && !isExact(value)) wrong.push({ at, why: 'contains a number that cannot be sent exactly' })
    return value
  } catch (error) {
    wrong.push({ at, why: `is not JSON: ${(error as Error).message}` })
    return undefined
  }
}

/** The schema that references lead to, within the same document. Others are not followed. */
function followed(schema: unknown, root: unknown): unknown {
  let found = schema
  for (let steps = 0; steps < MAX_REFERENCES; steps++) {
    if (!isRecord(found)) return found
    const { $ref: reference, allOf, ...own } = found
    if (typeof reference === 'string') {
      const target = referred(root, reference)
      if (!isRecord(target)) return own
      found = { ...target, ...own }
    } else if (Array.isArray(allOf) && allOf.length === 1) found = { ...(isRecord(allOf[0]) ? allOf[0] : {}), ...own }
    else return found
  }
  return undefined
}

function typeOf({ type, properties }: JsonRecord): unknown {
  if (Array.isArray(type)) {
    const others = type.filter((one) => one !== 'null')
    return others.length === 1 ? others[0] : undefined
  }
  return type ?? (isRecord(properties) ? 'object' : undefined)
}

function valuesIn({ enum: values, enumNames: names, const: only, oneOf, anyOf }: JsonRecord) {
  if (only !== undefined) return [{ value: only, label: labelOf(only) }]
  if (Array.isArray(values))
    return values.map((value, i) => ({ value, label: (Array.isArray(names) && textIn(names[i])) || labelOf(value) }))
  const alternatives = oneOf ?? anyOf
  if (!Array.isArray(alternatives) || alternatives.length === 0) return undefined
  const consts = alternatives.map((one) => (isRecord(one) && 'const' in one ? one : undefined))
  if (consts.includes(undefined)) return undefined
  return consts.map((one) => ({ value: one?.['const'], label: textIn(one?.['title']) ?? labelOf(one?.['const']) }))
}

function labelOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

function textIn(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}
