/**
 * The portable form of a tool's `inputSchema`: without the keywords that the APIs of models refuse (docs/schemas.md). It takes
 * less than the original, never more, apart from what `words` says: a value that fits it fits the original, once
 * `original` has mapped it back.
 */
import { canonical } from '../../../base/rpc/canonical.js'
import { isUniform, sayings } from './described-keywords.js'
import {
  formsOf,
  isEqual,
  isMembers,
  type Members,
  NotPortable,
  product,
  type SchemaForm,
  type Trail,
  type Work,
} from './forms.js'

/** How arguments that fit the portable schema become those of the original. */
export interface Mapping {
  /** The member whose value the arguments are. */
  readonly within?: string
  /** Names of members at the server, by those in the portable schema. */
  readonly names?: Readonly<Record<string, string>>
  /** Members that are null if they are missing. */
  readonly nulls?: readonly string[]
  /** Mappings of the values of members, by their names at the server. */
  readonly members?: Readonly<Record<string, Mapping>>
}

export interface Portable {
  readonly schema: Members
  /** What the root says, for the description of the tool: Bedrock's Nova takes no texts at the root. */
  readonly says: string | undefined
  /** Undefined if the arguments stay as they are. */
  readonly mapping: Mapping | undefined
  /** What has been simplified, for people. */
  readonly notes: readonly string[]
}

/** Most schemas in one schema. */
const MAX_PARTS = 5_000
/** Most characters of a portable form: as many in any case, or so many times those of the original. */
const MAX_LENGTH = 16 * 1024
const MAX_GROWTH = 4
/** Names of members that Claude's API takes. */
const NAME = /^[\w.-]{1,64}$/
/** The member that holds the alternatives of a schema that is a union. */
const WITHIN = 'input'
/** Most numbers of an enumeration that become alternatives. */
const MAX_NUMBER_FORMS = 16

/** Undefined if the schema is portable as it is. Throws NotPortable if it has no portable form. */
export function portableSchema(schema: unknown): Portable | undefined {
  if (!isMembers(schema)) throw new NotPortable('it is no object')
  const work: Work = { root: schema, notes: new Set(), said: new Set(), left: MAX_PARTS }
  const forms = product([{ keywords: { type: 'object' }, trail: new Map() }], formsOf(schema, new Map(), work))
  const written = forms.length === 1 ? undefined : alternatives(forms, work)
  if (forms.length === 0 || written?.length === 0) throw new NotPortable('no arguments fit it')
  const root = written
    ? { schema: within(schema, written), mapping: { within: WITHIN } }
    : object(forms[0] as SchemaForm, work, true)
  if (!root) throw new NotPortable('no arguments fit it')
  if (written) work.notes.add(`its alternatives are in the argument "${WITHIN}"`)
  const { title: _, description, ...bare } = root.schema
  if (canonical(JSON.stringify(bare)) === canonical(JSON.stringify(schema))) return undefined
  const [before, after] = [schema, bare].map((one) => JSON.stringify(one).length) as [number, number]
  if (after > Math.max(MAX_LENGTH, before * MAX_GROWTH)) throw new NotPortable('it is too large without references')
  if (work.said.size > 0) work.notes.add(`in words only: ${[...work.said].join(', ')}`)
  const says = typeof description === 'string' ? description : undefined
  return { schema: bare, says, mapping: root.mapping, notes: [...work.notes] }
}

function within({ title, description }: Members, variants: readonly Members[]): Members {
  const input = variants.length === 1 ? variants[0] : { anyOf: variants }
  return { type: 'object', ...texts({ title, description }), properties: { [WITHIN]: input }, required: [WITHIN] }
}

/** The portable schema of forms that are not null. Undefined if no value fits. */
function written(forms: readonly SchemaForm[], work: Work): Members | undefined {
  const variants = alternatives(forms, work)
  return variants.length > 1 ? { anyOf: variants } : variants[0]
}

