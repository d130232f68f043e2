/**
 * Checks whether validators can compile a schema. The client of the first SDK (@modelcontextprotocol/sdk 1.x) compiles
 * every `outputSchema` of a list and rejects the whole list if one does not compile.
 */
import { nameOfToken } from '../../../base/rpc/pointer.js'

type Kind = (value: unknown, schema: Members) => boolean
type Members = Readonly<Record<string, unknown>>

interface Keyword {
  takes: Kind
  /** The value is a schema or a list of them, or an object of schemas by name. */
  schemas?: 'direct' | 'by name'
}

/** Properties of a schema that compiles. */
export interface Sound {
  /** It can be moved, because it refers to itself only by paths from its root. */
  movable: boolean
  /** It has references. */
  referring: boolean
}

export const DEFINITIONS = '$defs'

/** Levels of nested schemas that are examined; deeper ones count as invalid. The cost grows with each level. */
const MAX_SCHEMA_DEPTH = 32

const TYPES: readonly unknown[] = ['string', 'number', 'integer', 'boolean', 'null', 'object', 'array']
/** A URI or relative reference with characters that all libraries accept. */
const ID = /^(?:[a-z][a-z\d+.-]*:[\w.~!$&'()*+,;=@/?:-]*|[\w.~!$&'()*+,;=@/?-]+)#?$/i
const ANCHOR = /^[a-z_][-a-z0-9._]*$/i
/** Names that schemas give themselves, and references by such names. */
const OWN_NAMES = ['$id', '$anchor', '$dynamicAnchor', '$dynamicRef', '$recursiveAnchor', '$recursiveRef']

const isMembers = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const isSchema = (value: unknown) => typeof value === 'boolean' || isMembers(value)
const isList = (value: unknown): value is unknown[] => Array.isArray(value)
const isString = (value: unknown) => typeof value === 'string'
const isNumber = (value: unknown) => typeof value === 'number'
const isBoolean = (value: unknown) => typeof value === 'boolean'
const isStrings = (value: unknown) => isList(value) && value.every(isString)
const isAnchor = (value: unknown) => typeof value === 'string' && ANCHOR.test(value)

function isPattern(value: unknown): boolean {
  try {
    return typeof value === 'string' && new RegExp(value, 'u') instanceof RegExp
  } catch {
    return false
  }
}

function isType(value: unknown): boolean {
  return isList(value) ? value.length > 0 && value.every((one) => TYPES.includes(one)) : TYPES.includes(value)
}

/** `nullable` (OpenAPI) requires a `type` and must not contradict it. */
function isNullable(value: unknown, { type }: Members): boolean {
  if (typeof value !== 'boolean' || type === undefined) return false
  return value || !(type === 'null' || (isList(type) && type.includes('null')))
}

const isSchemas = (value: unknown) => isList(value) && value.every(isSchema)
const isByName = (value: unknown): value is Members => isMembers(value) && Object.values(value).every(isSchema)

