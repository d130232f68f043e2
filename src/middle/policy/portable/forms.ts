/**
 * Takes a JSON Schema apart into its forms: alternatives without `$ref`, `allOf`, `anyOf`, `oneOf` and lists of types. A value
 * fits the schema if it fits a form.
 */
import { nameOfToken } from '../../../base/rpc/pointer.js'

export type Members = Readonly<Record<string, unknown>>

/** One alternative of a schema. */
export interface SchemaForm {
  /** Its keywords. `type` is one type, or missing. */
  readonly keywords: Members
  readonly trail: Trail
}

/** How often each reference led here, to see recursion. */
export type Trail = ReadonlyMap<string, number>

/** What is kept while one schema is taken apart. */
export interface Work {
  readonly root: unknown
  /** What has been simplified, for people. */
  readonly notes: Set<string>
  /** Keywords that are said in words. */
  readonly said: Set<string>
  /** Forms that may still be made. */
  left: number
}

/** The schema has no portable form, with the reason. */
export class NotPortable extends Error {}

/** Levels of a recursive schema that are kept. */
const MAX_RECURSION = 2
/** Most characters that are said about the values of an enumeration. */
const MAX_VALUES_TEXT = 500
/** Most alternatives of one schema. */
const MAX_FORMS = 32

export const isMembers = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
export const isEqual = (one: unknown, other: unknown) => JSON.stringify(one) === JSON.stringify(other)
const isStrings = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((one) => typeof one === 'string')

/** Keywords that make alternatives; all others stay. */
const APART: ReadonlySet<string> = new Set(['$ref', 'allOf', 'anyOf', 'oneOf', 'type', 'nullable', 'const'])
/** Keywords that no form has. */
const UNSAID: ReadonlySet<string> = new Set([
  '$schema',
  '$id',
  'id',
  '$anchor',
  '$comment',
  '$defs',
  'definitions',
  '$vocabulary',
])

/** The alternatives of a schema. None if no value fits. */
export function formsOf(schema: unknown, trail: Trail, work: Work): SchemaForm[] {
  if (schema === false) return []
  if (!isMembers(schema)) return [{ keywords: {}, trail }]
  if (--work.left < 0) throw new NotPortable('it is too large without references')
  const own = Object.entries(schema).filter(([key]) => !APART.has(key) && !UNSAID.has(key))
  const asEnum = Object.hasOwn(schema, 'const') ? { enum: [schema['const']] } : {}
  const base: SchemaForm = { keywords: { ...Object.fromEntries(own), ...asEnum }, trail }
  let forms = typed(base, schema)
  if (typeof schema['$ref'] === 'string') forms = product(forms, referred(schema['$ref'], trail, work))
  for (const part of listed(schema['allOf'])) forms = product(forms, formsOf(part, trail, work))
  for (const key of ['anyOf', 'oneOf'] as const) {
    const variants = listed(schema[key])
    if (variants.length === 0) continue
    const groups = requiredGroups(variants)
    if (groups) {
      forms = forms.map((form) => withHint(form, key, groups))
      work.said.add(key)
    } else forms = product(forms, alternatives(key, variants, trail, work))
  }
  return forms
}

const listed = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

/** One form per type. */
function typed(base: SchemaForm, { type, nullable }: Members): SchemaForm[] {
  const types = Array.isArray(type) ? type : type === undefined ? [] : [type]
  const all = nullable === true && types.length > 0 && !types.includes('null') ? [...types, 'null'] : types
  if (all.length === 0) return [base]
  return all.flatMap((one) => {
    const keywords = narrowed({ ...base.keywords, type: one })
    return keywords ? [{ ...base, keywords }] : []
  })
}

const KIND: Readonly<Record<string, (value: unknown) => boolean>> = {
  string: (value) => typeof value === 'string',
  number: (value) => typeof value === 'number',
  integer: (value) => Number.isInteger(value),
  boolean: (value) => typeof value === 'boolean',
  null: (value) => value === null,
  object: isMembers,
  array: Array.isArray,
}

/** The keywords with the values of `enum` that have the type; undefined if none has. `null` needs no other keywords. */
function narrowed(keywords: Members): Members | undefined {
  const { type, enum: values } = keywords
  const isKind = typeof type === 'string' && Object.hasOwn(KIND, type) ? KIND[type] : undefined
  if (!isKind) return type === undefined ? keywords : undefined
  if (type === 'null') return !Array.isArray(values) || values.includes(null) ? { type } : undefined
  if (!Array.isArray(values)) return keywords
  const fitting = values.filter(isKind)
  return fitting.length > 0 ? { ...keywords, enum: fitting } : undefined
}

