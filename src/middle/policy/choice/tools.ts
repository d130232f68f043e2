/** Rewrites tools: their definitions in lists, and calls to them. */

import { Fault } from '../../../base/fault/fault.js'
import {
  EMPTY,
  edit,
  has,
  type Json,
  keys,
  mapElements,
  objectIn,
  type Payload,
  raw,
  type Value,
} from '../../../base/rpc/splice.js'
import { printable } from '../../../base/texts/printable.js'
import { annotationsOfTool } from '../../../mcp/protocol/annotations.js'
import type { Call } from '../../../mcp/protocol/call.js'
import { PARAM_PREFIX, paramHeaders } from '../../../mcp/protocol/headers.js'
import { folded, isUnambiguous } from '../unambiguous.js'

/** Overrides of a tool's definition. */
export interface Override {
  readonly title?: string | undefined
  readonly description?: string | undefined
  readonly annotations?: Readonly<Record<string, unknown>> | undefined
  /** Arguments with fixed values, which are hidden from clients. */
  readonly set?: Readonly<Record<string, unknown>> | undefined
}

/** How one tool is rewritten. */
export class Rewriting {
  readonly #texts: Readonly<Record<string, Json>>
  readonly #hints: Readonly<Record<string, Json>>
  /** Values by the name of their argument. */
  readonly #set: Readonly<Record<string, Json>>
  readonly #names: ReadonlySet<string>

  constructor({ title, description, annotations = {}, set = {} }: Override) {
    this.#texts = texts({ title, description })
    this.#hints = texts(annotations)
    this.#set = texts(set)
    this.#names = new Set(Object.keys(set).map(folded))
  }

  /** The definition for clients. */
  definition(tool: Payload): Payload {
    const edits: Record<string, Value> = { ...this.#texts }
    const annotations = objectIn(tool, 'annotations')
    const { title } = this.#texts
    // Older clients read the title of a tool from its annotations.
    const retitled = title !== undefined && annotations && has(annotations, 'title') ? { title } : {}
    const hints = { ...retitled, ...this.#hints }
    if (Object.keys(hints).length > 0) edits['annotations'] = edit(annotations ?? EMPTY, hints)
    const schema = this.#names.size > 0 ? objectIn(tool, 'inputSchema') : undefined
    if (schema) edits['inputSchema'] = this.#withoutSet(schema)
    return edit(tool, edits)
  }

  /**
   * The headers that mirror arguments with fixed values, by their names in lower case; undefined for one that is not
   * sent.
   */
  headers(tool: Payload): ToolHeaders {
    if (this.#names.size === 0) return NO_HEADERS
    const mirrored = annotationsOfTool(tool).annotations.filter(({ path: [first = ''] }) => this.#isSet(first))
    const sent = paramHeaders(mirrored, edit(EMPTY, this.#set))
    const names = mirrored.map(({ header }) => PARAM_PREFIX + header.toLowerCase())
    return new Map(names.map((name) => [name, sent[name]]))
  }

  /** The params of a call, with the fixed values. Throws a Fault if the caller sent one of these arguments. */
  params(params: Payload): Payload {
    if (this.#names.size === 0) return params
    const args = objectIn(params, 'arguments')
    const isNone = !args && [undefined, 'null'].includes(raw(params, 'arguments'))
    if (!(args || isNone) || !isUnambiguous(params, 'arguments'))
      throw new Fault('invalidParams', 'params.arguments must be an object and must not be repeated')
    const sent = args && keys(args).find((key) => this.#names.has(folded(key)))
    if (sent !== undefined) throw new Fault('invalidParams', `The tool has no argument "${printable(sent)}"`)
    return edit(params, { arguments: edit(args ?? EMPTY, this.#set) })
  }

  #withoutSet(schema: Payload): Payload {
    const properties = objectIn(schema, 'properties')
    const gone = Object.fromEntries(Object.keys(this.#set).map((name) => [name, undefined]))
    const isGone = (json: Json) => json.startsWith('"') && this.#isSet(JSON.parse(json) as string)
    const required = mapElements(
      schema,
      'required',
      (element) => element,
      (element) => (isGone(element) ? [] : undefined),
    )
    return edit(schema, { ...(properties && { properties: edit(properties, gone) }), ...(required && { required }) })
  }

  #isSet(argument: string): boolean {
    return Object.hasOwn(this.#set, argument)
  }
}

export type ToolHeaders = ReadonlyMap<string, string | undefined>

/** `paramHeaders` of a call with some of them replaced. */
export function withHeaders(
  sent: NonNullable<Call['paramHeaders']>,
  headers: ToolHeaders,
): ReadonlyMap<string, string> {
  if (headers.size === 0) return sent
  const all = new Map<string, string | undefined>([...sent, ...headers])
  return new Map([...all].filter((entry): entry is [string, string] => entry[1] !== undefined))
}

const NO_HEADERS: ToolHeaders = new Map()

/** The JSON texts of the existing values. */
function texts(values: Readonly<Record<string, unknown>>): Record<string, Json> {
  const given = Object.entries(values).filter(([, one]) => one !== undefined)
  return Object.fromEntries(given.map(([key, one]) => [key, JSON.stringify(one)]))
}
