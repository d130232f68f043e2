/** Replaces names, URIs and task ids in messages, whose places are listed by method. */

import { nameOfToken } from '../../base/rpc/pointer.js'
import { edit, listIn, mapElements, objectIn, opens, type Payload, type Value, value } from '../../base/rpc/splice.js'
import { CALL_TOOL, EVENT_LIST } from '../../mcp/protocol/methods.js'

/** The kind of value at a place. */
type Kind = 'name' | 'uri' | 'task' | 'logger' | 'cursor'

/** Returns the new value; the same one if it does not change. */
export type Replace = (kind: Kind, text: string) => string

/** The tree below a place: members of an object, elements of a list, or the value itself. */
interface Places {
  kind?: Kind
  members?: Map<string, Places>
  elements?: Places
}

const under = (place: string, paths: readonly string[]) => paths.map((path) => place + path)

/**
 * Hosts find a user interface here, in the definition of a tool and in its results: MCP Apps, its drafts, and the SDK for apps
 * in ChatGPT.
 */
const APP = under('/_meta', [
  '/ui/resourceUri',
  '/ui~1resourceUri',
  '/io.modelcontextprotocol~1ui/resourceUri',
  '/openai~1outputTemplate',
])
const RESOURCE = ['/uri', ...APP]
const BLOCK = [...RESOURCE, ...under('/resource', RESOURCE)]
const RESULT = [...APP, ...under('/content/*', BLOCK)]
/** A message for a model may have the result of a tool within it. */
const SAID = [...BLOCK, ...under('/content/*', BLOCK)]
/** A skill lists the URIs of its files. */
const SKILL = ['/uri', '/resources/*/uri']
/** An ended task contains the result of its call. */
const TASK = { task: ['/taskId'], uri: [...APP, ...under('/result', RESULT)] }

/** By method: JSON Pointers with `*` for each element. `task` is a result that creates a task. */
const PATHS: Readonly<Record<string, Partial<Record<Kind, readonly string[]>>>> = {
  'tools/list': { name: ['/tools/*/name'], uri: under('/tools/*', APP) },
  'prompts/list': { name: ['/prompts/*/name'], uri: under('/prompts/*', APP) },
  'resources/list': { uri: under('/resources/*', RESOURCE) },
  'resources/templates/list': { uri: under('/resourceTemplates/*', ['/uriTemplate', ...APP]) },
  'skills/list': { uri: under('/skills/*', SKILL) },
  [CALL_TOOL]: { uri: RESULT },
  task: TASK,
  'prompts/get': {
    uri: [...APP, ...under('/messages/*/content', BLOCK), ...under('/messages/*/content/*', BLOCK)],
  },
  'sampling/createMessage': {
    uri: [...under('/messages/*/content', SAID), ...under('/messages/*/content/*', SAID)],
  },
  'resources/read': { uri: [...APP, ...under('/contents/*', RESOURCE)] },
  'resources/directory/read': { uri: under('/resources/*', RESOURCE) },
  'skills/get': { uri: [...SKILL, ...under('/skill', SKILL)] },
  'tasks/get': TASK,
  'tasks/update': TASK,
  'tasks/cancel': TASK,
  'notifications/tasks': TASK,
  'notifications/resources/updated': { uri: ['/uri'] },
  [EVENT_LIST]: { name: ['/events/*/name'] },
  'events/poll': { name: ['/events/*/name'], cursor: ['/cursor', '/events/*/cursor'] },
  'notifications/events/active': { cursor: ['/cursor'] },
  'notifications/events/event': { name: ['/name'], cursor: ['/cursor'] },
  'notifications/events/heartbeat': { cursor: ['/cursor'] },
  'notifications/message': { logger: ['/logger'] },
}

const PLACES: ReadonlyMap<string, Places> = new Map(
  Object.entries(PATHS).map(([method, paths]) => {
    const root: Places = {}
    for (const [kind, pointers] of Object.entries(paths)) for (const one of pointers) add(root, one, kind as Kind)
    return [method, root]
  }),
)

function add(root: Places, pointer: string, kind: Kind): void {
  let at = root
  for (const token of pointer.split('/').slice(1)) {
    if (token === '*') {
      at.elements ??= {}
      at = at.elements
    } else {
      const key = nameOfToken(token)
      at.members ??= new Map()
      const below = at.members.get(key) ?? {}
      at.members.set(key, below)
      at = below
    }
  }
  at.kind = kind
}

/** The params of a notification or the result of a call, with names, URIs and ids replaced. */
export function replaced(method: string, payload: Payload, replace: Replace): Payload {
  const places = PLACES.get(method)
  if (!places || (method === CALL_TOOL && hasNoUri(payload))) return payload
  return inObject(payload, places, replace)
}

/** An item of the list under `key` in the result of a call, with its names and URIs replaced. */
export function replacedItem(method: string, key: string, item: Payload, replace: Replace): Payload {
  const places = PLACES.get(method)?.members?.get(key)?.elements
  return places ? inObject(item, places, replace) : item
}

/** Whether a text certainly has no URI. A quick check, because parsing large results takes time. */
function hasNoUri({ source, edits }: Payload): boolean {
  const { text } = source
  // A key may be written with escapes. "ri" is the end of "uri" and of "resourceUri".
  return edits === undefined && !text.includes('ri"') && !text.includes('outputTemplate"') && !text.includes('\\u')
}

function inObject(payload: Payload, { members }: Places, replace: Replace): Payload {
  let edits: Record<string, Value> | undefined
  for (const [key, places] of members ?? []) {
    const changed = at(payload, key, places, replace)
    if (changed === undefined) continue
    edits ??= {}
    edits[key] = changed
  }
  return edits ? edit(payload, edits) : payload
}

/** The new value under `key`; undefined if it does not change. */
function at(payload: Payload, key: string, { kind, members, elements }: Places, replace: Replace): Value | undefined {
  const opening = opens(payload, key)
  if (kind && opening === '"') {
    const text = value(payload, key) as string
    const other = replace(kind, text)
    return other === text ? undefined : JSON.stringify(other)
  }
  if (elements && opening === '[')
    return listIn(payload, key) && mapElements(payload, key, (element) => inObject(element, elements, replace))
  if (members && opening === '{') {
    const object = objectIn(payload, key)
    const changed = object && inObject(object, { members }, replace)
    return changed === object ? undefined : changed
  }
  return undefined
}