function alternatives(forms: readonly SchemaForm[], work: Work): Members[] {
  const variants = forms.flatMap((form) => simple(form, work)).filter(isPossible)
  return variants.filter((one, i) => variants.findIndex((other) => isEqual(one, other)) === i)
}

const BOUNDS = [
  ['minimum', 'maximum'],
  ['minLength', 'maxLength'],
  ['minItems', 'maxItems'],
] as const

/** Whether no lower bound is above the upper one. */
function isPossible(schema: Members): boolean {
  return BOUNDS.every(([least, most]) => !(Number(schema[least]) > Number(schema[most])))
}

/** The portable schemas of one form: several where its values need them. */
function simple(form: SchemaForm, work: Work): Members[] {
  const { keywords } = form
  const type = typeof keywords['type'] === 'string' ? keywords['type'] : (implied(keywords) ?? 'any')
  switch (type) {
    case 'object': {
      const one = object(form, work, false)
      return one ? [one.schema] : []
    }
    case 'array':
      return [array(form, work)]
    case 'string':
      return [text(keywords, work)]
    case 'number':
    case 'integer':
      return numbers(type, keywords, work)
    case 'boolean':
      return [boolean(keywords, work)]
    case 'null':
      return []
    default:
      return anything(form, work)
  }
}

/** Keywords that mean something for one type only. */
const MEANT_FOR: Readonly<Record<string, readonly string[]>> = {
  object: [
    'properties',
    'required',
    'additionalProperties',
    'patternProperties',
    'propertyNames',
    'minProperties',
    'maxProperties',
  ],
  array: ['items', 'prefixItems', 'minItems', 'maxItems', 'uniqueItems', 'contains'],
  string: ['minLength', 'maxLength', 'pattern', 'format'],
  number: ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
}

function implied(keywords: Members): string | undefined {
  if (keywords['enum'] !== undefined) return undefined
  return Object.keys(MEANT_FOR).find((type) => MEANT_FOR[type]?.some((keyword) => Object.hasOwn(keywords, keyword)))
}

/** For a schema that any value fits, or any of some values of several types. */
function anything(form: SchemaForm, work: Work): Members[] {
  const types = ['string', 'number', 'boolean', 'object', ...(form.keywords['enum'] ? ['array'] : [])]
  if (!form.keywords['enum']) work.notes.add('any value is a text, number, boolean or object')
  const typed = types.map((type): SchemaForm => ({ keywords: { type }, trail: form.trail }))
  return product(typed, [form]).flatMap((one) => simple(one, work))
}

/** Texts of a schema: its own, and what is only said in words. */
function described(keywords: Members, { said }: Work): Members {
  const { title, description } = keywords
  const own = typeof description === 'string' ? description : undefined
  const more = sayings(keywords, said).filter((one) => !own?.includes(one))
  const all = [...(own === undefined ? [] : [own]), ...more].join(' ')
  return texts({ title, description: all === '' && own === undefined ? undefined : all })
}

function texts(given: Members): Members {
  return Object.fromEntries(Object.entries(given).filter(([, one]) => typeof one === 'string'))
}

/** The members of these names that are numbers. */
function bounds(keywords: Members, ...names: string[]): Members {
  return Object.fromEntries(
    names.flatMap((name) => (typeof keywords[name] === 'number' ? [[name, keywords[name]]] : [])),
  )
}

function text(keywords: Members, work: Work): Members {
  const { enum: values, pattern, format } = keywords
  const named = Array.isArray(values) ? values.filter((one) => one !== '') : undefined
  // Gemini refuses empty texts in an enumeration.
  if (named && named.length < (values as unknown[]).length)
    work.notes.add('the empty text is left out of an enumeration')
  return {
    type: 'string',
    ...described(keywords, work),
    ...(named && named.length > 0 && { enum: named }),
    ...bounds(keywords, 'minLength', 'maxLength'),
    ...(named?.length === 0 && { maxLength: 0 }),
    ...(typeof pattern === 'string' && { pattern }),
    ...(format === 'date-time' && { format }),
  }
}

