/**
 * Leaves out what clients write for members that are absent, because some libraries write all members that they know: null, or an
 * empty list where the protocol has an object. Servers that check their schema would refuse it.
 */
import { type Message, type Notification, parseMessage, type Request, type Response } from '../../base/rpc/message.js'
import { cut, type JsonSource, sourceOf } from '../../base/rpc/source.js'
import {
  edit,
  has,
  keys,
  mapElements,
  objectIn,
  opens,
  type Payload,
  parseSource,
  raw,
  type Value,
  write,
} from '../../base/rpc/splice.js'
import { OF_ANSWER, OF_METHODS, OF_PARAMS, OF_PERSON, type OptionalMembers } from './optional-members.js'

/** Most members of an object with any names, such as the arguments of a prompt, that are looked at. */
const MAX_FREE_MEMBERS = 200

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

/** Whether a message that `withoutAbsent` has returned has something to leave out, or has been edited in another way. */
export function isShorter(message: Message): message is Valid {
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
  const left = without(params, OF_PARAMS)
  const all = Object.hasOwn(OF_METHODS, method) ? without(left, OF_METHODS[method] as OptionalMembers) : left
  // They are required.
  return method === 'initialize' && isAbsent(all, 'capabilities', true) ? edit(all, { capabilities: '{}' }) : all
}

/** An answer to a question. One for a person has an action. */
function inAnswer(result: Payload): Payload {
  return without(result, has(result, 'action') ? OF_PERSON : OF_ANSWER)
}

function without(payload: Payload, optional: OptionalMembers): Payload {
  const { values = [], objects = [], declared = [], inside, each, all } = optional
  const changed: Record<string, Value | undefined> = {}
  for (const [name, members] of Object.entries(inside ?? {})) {
    const inner = objectIn(payload, name)
    const left = inner && without(inner, members)
    if (left !== inner) changed[name] = left
  }
  for (const [name, members] of Object.entries(each ?? {})) {
    const list = mapElements(payload, name, (element) => without(element, members))
    if (list) changed[name] = list
  }
  for (const name of values) if (isAbsent(payload, name)) changed[name] = undefined
  for (const name of objects) if (isAbsent(payload, name, true)) changed[name] = undefined
  for (const name of declared) if (isAbsent(payload, name, true)) changed[name] = declaredAs(payload, name)
  const left = edit(payload, changed)
  return all ? ofAll(left, all) : left
}

/** An object whose members have any names. */
function ofAll(payload: Payload, all: NonNullable<OptionalMembers['all']>): Payload {
  const names = keys(payload)
  if (names.length > MAX_FREE_MEMBERS) return payload
  if (all !== 'answers') return without(payload, { [all]: names })
  const changed: Record<string, Payload> = {}
  for (const name of names) {
    const answer = objectIn(payload, name)
    const left = answer && inAnswer(answer)
    if (left && left !== answer) changed[name] = left
  }
  return edit(payload, changed)
}

/** A capability in the form of an empty list is declared. */
function declaredAs(payload: Payload, name: string): Value | undefined {
  return opens(payload, name) === '[' ? '{}' : undefined
}

function isAbsent(payload: Payload, name: string, isObject = false): boolean {
  const first = opens(payload, name)
  return first === 'n' || (isObject && first === '[' && EMPTY_LIST.test(raw(payload, name) ?? ''))
}
