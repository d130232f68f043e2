/** `x-mcp-header` in a tool's input schema (MCP 2026-07-28, streamable-http, schema extension). */
import { cut } from '../rpc/source.js'
import { arrayIn, edit, type Json, keys, objectIn, type Payload, payloadAt, raw, value, write } from '../rpc/splice.js'

/** A property whose value is mirrored into the header `Mcp-Param-<header>`. */
export interface Annotation {
  header: string
  path: string[]
}

export const KEYWORD = 'x-mcp-header'

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const TYPES: readonly unknown[] = ['string', 'integer', 'boolean']

/** Keywords under which schemas stand that no chain of `properties` reaches, by what they hold. */
const SCHEMA = [
  'items',
  'additionalItems',
  'contains',
  'additionalProperties',
  'propertyNames',
  'not',
  'if',
  'then',
  'else',
  'unevaluatedItems',
  'unevaluatedProperties',
]
const SCHEMA_LIST = ['prefixItems', 'items', 'allOf', 'anyOf', 'oneOf']
const SCHEMA_MAP = ['$defs', 'definitions', 'patternProperties', 'dependentSchemas']

export class AnnotationError extends Error {
  override name = 'AnnotationError'
}

/** The annotations of a schema. Throws an AnnotationError that says which rule the first bad one breaks. */
export function annotationsOf(schema: Payload): Annotation[] {
  const found: Annotation[] = []
  const headers = new Set<string>()
  walk(schema, [], (at, path) => {
    const header = value(at, KEYWORD)
    if (typeof header !== 'string' || !TOKEN.test(header)) throw new AnnotationError(`${KEYWORD} is no header name`)
    if (path === undefined || path.length === 0)
      throw new AnnotationError(`${KEYWORD} "${header}" is not on a property that a chain of "properties" reaches`)
    if (!TYPES.includes(value(at, 'type')))
      throw new AnnotationError(`${KEYWORD} "${header}" is on a property that is no string, integer or boolean`)
    if (headers.has(header.toLowerCase())) throw new AnnotationError(`${KEYWORD} "${header}" stands twice`)
    headers.add(header.toLowerCase())
    found.push({ header, path })
    return at
  })
  return found
}

/** What a tool wants mirrored, or what is wrong with the way in which it says so. */
export interface ToolAnnotations {
  annotations: readonly Annotation[]
  misannotated: string | undefined
}

const NO_ANNOTATIONS: ToolAnnotations = { annotations: [], misannotated: undefined }

export function annotationsOfTool(tool: Payload): ToolAnnotations {
  const schema = objectIn(tool, 'inputSchema')
  if (!schema || !raw(tool, 'inputSchema')?.includes(KEYWORD)) return NO_ANNOTATIONS
  try {
    return { annotations: annotationsOf(schema), misannotated: undefined }
  } catch (error) {
    if (error instanceof AnnotationError) return { annotations: [], misannotated: error.message }
    throw error
  }
}

/** A list of tools without those whose annotations are invalid: a client over HTTP has to leave them out. */
export function withoutMisannotated(list: Payload): Payload {
  const tools = arrayIn(list, 'tools')
  if (!tools || !raw(list, 'tools')?.includes(KEYWORD)) return list
  const kept = tools.elements.filter((span) => {
    const tool = payloadAt(tools.source, span)
    return !tool || annotationsOfTool(tool).misannotated === undefined
  })
  if (kept.length === tools.elements.length) return list
  return edit(list, { tools: `[${kept.map(({ start, end }) => cut(tools.source, start, end)).join(',')}]` })
}

/** The schema without any annotation. */
export function withoutAnnotations(schema: Payload): Payload {
  return walk(schema, [], (at) => edit(at, { [KEYWORD]: undefined }))
}

/**
 * Calls `visit` for each schema inside that has the keyword, with the names of the properties that lead to it, or
 * undefined where something else is on the way. What it returns takes the schema's place.
 */
function walk(
  schema: Payload,
  path: string[] | undefined,
  visit: (at: Payload, path: string[] | undefined) => Payload,
): Payload {
  const edits: Record<string, Json> = {}
  const inner = (at: Payload, inside: string[] | undefined) => write(walk(at, inside, visit))
  const map = (keyword: string, pathOf: (name: string) => string[] | undefined) => {
    const members = objectIn(schema, keyword)
    if (!members) return
    const changed: Record<string, Json> = {}
    for (const name of keys(members)) {
      const member = objectIn(members, name)
      if (member) changed[name] = inner(member, pathOf(name))
    }
    edits[keyword] = write(edit(members, changed))
  }

  map('properties', (name) => path && [...path, name])
  for (const keyword of SCHEMA_MAP) map(keyword, () => undefined)
  for (const keyword of SCHEMA) {
    const member = objectIn(schema, keyword)
    if (member) edits[keyword] = inner(member, undefined)
  }
  for (const keyword of SCHEMA_LIST) {
    const list = arrayIn(schema, keyword)
    if (!list) continue
    const elements = list.elements.map((span) => {
      const element = payloadAt(list.source, span)
      return element ? inner(element, undefined) : cut(list.source, span.start, span.end)
    })
    edits[keyword] = `[${elements.join(',')}]`
  }
  const visited = raw(schema, KEYWORD) === undefined ? schema : visit(schema, path)
  return edit(visited, edits)
}