/** Gemini takes only texts in an enumeration, so numbers become bounds. */
function numbers(type: 'number' | 'integer', keywords: Members, work: Work): Members[] {
  const base: Members = { type, ...described(keywords, work), ...limits(type, keywords) }
  if (!Array.isArray(keywords['enum'])) return [base]
  const { exclusiveMinimum, exclusiveMaximum } = keywords
  const isWithin = (value: number) =>
    !(value < Number(base['minimum']) || value > Number(base['maximum'])) &&
    !(typeof exclusiveMinimum === 'number' && value <= exclusiveMinimum) &&
    !(typeof exclusiveMaximum === 'number' && value >= exclusiveMaximum)
  const values = [...new Set(keywords['enum'] as number[])].filter(isWithin).sort((one, other) => one - other)
  if (values.length === 0) return []
  const [first = 0, last = 0] = [values[0], values.at(-1)]
  if (values.every((value, i) => Number.isInteger(value) && value === first + i))
    return [{ ...base, type: 'integer', minimum: first, maximum: last }]
  if (values.length > MAX_NUMBER_FORMS) {
    const description = [base['description'] ?? [], `One of ${values.join(', ')}.`].flat().join(' ')
    return [{ ...base, minimum: first, maximum: last, description }]
  }
  return values.map((value) => ({ ...base, minimum: value, maximum: value }))
}

function limits(type: string, keywords: Members): Members {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum } = keywords
  const [above, below] = [
    exclusiveMinimum === true ? minimum : exclusiveMinimum,
    exclusiveMaximum === true ? maximum : exclusiveMaximum,
  ]
  const isWhole = type === 'integer'
  const low = [
    ...(typeof minimum === 'number' ? [isWhole ? Math.ceil(minimum) : minimum] : []),
    ...(typeof above === 'number' ? [isWhole ? Math.floor(above) + 1 : above] : []),
  ]
  const high = [
    ...(typeof maximum === 'number' ? [isWhole ? Math.floor(maximum) : maximum] : []),
    ...(typeof below === 'number' ? [isWhole ? Math.ceil(below) - 1 : below] : []),
  ]
  // Beyond, two numbers are one for many parsers.
  const safe = (value: number) =>
    isWhole ? Math.min(Math.max(value, Number.MIN_SAFE_INTEGER), Number.MAX_SAFE_INTEGER) : value
  return {
    ...(low.length > 0 && { minimum: safe(Math.max(...low)) }),
    ...(high.length > 0 && { maximum: safe(Math.min(...high)) }),
  }
}

function boolean(keywords: Members, work: Work): Members {
  const { enum: values } = keywords
  const only = Array.isArray(values) && new Set(values).size === 1 ? `Always ${String(values[0])}.` : undefined
  const { description, ...others } = described(keywords, work) as { description?: string }
  const all = [description, only !== undefined && !description?.includes(only) ? only : undefined].filter(
    (one) => one !== undefined,
  )
  return { type: 'boolean', ...others, ...(all.length > 0 && { description: all.join(' ') }) }
}

function array({ keywords, trail }: SchemaForm, work: Work): Members {
  const { items, prefixItems } = keywords
  const places = Array.isArray(prefixItems) ? prefixItems : Array.isArray(items) ? items : undefined
  const rest = Array.isArray(items) ? keywords['additionalItems'] : items
  const isSame = places !== undefined && isUniform(places) && rest === false
  const forms = places
    ? [...places, ...(isMembers(rest) ? [rest] : [])].flatMap((one) => formsOf(one, trail, work))
    : formsOf(items, trail, work)
  if (places && !isSame) work.notes.add('the order of the items of a list is only said in words')
  const each = written(forms, work)
  const most = typeof keywords['maxItems'] === 'number' ? keywords['maxItems'] : Number.POSITIVE_INFINITY
  const atMost = !each ? 0 : Math.min(most, isSame ? places.length : Number.POSITIVE_INFINITY)
  return {
    type: 'array',
    ...described(keywords, work),
    items: each ?? { type: 'string' },
    ...bounds(keywords, 'minItems'),
    ...(Number.isFinite(atMost) && { maxItems: atMost }),
  }
}

