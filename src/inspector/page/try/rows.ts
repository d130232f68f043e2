/** A schema as rows of a table: each value with its type, rules and description. Pure. */
import { type FormShape, shapeOf } from './shape.js'

export interface SchemaRow {
  /** Its place, as in `a.b[]`; '' for the whole. */
  at: string
  type: string
  required: boolean
  /** Its other rules, as in `default: 3`. */
  rules: readonly string[]
  about: string | undefined
}

/** Most rows, and levels of values within values. */
const MAX_ROWS = 500
const MAX_LEVELS = 6
/** Longest text of one rule. */
const MAX_RULE = 300
/** Keywords that are rules of one value, in their order. */
const RULES = [
  ...['const', 'default', 'examples', 'format', 'pattern', 'minLength', 'maxLength', 'contentMediaType'],
  ...['minimum', 'exclusiveMinimum', 'maximum', 'exclusiveMaximum', 'multipleOf'],
  ...['minItems', 'maxItems', 'uniqueItems', 'minProperties', 'maxProperties', 'additionalProperties'],
  ...['writeOnly', 'readOnly', 'deprecated', 'x-mcp-header'],
]

/** The rows of a schema, and whether there are more. */
export function rowsOf(schema: unknown): { rows: SchemaRow[]; cut: boolean } {
  const rows: SchemaRow[] = []
  let cut = false
  const add = (at: string, part: unknown, required: boolean, level: number) => {
    if (rows.length >= MAX_ROWS || level > MAX_LEVELS) {
      cut = true
      return
    }
    const shape = shapeOf(part, schema)
    if (level > 0) rows.push(rowOf(at, part, schema, required))
    for (const member of shape.members ?? [])
      add(at === '' ? member.key : `${at}.${member.key}`, member.schema, member.required, level + 1)
    if (shape.kind === 'array' && hasRows(shapeOf(shape.items, schema))) add(`${at}[]`, shape.items, true, level + 1)
    for (const [i, one] of (shape.alternatives ?? []).entries())
      if (hasRows(shapeOf(one, schema))) add(`${at} (${i + 1})`, one, true, level + 1)
  }
  add('', schema, true, 0)
  return { rows, cut }
}

function hasRows({ kind, members = [] }: FormShape): boolean {
  return kind === 'array' || kind === 'choice' || members.length > 0
}

function rowOf(at: string, part: unknown, root: unknown, required: boolean): SchemaRow {
  const shape = shapeOf(part, root)
  const own = typeof part === 'object' && part !== null ? (part as Record<string, unknown>) : {}
  const rules = RULES.filter((key) => Object.hasOwn(own, key)).map(
    (key) => `${key}: ${short(JSON.stringify(own[key]) ?? '')}`,
  )
  return { at, type: typeOf(shape, root), required, rules, about: shape.about ?? shape.title }
}

function typeOf({ kind, values = [], alternatives = [], items }: FormShape, root: unknown): string {
  if (kind === 'one of') return short(values.map(({ label }) => label).join(' | '))
  if (kind === 'choice') return `one of ${alternatives.length} forms`
  return kind === 'array' ? `array of ${wordFor(shapeOf(items, root))}` : wordFor({ kind })
}

const WORDS: Partial<Record<FormShape['kind'], string>> = {
  text: 'string',
  json: 'any',
  'one of': 'some values',
  choice: 'several forms',
}

function wordFor({ kind }: Pick<FormShape, 'kind'>): string {
  return WORDS[kind] ?? kind
}

function short(text: string): string {
  return text.length > MAX_RULE ? `${text.slice(0, MAX_RULE)}…` : text
}
