/** Reads and removes `x-mcp-header` in a tool's input schema (MCP 2026-07-28, streamable-http, schema extension). */
import { edit, mapElements, objectIn, type Payload, raw, value } from '../../base/rpc/splice.js'
import { mapSchemas } from './downlevel/members.js'

/** A property whose value is repeated in the header `Mcp-Param-<header>`. */
export interface Annotation {
  header: string
  path: readonly string[]
}

/** The schema keyword that names the header. */
export const KEYWORD = 'x-mcp-header'

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const TYPES: readonly unknown[] = ['string', 'integer', 'boolean']

/** A schema breaks a rule for `x-mcp-header`. The message says which. */
export class AnnotationError extends Error {
  override name = 'AnnotationError'
}

/** The annotations of a schema. Throws an AnnotationError for the first invalid one. */
export function annotationsOf(schema: Payload): Annotation[] {
  const found: Annotation[] = []
  const headers = new Set<string>()
  walk(schema, [], (at, path) => {
    const header = value(at, KEYWORD)
    if (typeof header !== 'string' || !TOKEN.test(header))
      throw new AnnotationError(`${KEYWORD} is not a valid header name`)
    if (path === undefined || path.length === 0)
      throw new AnnotationError(
        `${KEYWORD} "${header}" is on a schema that "properties" alone do not reach from the root`,
      )
    if (!TYPES.includes(value(at, 'type')))
      throw new AnnotationError(`${KEYWORD} "${header}" is on a property that is not a string, integer or boolean`)
    if (headers.has(header.toLowerCase())) throw new AnnotationError(`${KEYWORD} "${header}" appears twice`)
    headers.add(header.toLowerCase())
    found.push({ header, path })
    return at
  })
  return found
}

/** The annotations of a tool, or the rule that they break. */
export interface ToolAnnotations {
  annotations: readonly Annotation[]
  misannotated: string | undefined
}

const NO_ANNOTATIONS: ToolAnnotations = { annotations: [], misannotated: undefined }

/** The annotations of a tool in a `tools/list` result. */
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

/** A list of tools without those that have invalid annotations: clients over HTTP must drop these. */
export function withoutMisannotated(list: Payload): Payload {
  if (!raw(list, 'tools')?.includes(KEYWORD)) return list
  const tools = mapElements(list, 'tools', (tool) => (annotationsOfTool(tool).misannotated === undefined ? tool : []))
  return tools ? edit(list, { tools }) : list
}

/** The schema without annotations. */
export function withoutAnnotations(schema: Payload): Payload {
  return walk(schema, [], (at) => edit(at, { [KEYWORD]: undefined }))
}

/**
 * Calls `visit` for each schema in `schema` that has the keyword. `path` is the names of the properties that lead to
 * it, or undefined if something other than `properties` leads to it. The schema that `visit` returns replaces it.
 */
function walk(
  schema: Payload,
  path: readonly string[] | undefined,
  visit: (at: Payload, path: readonly string[] | undefined) => Payload,
): Payload {
  const walked = mapSchemas(schema, (inner, keyword, name) =>
    walk(inner, path && keyword === 'properties' && name !== undefined ? [...path, name] : undefined, visit),
  )
  return raw(schema, KEYWORD) === undefined ? walked : visit(walked, path)
}