/** The forms of what a reference points to; none where a recursive schema is cut. */
function referred(reference: string, trail: Trail, work: Work): SchemaForm[] {
  const target = resolved(reference, work.root)
  if (target === undefined) throw new NotPortable(`its reference ${JSON.stringify(reference)} leads nowhere`)
  const times = trail.get(reference) ?? 0
  if (times >= MAX_RECURSION) {
    work.notes.add(`${reference} is recursive: cut after ${MAX_RECURSION} levels`)
    return []
  }
  return formsOf(target, new Map([...trail, [reference, times + 1]]), work)
}

/** The schema at a JSON pointer (RFC 6901) in the root; undefined if there is none. */
export function resolved(reference: string, root: unknown): unknown {
  if (reference !== '#' && !reference.startsWith('#/')) return undefined
  let at: unknown = root
  for (const token of reference.split('/').slice(1)) {
    const key = nameOfToken(decoded(token))
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, key)) return undefined
    at = (at as Members)[key]
  }
  return isMembers(at) || typeof at === 'boolean' ? at : undefined
}

function decoded(token: string): string {
  try {
    return decodeURIComponent(token)
  } catch {
    return token
  }
}

/** Groups of which the members of one have to be there, if the alternatives say nothing else. */
function requiredGroups(variants: readonly unknown[]): string[][] | undefined {
  const groups = variants.map((one) => {
    const isGroup =
      isMembers(one) && Object.keys(one).every((key) => key === 'required' || (key === 'type' && one[key] === 'object'))
    return isGroup && isStrings(one['required']) ? [...one['required']] : undefined
  })
  return groups.every((one) => one !== undefined) ? groups : undefined
}

function withHint({ keywords, trail }: SchemaForm, key: 'anyOf' | 'oneOf', groups: string[][]): SchemaForm {
  const names = groups.map((group) => group.join(' and ')).join('; ')
  const hint = `Give ${key === 'oneOf' ? 'one' : 'at least one'} of: ${names}.`
  const description = typeof keywords['description'] === 'string' ? `${keywords['description']} ${hint}` : hint
  return { keywords: { ...keywords, description }, trail }
}

function alternatives(key: string, variants: readonly unknown[], trail: Trail, work: Work): SchemaForm[] {
  const values = valuesOfAll(variants)
  if (values) return [{ keywords: values, trail }]
  if (variants.length > MAX_FORMS) throw new NotPortable('it has too many alternatives')
  if (key === 'anyOf') return variants.flatMap((one) => formsOf(one, trail, work))
  const kept: SchemaForm[][] = []
  for (const one of variants) {
    const forms = formsOf(one, trail, work)
    if (forms.every((form) => kept.flat().every((other) => excludes(form, other)))) kept.push(forms)
    else work.notes.add('oneOf has forms that one value can fit: the first is kept')
  }
  return kept.flat()
}

/** The keywords that say the same as alternatives of one value each; undefined if they are others. */
function valuesOfAll(variants: readonly unknown[]): Members | undefined {
  const values = variants.map((one) => {
    const isOne =
      isMembers(one) && Object.keys(one).every((key) => ['const', 'type', 'title', 'description'].includes(key))
    return isOne && Object.hasOwn(one, 'const') ? [one['const'], one['title'] ?? one['description']] : undefined
  })
  if (!values.every((one) => one !== undefined)) return undefined
  const said = values.flatMap(([value, text]) =>
    typeof text === 'string' && text !== value ? `${String(value)}: ${text}` : [],
  )
  const description = said.length > 0 && { description: `${said.join('; ').slice(0, MAX_VALUES_TEXT)}.` }
  return { enum: values.map(([value]) => value), ...description }
}

/** Whether no value, of the members that a form names, fits both. */
function excludes(one: SchemaForm, other: SchemaForm): boolean {
  const [a, b] = [one.keywords, other.keywords]
  if (a['type'] !== undefined && b['type'] !== undefined && a['type'] !== b['type'])
    return !(['number', 'integer'].includes(String(a['type'])) && ['number', 'integer'].includes(String(b['type'])))
  if (Array.isArray(a['enum']) && Array.isArray(b['enum'])) return !overlap(a['enum'], b['enum'])
  if (a['type'] !== 'object') return false
  const [mine, theirs] = [properties(a), properties(b)]
  const tagged = required(a).some(
    (name) => required(b).includes(name) && !overlap(valuesOf(mine[name]), valuesOf(theirs[name])),
  )
  return tagged || (needsMore(a, theirs) && needsMore(b, mine))
}

