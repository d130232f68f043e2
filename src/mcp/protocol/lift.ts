/**
 * Turns a legacy result into the middle form: removes what modern clients must not see, adds what they require, and cuts
 * long completions.
 */

import { edit, mapElements, objectIn, type Payload, raw, value, write } from '../../base/rpc/splice.js'
import { AnnotationError, annotationsOf, KEYWORD, withoutAnnotations } from './annotations.js'
import { withBlocks, withList, withMessageBlocks } from './content.js'
import { withoutEnvelope } from './meta.js'
import { CALL_TOOL } from './methods.js'
import { withoutReserved } from './reserved.js'

const MAX_COMPLETIONS = 100
const NO_TYPE = { resultType: undefined }
const OWN_HINTS = { ttlMs: undefined, cacheScope: undefined }

const byMethod: Readonly<Record<string, (result: Payload) => Payload>> = {
  'tools/list': (result) => list(result, 'tools', liftTool),
  'prompts/list': (result) => list(result, 'prompts'),
  'resources/list': (result) => list(result, 'resources'),
  'resources/templates/list': (result) => list(result, 'resourceTemplates'),
  'resources/read': (result) => edit(withList(result, 'contents'), OWN_HINTS),
  'skills/list': (result) => list(result, 'skills'),
  'skills/get': (result) => edit(result, OWN_HINTS),
  'resources/directory/read': (result) => list(result, 'resources'),
  [CALL_TOOL]: withBlocks,
  'prompts/get': withMessageBlocks,
  'completion/complete': fewCompletions,
}

/** The result of a legacy server in the middle form. */
export function lift(method: string, result: Payload): Payload {
  const specific = Object.hasOwn(byMethod, method) ? byMethod[method] : undefined
  const lifted = specific ? specific(result) : result
  return withoutEnvelope(lifted, NO_TYPE, 'server')
}

function list(result: Payload, key: string, liftItem?: (item: Payload) => Payload): Payload {
  const page = edit(result, OWN_HINTS)
  const listed = raw(page, 'nextCursor') === 'null' ? edit(page, { nextCursor: undefined }) : page
  const allowed = withoutReserved(listed, key)
  const items = liftItem && mapElements(allowed, key, liftItem)
  return items === undefined ? allowed : edit(allowed, { [key]: items })
}

function liftTool(tool: Payload): Payload {
  const lifted = edit(tool, { execution: undefined })
  const schema = objectIn(lifted, 'inputSchema')
  const fitting = schema ? liftSchema(schema) : '{"type":"object"}'
  return fitting === undefined ? lifted : edit(lifted, { inputSchema: fitting })
}

/** The schema as modern clients require it; undefined if it needs no change. */
function liftSchema(schema: Payload): Payload | undefined {
  let fitting = schema
  if (raw(schema, 'type') !== '"object"') fitting = edit(fitting, { type: '"object"' })
  if (raw(schema, 'properties') === 'null') fitting = edit(fitting, { properties: undefined })
  if (write(schema).includes(KEYWORD)) fitting = withSoundAnnotations(fitting)
  return fitting === schema ? undefined : fitting
}

/** Clients must drop a tool with an invalid annotation, so the annotations are removed instead. */
function withSoundAnnotations(schema: Payload): Payload {
  try {
    annotationsOf(schema)
    return schema
  } catch (error) {
    if (error instanceof AnnotationError) return withoutAnnotations(schema)
    throw error
  }
}

/** A result with at most 100 values, the maximum of the protocol (MCP 2026-07-28, server/utilities/completion). */
export function fewCompletions(result: Payload): Payload {
  const completion = objectIn(result, 'completion')
  const values = completion && (value(completion, 'values') as unknown)
  if (!completion || !Array.isArray(values) || values.length <= MAX_COMPLETIONS) return result
  const few = { values: JSON.stringify(values.slice(0, MAX_COMPLETIONS)), hasMore: 'true' }
  return edit(result, { completion: edit(completion, few) })
}