/** An object. `isMapped`: arguments can be mapped back here, because the place is unambiguous. */
function object(
  form: SchemaForm,
  work: Work,
  isMapped: boolean,
): { schema: Members; mapping: Mapping | undefined } | undefined {
  const { keywords, trail } = form
  const given = isMembers(keywords['properties']) ? keywords['properties'] : {}
  const wanted = new Set(Array.isArray(keywords['required']) ? keywords['required'].filter(isText) : [])
  const isOpen = keywords['additionalProperties'] !== false
  const shown = new Map<string, Member & { name: string }>()
  const nulls: string[] = []
  for (const name of new Set([...Object.keys(given), ...wanted])) {
    const isKnown = Object.hasOwn(given, name)
    const member = isKnown || isOpen ? property(isKnown ? given[name] : true, trail, work, isMapped) : undefined
    const canMiss = !wanted.has(name) || (isMapped && member?.isNullable === true)
    const as = isMapped ? nameFor(name, given, shown) : isName(name) ? name : undefined
    if (wanted.has(name) && canMiss) nulls.push(name)
    if (member?.schema && as !== undefined) {
      shown.set(as, { ...member, name, canMiss })
      if (as !== name) work.notes.add(`the member ${JSON.stringify(name)} is called ${JSON.stringify(as)}`)
    } else if (canMiss) work.notes.add(`the member ${JSON.stringify(name)} is left out`)
    else return undefined
  }
  const all = [...shown]
  const required = all.flatMap(([as, { canMiss }]) => (canMiss ? [] : as))
  return {
    schema: {
      type: 'object',
      ...described(keywords, work),
      properties: Object.fromEntries(all.map(([as, { schema }]) => [as, schema])),
      ...(required.length > 0 && { required }),
    },
    mapping: mappingOf(
      all.flatMap(([as, { name }]) => (as === name ? [] : [[as, name] as const])),
      nulls,
      all.flatMap(([, { name, mapping }]) => (mapping ? [[name, mapping] as const] : [])),
    ),
  }
}

type Entries<T> = readonly (readonly [string, T])[]

function mappingOf(names: Entries<string>, nulls: readonly string[], members: Entries<Mapping>): Mapping | undefined {
  if (names.length + nulls.length + members.length === 0) return undefined
  return {
    ...(names.length > 0 && { names: Object.fromEntries(names) }),
    ...(nulls.length > 0 && { nulls }),
    ...(members.length > 0 && { members: Object.fromEntries(members) }),
  }
}

interface Member {
  /** Undefined if no value fits but null. */
  schema: Members | undefined
  mapping: Mapping | undefined
  isNullable: boolean
  canMiss?: boolean
}

function property(given: unknown, trail: Trail, work: Work, isMapped: boolean): Member {
  const forms = formsOf(given, trail, work)
  const values = forms.filter(({ keywords }) => keywords['type'] !== 'null')
  const isNullable = values.length < forms.length
  const [only] = values
  if (isMapped && only && values.length === 1 && (only.keywords['type'] ?? implied(only.keywords)) === 'object') {
    const one = object(only, work, true)
    return { schema: one?.schema, mapping: one?.mapping, isNullable }
  }
  return { schema: written(values, work), mapping: undefined, isNullable }
}

const isText = (value: unknown): value is string => typeof value === 'string'
/** Programs confuse `__proto__` with something else. */
const isName = (name: string) => NAME.test(name) && name !== '__proto__'

/** A name that models' APIs take, and that no other member has. */
function nameFor(name: string, given: Members, shown: ReadonlyMap<string, unknown>): string {
  if (isName(name)) return name
  const plain = name.replace(/[^\w.-]|^_+/g, '_').slice(0, 60) || '_'
  const isFree = (one: string) => isName(one) && !Object.hasOwn(given, one) && !shown.has(one)
  for (let i = 2, one = plain; ; one = `${plain}_${i++}`) if (isFree(one)) return one
}