const properties = ({ properties: all }: Members): Members => (isMembers(all) ? all : {})
const required = ({ required: names }: Members): readonly string[] => (isStrings(names) ? names : [])
const needsMore = (form: Members, others: Members) => required(form).some((name) => !Object.hasOwn(others, name))
/** The only values of a schema; undefined if there are others. */
function valuesOf(schema: unknown): readonly unknown[] | undefined {
  if (!isMembers(schema)) return undefined
  if (Object.hasOwn(schema, 'const')) return [schema['const']]
  return Array.isArray(schema['enum']) ? schema['enum'] : undefined
}
function overlap(some: readonly unknown[] | undefined, others: readonly unknown[] | undefined): boolean {
  return !some || !others || some.some((one) => others.some((other) => isEqual(one, other)))
}

/** The forms in which a value fits one of both sides. */
export function product(some: readonly SchemaForm[], others: readonly SchemaForm[]): SchemaForm[] {
  if (some.length * others.length > MAX_FORMS) throw new NotPortable('it has too many alternatives')
  return some.flatMap((one) =>
    others.flatMap((other) => {
      const keywords = merged(one.keywords, other.keywords)
      const fitting = keywords && narrowed(keywords)
      return fitting ? [{ keywords: fitting, trail: joined(one.trail, other.trail) }] : []
    }),
  )
}

function joined(one: Trail, other: Trail): Trail {
  return new Map([
    ...one,
    ...[...other].map(([reference, times]) => [reference, Math.max(times, one.get(reference) ?? 0)] as const),
  ])
}

type Merge = (one: unknown, other: unknown) => unknown
/** No value fits both. */
const NEVER = Symbol('never')

const numbers =
  (choose: (...values: number[]) => number): Merge =>
  (one, other) =>
    typeof one === 'number' && typeof other === 'number' ? choose(one, other) : one
const least = numbers(Math.max)
const most = numbers(Math.min)
const both: Merge = (one, other) => (isEqual(one, other) ? one : { allOf: [one, other] })
const byName: Merge = (one, other) => {
  const [mine, theirs] = [isMembers(one) ? one : {}, isMembers(other) ? other : {}]
  const shared = Object.keys(mine).filter((name) => Object.hasOwn(theirs, name))
  return { ...mine, ...theirs, ...Object.fromEntries(shared.map((name) => [name, both(mine[name], theirs[name])])) }
}

/** How the values of a keyword that both have become one. Others: as `allOf` of both. */
const MERGES: Readonly<Record<string, Merge>> = {
  type: (one, other) => {
    if (one === other) return one
    return [one, other].every((type) => type === 'number' || type === 'integer') ? 'integer' : NEVER
  },
  enum: (one, other) => {
    const values = listed(one).filter((value) => listed(other).some((theirs) => isEqual(value, theirs)))
    return values.length > 0 ? values : NEVER
  },
  ...Object.fromEntries(
    ['minimum', 'exclusiveMinimum', 'minLength', 'minItems', 'minProperties'].map((key) => [key, least]),
  ),
  ...Object.fromEntries(
    ['maximum', 'exclusiveMaximum', 'maxLength', 'maxItems', 'maxProperties'].map((key) => [key, most]),
  ),
  required: (one, other) => [...new Set([...listed(one), ...listed(other)])],
  properties: byName,
  patternProperties: byName,
  items: both,
  uniqueItems: (one, other) => one === true || other === true,
  additionalProperties: (one, other) => (one === false || other === false ? false : both(one, other)),
  pattern: (one, other) => {
    if (one === other) return one
    throw new NotPortable('it has two patterns for one text')
  },
}
const mergeOf = (key: string): Merge => (Object.hasOwn(MERGES, key) ? MERGES[key] : undefined) ?? both
const FIRST: ReadonlySet<string> = new Set(['title', 'description', 'default', 'examples', 'format'])

/** The keywords of a form that fits both; undefined if no value does. */
function merged(one: Members, other: Members): Members | undefined {
  const shared = Object.keys(one).filter((key) => Object.hasOwn(other, key) && !FIRST.has(key))
  const values = shared.map((key) => [key, mergeOf(key)(one[key], other[key])] as const)
  if (values.some(([, value]) => value === NEVER)) return undefined
  return withinClosed({ ...other, ...one, ...Object.fromEntries(values) }, one, other)
}

/** A form that is closed takes no member that only the other one names. */
function withinClosed(all: Members, one: Members, other: Members): Members | undefined {
  const closed = [one, other].filter(
    (form) => form['additionalProperties'] === false && form['patternProperties'] === undefined,
  )
  if (closed.length === 0) return all
  const isOpen = (name: string) => closed.every((form) => Object.hasOwn(properties(form), name))
  if (!required(all).every(isOpen)) return undefined
  return { ...all, properties: Object.fromEntries(Object.entries(properties(all)).filter(([name]) => isOpen(name))) }
}
