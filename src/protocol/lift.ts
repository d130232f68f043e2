/** Takes a legacy result into the middle: what no modern client may see goes, what every one expects is there. */
import { arrayAt } from '../rpc/scan.js'
import { edit, has, type Json, objectIn, type Payload, parseObject, raw, value, write } from '../rpc/splice.js'
import { AnnotationError, annotationsOf, KEYWORD, withoutAnnotations } from './annotations.js'
import { withoutEnvelopeKeys, writeMeta } from './meta.js'

const MAX_COMPLETIONS = 100
const OWN_HINTS = { ttlMs: undefined, cacheScope: undefined }

const byMethod: Readonly<Record<string, (result: Payload) => Payload>> = {
  'tools/list': (result) => list(result, 'tools', liftTool),
  'prompts/list': (result) => list(result, 'prompts'),
  'resources/list': (result) => list(result, 'resources'),
  'resources/templates/list': (result) => list(result, 'resourceTemplates'),
  'resources/read': (result) => edit(result, OWN_HINTS),
  'tools/call': withContent,
  'completion/complete': fewCompletions,
}

export function lift(method: string, result: Payload): Payload {
  const specific = Object.hasOwn(byMethod, method) ? byMethod[method] : undefined
  const lifted = specific ? specific(result) : result
  const untyped = edit(lifted, { resultType: undefined })
  const meta = objectIn(untyped, '_meta')
  return meta ? edit(untyped, { _meta: writeMeta(withoutEnvelopeKeys(meta)) }) : untyped
}

function list(result: Payload, key: string, liftItem?: (item: Json) => Json): Payload {
  const page = edit(result, OWN_HINTS)
  const listed = raw(page, 'nextCursor') === 'null' ? edit(page, { nextCursor: undefined }) : page
  const items = raw(listed, key)
  if (!items?.startsWith('[') || !liftItem) return listed
  const lifted = mapElements(items, liftItem)
  return lifted === items ? listed : edit(listed, { [key]: lifted })
}

/** The array with each element replaced by what `change` makes of it; the very same text where nothing changes. */
function mapElements(array: Json, change: (element: Json) => Json): Json {
  const { elements } = arrayAt(array, 0)
  const parts: string[] = []
  let copied = 0
  for (const { start, end } of elements) {
    const before = array.slice(start, end)
    const after = change(before)
    if (after === before) continue
    parts.push(array.slice(copied, start), after)
    copied = end
  }
  return parts.length === 0 ? array : parts.join('') + array.slice(copied)
}

function liftTool(text: Json): Json {
  if (!text.startsWith('{')) return text
  const tool = parseObject(text)
  const lifted = has(tool, 'execution') ? edit(tool, { execution: undefined }) : tool
  const schema = objectIn(lifted, 'inputSchema')
  const fitting = schema ? liftSchema(schema) : '{"type":"object"}'
  if (schema && fitting === undefined) return lifted === tool ? text : write(lifted)
  return write(edit(lifted, { inputSchema: fitting }))
}

/** The schema as modern clients need it, or undefined where it is that already. */
function liftSchema(schema: Payload): Json | undefined {
  let fitting = schema
  if (raw(schema, 'type') !== '"object"') fitting = edit(fitting, { type: '"object"' })
  if (raw(schema, 'properties') === 'null') fitting = edit(fitting, { properties: undefined })
  if (schema.text.slice(schema.start, schema.end).includes(KEYWORD)) fitting = withSoundAnnotations(fitting)
  return fitting === schema ? undefined : write(fitting)
}

/** One bad annotation would make clients drop the whole tool: then it is better to have none. */
function withSoundAnnotations(schema: Payload): Payload {
  try {
    annotationsOf(schema)
    return schema
  } catch (error) {
    if (error instanceof AnnotationError) return withoutAnnotations(schema)
    throw error
  }
}

function withContent(result: Payload): Payload {
  if (raw(result, 'content')?.startsWith('[')) return result
  const toolResult = raw(result, 'toolResult')
  if (toolResult === undefined) return edit(result, { content: '[]' })
  const block = `{"type":"text","text":${JSON.stringify(toolResult)}}`
  return edit(result, { content: `[${block}]`, toolResult: undefined })
}

function fewCompletions(result: Payload): Payload {
  const completion = objectIn(result, 'completion')
  const values = completion && (value(completion, 'values') as unknown)
  if (!completion || !Array.isArray(values) || values.length <= MAX_COMPLETIONS) return result
  const few = { values: JSON.stringify(values.slice(0, MAX_COMPLETIONS)), hasMore: 'true' }
  return edit(result, { completion: write(edit(completion, few)) })
}
