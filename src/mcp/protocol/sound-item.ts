/**
 * Repairs an item of a list that is not as the newest revision defines it. Clients that check their schema refuse a whole list
 * because of one such item, and in a group that is the list of all servers.
 */
import { edit, objectIn, opens, type Payload, parseObject, raw } from '../../base/rpc/splice.js'
import { fit, type Shape } from './downlevel/fit.js'
import * as shapes from './downlevel/shapes.js'
import type { Downlevel } from './downlevel/target.js'
import { NEWEST_LEGACY, traits } from './eras.js'

/** What is wrong with an item: the names of its members that were removed or replaced. */
export type Lost = (member: string) => void

const SHAPES: Readonly<Record<string, Shape>> = {
  'tools/list': shapes.soundTool,
  'prompts/list': shapes.prompt,
  'resources/list': shapes.resource,
  'resources/templates/list': shapes.resourceTemplate,
}
const ANY_INPUT = parseObject('{"type":"object"}')
/** Every member that a modern revision has, a legacy one has too. */
const NEWEST: Omit<Downlevel, 'lost'> = {
  ...{ revision: NEWEST_LEGACY, traits: traits[NEWEST_LEGACY] },
  ...{ strict: false, memory: { wrapped: new Set() } },
}

/** The item as all clients accept it; undefined if it cannot be repaired. */
export function soundItem(method: string, item: Payload, lost: Lost): Payload | undefined {
  const shape = Object.hasOwn(SHAPES, method) ? SHAPES[method] : undefined
  if (!shape) return item
  const complete =
    method === 'tools/list' ? withInput(item, lost) : method === 'prompts/list' ? item : withName(item, lost)
  return fit(complete, shape, { ...NEWEST, lost })
}

function withInput(tool: Payload, lost: Lost): Payload {
  const schema = objectIn(tool, 'inputSchema')
  if (schema && raw(schema, 'type') === '"object"') return tool
  lost('inputSchema')
  return edit(tool, { inputSchema: schema ? edit(schema, { type: '"object"' }) : ANY_INPUT })
}

/** Resources are used by their URIs, so a name can be made up. */
function withName(item: Payload, lost: Lost): Payload {
  if (opens(item, 'name') === '"') return item
  const key = ['title', 'uri', 'uriTemplate'].find((one) => opens(item, one) === '"')
  if (key === undefined) return item
  lost('name')
  return edit(item, { name: raw(item, key) })
}