/** The keywords of drafts 7 to 2020-12 that validators check, and the values that they accept. */
const keywords: ReadonlyMap<string, Keyword> = new Map([
  ...all(
    { takes: isSchema, schemas: 'direct' },
    ...['additionalItems', 'unevaluatedItems', 'contains', 'additionalProperties', 'unevaluatedProperties'],
    ...['propertyNames', 'not', 'if', 'then', 'else'],
  ),
  ...all({ takes: isSchemas, schemas: 'direct' }, 'prefixItems', 'allOf', 'anyOf', 'oneOf'),
  ...all({ takes: (value) => isSchema(value) || isSchemas(value), schemas: 'direct' }, 'items'),
  ...all({ takes: isByName, schemas: 'by name' }, 'properties', 'dependentSchemas', DEFINITIONS, 'definitions'),
  ...all(
    { takes: (value) => isByName(value) && Object.keys(value).every(isPattern), schemas: 'by name' },
    'patternProperties',
  ),
  ...all(
    {
      takes: (value) => isMembers(value) && Object.values(value).every((one) => isSchema(one) || isStrings(one)),
      schemas: 'by name',
    },
    'dependencies',
  ),
  ...all(
    { takes: isNumber },
    ...['minLength', 'maxLength', 'minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
    ...['minItems', 'maxItems', 'minContains', 'maxContains', 'minProperties', 'maxProperties'],
  ),
  ...all({ takes: isString }, '$ref', 'format'),
  ...all({ takes: isBoolean }, 'uniqueItems'),
  ...all({ takes: isStrings }, 'required'),
  ...all({ takes: (value) => isMembers(value) && Object.values(value).every(isStrings) }, 'dependentRequired'),
  ...all({ takes: (value) => isList(value) && value.length > 0 }, 'enum'),
  ...all({ takes: isPattern }, 'pattern'),
  ...all({ takes: isType }, 'type'),
  ...all({ takes: isNullable }, 'nullable'),
  ...all({ takes: isAnchor }, '$anchor', '$dynamicAnchor'),
  ...all({ takes: (value) => typeof value === 'string' && ID.test(value) }, '$id'),
  ...all({ takes: () => true }, 'const', 'default'),
  // Validators refuse the name that `$id` had in draft 4.
  ...all({ takes: () => false }, 'id'),
])

function all(keyword: Keyword, ...names: string[]): [string, Keyword][] {
  return names.map((name) => [name, keyword])
}

/** Whether and how a keyword holds schemas. */
export function holdsSchemas(keyword: string): Keyword['schemas'] {
  return keywords.get(keyword)?.schemas
}

/** Examines a parsed schema. Undefined if a validator would not compile it. */
export function soundness(root: unknown): Sound | undefined {
  if (!isMembers(root)) return undefined
  const found: Found = { root, references: new Map(), anchors: new Map(), named: false }
  if (!walk(root, 0, found)) return undefined
  const targets = new Map<Members, unknown>()
  for (const [schema, reference] of found.references) {
    const target = resolve(reference, found)
    if (target === undefined) return undefined
    targets.set(schema, target)
  }
  return turnsInCircles(targets) ? undefined : { movable: !found.named, referring: targets.size > 0 }
}

interface Found {
  root: Members
  /** The `$ref` of each schema that has one. */
  references: Map<Members, string>
  /** Schemas by their anchors. */
  anchors: Map<string, Members>
  /** A schema names itself, or is referred to by a name. */
  named: boolean
}

/** Whether a schema and all schemas in it are valid. */
function walk(schema: unknown, level: number, found: Found): boolean {
  if (level > MAX_SCHEMA_DEPTH) return false
  if (!isMembers(schema)) return true
  const { $ref: reference, $anchor: own, $dynamicAnchor: dynamic } = schema
  if (typeof reference === 'string') found.references.set(schema, reference)
  found.named ||= OWN_NAMES.some((name) => Object.hasOwn(schema, name))
  // Validators do not resolve an anchor of the root, so it is not recorded.
  if (schema !== found.root) {
    // `$id` changes the base of references, and validators reject equal ones, even in different tools.
    if (Object.hasOwn(schema, '$id')) return false
    for (const anchor of [own, dynamic]) {
      if (typeof anchor !== 'string') continue
      if (found.anchors.has(anchor)) return false
      found.anchors.set(anchor, schema)
    }
  }
  return Object.entries(schema).every(([key, value]) => {
    const keyword = keywords.get(key)
    if (!keyword) return !(isMembers(value) && hidesNames(value))
    if (!keyword.takes(value, schema)) return false
    if (!keyword.schemas) return true
    const inside = keyword.schemas === 'by name' || isList(value) ? Object.values(value as Members) : [value]
    return inside.every((one) => walk(one, level + 1, found))
  })
}

/** Whether unknown keywords contain schemas with names: validators find these too. */
function hidesNames(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  return OWN_NAMES.some((name) => Object.hasOwn(value, name)) || Object.values(value).some(hidesNames)
}

/** The schema that a reference points to; undefined if there is none. */
function resolve(reference: string, { root, anchors }: Found): unknown {
  if (!reference.startsWith('#')) return undefined
  const fragment = unescaped(reference.slice(1))
  if (fragment === undefined) return undefined
  if (fragment !== '' && !fragment.startsWith('/')) return anchors.get(fragment)
  let at: unknown = root
  const steps = fragment.split('/').slice(1)
  while (steps.length > 0) {
    const key = steps.shift() ?? ''
    const how = holdsSchemas(key)
    if (how === undefined) return undefined
    at = step(at, key)
    if (how === 'by name' || isList(at)) at = step(at, steps.shift())
    if (!isSchema(at)) return undefined
  }
  return at
}

/** One step of a JSON Pointer (RFC 6901), in an object or a list. */
function step(at: unknown, name: string | undefined): unknown {
  if (typeof at !== 'object' || at === null || name === undefined) return undefined
  const key = nameOfToken(name)
  return Object.hasOwn(at, key) ? (at as Members)[key] : undefined
}

/** Whether references form a cycle. */
function turnsInCircles(targets: ReadonlyMap<unknown, unknown>): boolean {
  const ends = new Set<unknown>()
  for (const start of targets.keys()) {
    const trail = new Set<unknown>()
    for (let at: unknown = start; at !== undefined && !ends.has(at); at = targets.get(at)) {
      if (trail.has(at)) return true
      trail.add(at)
    }
    for (const at of trail) ends.add(at)
  }
  return false
}

/** The decoded fragment of a reference; undefined if its percent encoding is invalid. */
function unescaped(fragment: string): string | undefined {
  try {
    return decodeURIComponent(fragment)
  } catch {
    return undefined
  }
}
