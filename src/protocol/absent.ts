/**
 * Leaves out what clients write for members that are absent, because some libraries write all members that they know: null, or an
 * empty list where the protocol has an object. Servers that check their schema would refuse it.
 */
import { type Message, type Notification, parseMessage, type Request, type Response } from '../rpc/message.js'
import { cut, type JsonSource, sourceOf } from '../rpc/source.js'
import { type Edits, edit, has, objectIn, opens, type Payload, parseSource, raw, write } from '../rpc/splice.js'
import { PROGRESS_TOKEN } from './meta.js'
import { LISTS } from './methods.js'

/** Names of members that may be absent. */
interface Optional {
  values?: readonly string[]
  /** Those that are objects: an empty list counts as absent, too. */
  objects?: readonly string[]
}

const CURSOR: Optional = { values: ['cursor'] }
/** In the params of each method, beside `_meta`. */
const OPTIONAL: Readonly<Record<string, Optional>> = {
  ...Object.fromEntries([...LISTS.keys(), 'tasks/list', 'skills/list'].map((method) => [method, CURSOR])),
  'resources/directory/read': CURSOR,
  'tools/call': { objects: ['arguments', 'task'] },
  'prompts/get': { objects: ['arguments'] },
  'completion/complete': { objects: ['context'] },
  'notifications/cancelled': { values: ['reason'] },
  'notifications/progress': { values: ['total', 'message'] },
}
const META: Optional = { objects: ['_meta'] }
const OF_META: Optional = { values: [PROGRESS_TOKEN] }
const OF_CONTEXT: Optional = { objects: ['arguments'] }
const OF_CLIENT_INFO: Optional = { values: ['title', 'description', 'websiteUrl', 'icons'] }
/** In answers to the questions of servers; and to those for a person, whose content is an object. */
const OF_ANSWER: Optional = { values: ['content', 'stopReason'] }
const OF_PERSON: Optional = { objects: ['content'] }
const CAPABILITIES = ['experimental', 'roots', 'sampling', 'elicitation', 'tasks', 'extensions'] as const

/** How such a member may look in the text of a message. */
export const LOOKS_ABSENT = /null|\[\s*\]/
const EMPTY_LIST = /^\[\s*\]$/

/** The message without what is absent. Messages of a batch are given one by one. */
export function withoutAbsent(message: Message): Message {
  if (message.kind === 'batch' || message.kind === 'invalid') return message
  if (message.kind === 'response') {
    const { outcome } = message
    const { kind, payload } = outcome
    const left = kind === 'result' && payload ? inAnswer(payload) : payload
    return left === payload ? message : { ...message, outcome: { ...outcome, payload: left } }
  }
  const { method, params } = message
  const left = typeof params === 'string' ? params : inParams(method, params)
  return left === params ? message : { ...message, params: left }
}

/** The text of a message that `withoutAbsent` has returned, if it or a message of the batch has something to leave out. */
export function textWithoutAbsent(message: Message): string | undefined {
  if (message.kind !== 'batch') return isShorter(message) ? textOf(message) : undefined
  const { source, elements } = message
  const all = elements.map(({ start, end }) => withoutAbsent(parseMessage(sourceOf(cut(source, start, end)))))
  return all.some(isShorter) && all.every(isValid) ? `[${all.map(textOf).join(',')}]` : undefined
}

type Valid = Request | Notification | Response

function isValid(message: Message): message is Valid {
  return message.kind !== 'batch' && message.kind !== 'invalid'
}

function isShorter(message: Message): message is Valid {
  if (!isValid(message)) return false
  if (message.kind === 'response') return message.outcome.payload?.edits !== undefined
  const { params, source } = message
  if (typeof params === 'object') return params.edits !== undefined
  return params === 'absent' && source?.text.includes('"params"') === true
}

function textOf(message: Message): string {
  if (!isValid(message)) return ''
  if (message.kind === 'response') {
    const { kind, source, payload } = message.outcome
    return write(edit(parseSource(source), payload?.edits ? { [kind]: payload } : {}))
  }
  const { params, source } = message
  const edits = typeof params === 'object' ? params.edits && { params } : params === 'absent' && { params: undefined }
  return write(edit(parseSource(source as JsonSource), edits || {}))
}

function inParams(method: string, params: Payload): Payload {
  let left = inMeta(params)
  if (Object.hasOwn(OPTIONAL, method)) left = without(left, OPTIONAL[method] as Optional)
  if (method === 'completion/complete') return inside(left, 'context', (context) => without(context, OF_CONTEXT))
  if (method !== 'initialize') return left
  left = inside(left, 'clientInfo', (info) => without(info, OF_CLIENT_INFO))
  // They are required.
  if (isAbsent(left, 'capabilities', true)) return edit(left, { capabilities: '{}' })
  return inside(left, 'capabilities', (declared) => edit(without(declared, { values: CAPABILITIES }), lists(declared)))
}

/** A capability in the form of an empty list is declared. */
function lists(capabilities: Payload): Edits {
  const named = CAPABILITIES.filter((name) => opens(capabilities, name) === '[' && isAbsent(capabilities, name, true))
  return Object.fromEntries(named.map((name) => [name, '{}']))
}

function inAnswer(result: Payload): Payload {
  return without(inMeta(result), has(result, 'action') ? OF_PERSON : OF_ANSWER)
}

function inMeta(payload: Payload): Payload {
  return without(
    inside(payload, '_meta', (meta) => without(meta, OF_META)),
    META,
  )
}

function inside(payload: Payload, name: string, change: (inner: Payload) => Payload): Payload {
  const inner = objectIn(payload, name)
  const changed = inner && change(inner)
  return changed === inner ? payload : edit(payload, { [name]: changed })
}

function without(payload: Payload, { values = [], objects = [] }: Optional): Payload {
  const names = [
    ...values.filter((name) => isAbsent(payload, name)),
    ...objects.filter((name) => isAbsent(payload, name, true)),
  ]
  return names.length === 0 ? payload : edit(payload, Object.fromEntries(names.map((name) => [name, undefined])))
}

function isAbsent(payload: Payload, name: string, isObject = false): boolean {
  const first = opens(payload, name)
  return first === 'n' || (isObject && first === '[' && EMPTY_LIST.test(raw(payload, name) ?? ''))
}
