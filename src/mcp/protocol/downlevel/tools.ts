/** Adapts tools to older clients: their entries in lists, and the results of their calls. */

import { MAX_NAME, MAX_TOOLS } from '../../../base/limits/constants.js'
import {
  arrayIn,
  edit,
  has,
  type Json,
  objectIn,
  opens,
  type Payload,
  parseObject,
  raw,
  stringUnder,
  textUnder,
  value,
  write,
} from '../../../base/rpc/splice.js'
import { textBlock, withContentList } from '../content.js'
import { shownContent } from './content.js'
import { withoutIdleDialect } from './dialect.js'
import { fit } from './fit.js'
import { inArray, inObject, mapMembers } from './members.js'
import { soundness } from './schemas.js'
import * as shapes from './shapes.js'
import type { Downlevel } from './target.js'
import { wrapped, wrappedSchema } from './wrap.js'

const DIALECT = '"https://json-schema.org/draft/2020-12/schema"'
const ANY_INPUT = parseObject('{"type":"object"}')

/** A tool in a list. Notes its name if its results will be wrapped. */
export function listedTool(tool: Payload, to: Downlevel): Payload | undefined {
  const { wrapped: names } = to.memory
  const name = value(tool, 'name')
  if (typeof name === 'string') names.delete(name)
  return adaptedTool(tool, to, () => {
    if (typeof name !== 'string' || name.length > MAX_NAME || names.size >= MAX_TOOLS) return false
    names.add(name)
    return true
  })
}

/**
 * A list of tools without output schemas that validators cannot compile, for clients of the server's own revision. `lost` is
 * called with the name of each tool that loses its schema.
 */
export function withSoundOutputs(result: Payload, lost: (tool: string) => void): Payload {
  return inArray(result, 'tools', (tool) => {
    if (opens(tool, 'outputSchema') !== '{' || soundness(value(tool, 'outputSchema'))) return tool
    lost(textUnder(tool, 'name'))
    return edit(tool, { outputSchema: undefined })
  })
}

/** A list of tools whose input schemas have roots as clients check them, which refuse the whole list otherwise. */
export function withCheckedInputs(result: Payload): Payload {
  return inArray(result, 'tools', (tool) => {
    const before = objectIn(tool, 'inputSchema')
    const input = checkedRoot(before ?? ANY_INPUT)
    return input === before ? tool : edit(tool, { inputSchema: input })
  })
}

/** A tool in a sampling request. Its results do not pass through here, so its `outputSchema` cannot be wrapped. */
export function sampledTool(tool: Payload, to: Downlevel): Payload | undefined {
  return adaptedTool(tool, to, () => false)
}

/** `promises` returns whether the tool's results can be wrapped from now on, and notes it. */
function adaptedTool(tool: Payload, to: Downlevel, promises: () => boolean): Payload | undefined {
  const before = objectIn(tool, 'inputSchema')
  const input = described(before ?? ANY_INPUT, to)
  const adapted = edit(tool, {
    execution: undefined,
    ...(input !== before && { inputSchema: input }),
    ...outputOf(tool, to, promises),
  })
  return fit(adapted, shapes.tool, to)
}

/** The edit of a tool's `outputSchema`; empty if it stays. */
function outputOf(tool: Payload, to: Downlevel, promises: () => boolean): { outputSchema?: Payload | undefined } {
  const schema = objectIn(tool, 'outputSchema')
  // `fit` removes an `outputSchema` that is not an object or that the revision does not have.
  if (!schema || !to.traits.structuredContent) return {}
  const sound = soundness(value(tool, 'outputSchema'))
  const direct = raw(schema, 'type') === '"object"'
  if (!sound || !(direct || (sound.movable && promises()))) {
    to.lost('outputSchema')
    return { outputSchema: undefined }
  }
  const adapted = described(direct ? schema : wrappedSchema(schema, sound), to)
  return adapted === schema ? {} : { outputSchema: adapted }
}

/** An object schema in the form that clients before 2026-07-28 accept. */
function described(schema: Payload, to: Downlevel): Payload {
  if (!to.strict) return checkedRoot(withoutIdleDialect(schema))
  const isStated = to.traits.defaultDialect || has(schema, '$schema')
  return checkedRoot(isStated ? schema : edit(schema, { $schema: DIALECT }))
}

/** An object schema whose root is as clients before 2026-07-28 check it. */
function checkedRoot(schema: Payload): Payload {
  const edits: Record<string, Json | undefined> = {}
  if (raw(schema, 'type') !== '"object"') edits['type'] = '"object"'
  const required = raw(schema, 'required')
  if (required !== undefined && !isStrings(JSON.parse(required))) edits['required'] = undefined
  if ((opens(schema, 'properties') ?? '{') !== '{') edits['properties'] = undefined
  return inObject(edit(schema, edits), 'properties', describedProperties)
}

/**
 * Replaces boolean schemas of properties by equivalent objects. 2025-11-25 allows them, but its clients reject them.
 */
function describedProperties(properties: Payload): Payload {
  return mapMembers(
    properties,
    (schema) => schema,
    ({ opens }) => (opens === 'f' ? '{"not":{}}' : '{}'),
  )
}

function isStrings(value: unknown): boolean {
  return Array.isArray(value) && value.every((element) => typeof element === 'string')
}

/** The result of a call, wrapped if the listed `outputSchema` was. */
export function callResult(received: Payload, to: Downlevel, params: Payload): Payload {
  const listed = opens(received, 'content') === '[' ? received : withContentList(received)
  const result = shownContent(fit(listed, shapes.callResult, to, false) ?? listed, to)
  const structured = opens(result, 'structuredContent')
  if (structured === undefined) return result
  if (!to.traits.structuredContent) {
    to.lost('structuredContent')
    return orText(edit(result, { structuredContent: undefined }), result)
  }
  const name = stringUnder(params, 'name')
  const promised = typeof name === 'string' && to.memory.wrapped.has(name)
  return structured === '{' && !promised ? result : orText(wrapped(result), result)
}

/** Adds the structured content as text if the result has no other content. */
function orText(result: Payload, before: Payload): Payload {
  if (arrayIn(result, 'content')?.elements.length !== 0) return result
  return edit(result, { content: `[${write(textBlock(raw(before, 'structuredContent') ?? ''))}]` })
}
