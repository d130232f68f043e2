/** Tools as older clients take them: what is listed of them, and what a call of one gives. */
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
  value,
  write,
} from '../../rpc/splice.js'
import { MAX_NAME } from '../lengths.js'
import { shownContent, textBlock } from './content.js'
import { withoutIdleDialect } from './dialect.js'
import { fit, relax } from './fit.js'
import { inObject, mapMembers } from './members.js'
import { soundness } from './schemas.js'
import * as shapes from './shapes.js'
import { type Downlevel, speaks } from './target.js'
import { isObjectOrAbsent, wrapped, wrappedSchema } from './wrap.js'

/** Tools of a session whose results are remembered to come wrapped. */
const MAX_WRAPPED = 2_000
const DIALECT = '"https://json-schema.org/draft/2020-12/schema"'
const ANY_INPUT = parseObject('{"type":"object"}')

/** A tool of the server's, remembered if its results are going to be wrapped. */
export function listedTool(tool: Payload, to: Downlevel): Payload | undefined {
  const { wrapped: names } = to.memory
  const name = value(tool, 'name')
  if (typeof name === 'string') names.delete(name)
  return toldTool(tool, to, () => {
    if (typeof name !== 'string' || name.length > MAX_NAME || names.size >= MAX_WRAPPED) return false
    names.add(name)
    return true
  })
}

/** A tool that a model may use while it is asked something. What it gives does not pass here: nothing can be promised. */
export function sampledTool(tool: Payload, to: Downlevel): Payload | undefined {
  return toldTool(tool, to, () => false)
}

/** `promises` says whether the results of the tool can be wrapped from now on. */
function toldTool(tool: Payload, to: Downlevel, promises: () => boolean): Payload | undefined {
  const before = objectIn(tool, 'inputSchema')
  const input = described(before ?? ANY_INPUT, to)
  const told = edit(tool, {
    execution: undefined,
    ...(input !== before && { inputSchema: write(input) }),
    ...outputOf(tool, to, promises),
  })
  return fit(told, shapes.tool, to)
}

/** What becomes of a tool's `outputSchema`; nothing where it stays. */
function outputOf(tool: Payload, to: Downlevel, promises: () => boolean): { outputSchema?: Json | undefined } {
  const schema = objectIn(tool, 'outputSchema')
  // What is no object, or no member of the revision, goes with the other members that do not fit.
  if (!schema || !speaks(to, 'structuredContent')) return {}
  const sound = soundness(value(tool, 'outputSchema'))
  const direct = raw(schema, 'type') === '"object"'
  if (!sound || !(direct || (sound.movable && promises()))) {
    to.lost('outputSchema')
    return { outputSchema: undefined }
  }
  const told = described(direct ? schema : wrappedSchema(schema, sound), to)
  return told === schema ? {} : { outputSchema: write(told) }
}

/** The schema of an object as clients of before 2026-07-28 check it themselves, at its root and no deeper. */
function described(schema: Payload, to: Downlevel): Payload {
  const edits: Record<string, Json | undefined> = {}
  if (raw(schema, 'type') !== '"object"') edits['type'] = '"object"'
  const required = raw(schema, 'required')
  if (required !== undefined && !isStrings(JSON.parse(required))) edits['required'] = undefined
  if ((opens(schema, 'properties') ?? '{') !== '{') edits['properties'] = undefined
  if (to.strict && !speaks(to, 'defaultDialect') && !has(schema, '$schema')) edits['$schema'] = DIALECT
  const plain = to.strict ? schema : withoutIdleDialect(schema)
  return inObject(edit(plain, edits), 'properties', describedProperties)
}

/** Properties whose schema is no object, which 2025-11-25 allows and its clients reject, as objects that say the same. */
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

/** The result of a call, which has in it what the list has promised. */
export function callResult(params: Payload, result: Payload, to: Downlevel): Payload {
  const fitting = relax(result, shapes.callResult, to)
  const told = has(fitting, 'content') ? shownContent(fitting, to) : edit(fitting, { content: '[]' })
  return withStructure(params, told, to)
}

function withStructure(params: Payload, result: Payload, to: Downlevel): Payload {
  if (!has(result, 'structuredContent')) return result
  if (!speaks(to, 'structuredContent')) {
    to.lost('structuredContent')
    return orText(edit(result, { structuredContent: undefined }), result)
  }
  const name = value(params, 'name')
  const promised = typeof name === 'string' && to.memory.wrapped.has(name)
  return isObjectOrAbsent(result) && !promised ? result : orText(wrapped(result), result)
}

/** The result with the structured content that it had as a text, where there is nothing else to be read. */
function orText(result: Payload, before: Payload): Payload {
  if (arrayIn(result, 'content')?.elements.length !== 0) return result
  return edit(result, { content: `[${write(textBlock(raw(before, 'structuredContent') ?? ''))}]` })
}
