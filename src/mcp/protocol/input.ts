/**
 * Reads and translates the questions of a server during a call (elicitation, sampling, roots), and their answers (MCP
 * 2026-07-28, mrtr and client).
 */

import { Fault } from '../../base/fault/fault.js'
import {
  arrayIn,
  EMPTY,
  edit,
  has,
  isEmpty,
  type Json,
  keys,
  objectIn,
  opens,
  type Payload,
  parseObject,
  payloadAt,
  raw,
  value,
  write,
} from '../../base/rpc/splice.js'
import { parseUrl } from '../../base/texts/parse-url.js'
import { ECHOED, printable } from '../../base/texts/printable.js'
import { type LegacyRevision, traits } from './eras.js'
import { withoutEnvelope } from './meta.js'

/** One question of a server. */
export interface InputRequest {
  /** The name of the question within its call. */
  key: string
  method: string
  params: Payload
}

/** The capability that a client must declare before a server may ask a question, as a member of ClientCapabilities. */
export interface Needed {
  name: 'elicitation' | 'sampling' | 'roots'
  /** The members that the capability must have, as a JSON object. */
  under: Json
}

/** Thrown if the client did not answer a question, or with an error. */
export class Unanswered extends Error {
  override name = 'Unanswered'
  readonly code: number

  constructor(code: number, message: string) {
    super(message)
    this.code = code
  }
}

const ACTIONS: readonly unknown[] = ['accept', 'decline', 'cancel']
/** Members of an answer, by the method of the question. Others are removed: strict servers reject them. */
const MEMBERS: Readonly<Record<string, readonly string[]>> = {
  'elicitation/create': ['action', 'content', '_meta'],
  'sampling/createMessage': ['role', 'content', 'model', 'stopReason', '_meta'],
  'roots/list': ['roots', '_meta'],
}

/** Whether a request of a server is a question to its client. */
export function isQuestion(method: string | undefined): boolean {
  return method !== undefined && Object.hasOwn(MEMBERS, method)
}

/** Whether an `input_required` result has questions. Without questions, the client should wait and call again. */
export function asksSomething(input: Payload): boolean {
  const requests = objectIn(input, 'inputRequests')
  return requests !== undefined && !isEmpty(requests)
}

/**
 * The `requestState` of an `input_required` result. A value that is not a string counts as absent, as in the official
 * clients.
 */
export function stateOf(input: Payload): Json | undefined {
  return opens(input, 'requestState') === '"' ? raw(input, 'requestState') : undefined
}

/**
 * The questions of an `input_required` result; none if it has only a state. Throws a Fault if it has neither, or if a
 * question has an unknown method.
 */
export function readInputRequests(input: Payload): InputRequest[] {
  const requests = objectIn(input, 'inputRequests') ?? EMPTY
  if (isEmpty(requests) && stateOf(input) === undefined)
    throw new Fault(
      'upstreamProtocol',
      'The server asked for input, but its result has neither inputRequests nor requestState',
    )
  return keys(requests).map((key) => {
    const entry = objectIn(requests, key)
    const method = entry && value(entry, 'method')
    if (!entry || typeof method !== 'string' || !Object.hasOwn(MEMBERS, method))
      throw new Fault(
        'upstreamProtocol',
        `The server asked for input by an unsupported method: ${printable(String(JSON.stringify(method)), ECHOED)}`,
      )
    return { key, method, params: objectIn(entry, 'params') ?? EMPTY }
  })
}

/** The capability that a question requires; undefined for a method that is not a question. */
export function capabilityFor(method: string, params: Payload): Needed | undefined {
  switch (method) {
    case 'elicitation/create':
      return { name: 'elicitation', under: value(params, 'mode') === 'url' ? '{"url":{}}' : '{"form":{}}' }
    case 'sampling/createMessage':
      return { name: 'sampling', under: has(params, 'tools') || has(params, 'toolChoice') ? '{"tools":{}}' : '{}' }
    case 'roots/list':
      return { name: 'roots', under: '{}' }
    default:
      return undefined
  }
}

/** The capability for a question that a client lacks; undefined if it lacks none. */
export function uncovered(method: string, params: Payload, capabilities: Payload): string | undefined {
  const needed = capabilityFor(method, params)
  if (!needed) return method
  const declared = objectIn(capabilities, needed.name)
  if (!declared) return needed.name
  const [part] = keys(parseObject(needed.under))
  if (part === undefined || has(declared, part)) return undefined
  // Elicitation declared without a mode means forms.
  return part === 'form' && !has(declared, 'url') ? undefined : `${needed.name}.${part}`
}

/** An answer without its undefined members; undefined if the answer is invalid. */
export function wellFormed(method: string, answer: Payload): Payload | undefined {
  if (!isAnswer(method, answer)) return undefined
  const known = MEMBERS[method] ?? []
  const others = keys(answer).filter((key) => !known.includes(key) || raw(answer, key) === 'null')
  return edit(answer, Object.fromEntries(others.map((key) => [key, undefined])))
}

function isAnswer(method: string, answer: Payload): boolean {
  switch (method) {
    case 'elicitation/create':
      return ACTIONS.includes(value(answer, 'action')) && hasPlainContent(answer)
    case 'sampling/createMessage':
      return (
        ['role', 'model'].every((key) => typeof value(answer, key) === 'string') &&
        (objectIn(answer, 'content') !== undefined || arrayIn(answer, 'content') !== undefined)
      )
    case 'roots/list': {
      const roots = arrayIn(answer, 'roots')
      return roots?.elements.every((span) => isRoot(payloadAt(roots.source, span))) === true
    }
    default:
      return false
  }
}

function isRoot(root: Payload | undefined): boolean {
  return root !== undefined && typeof value(root, 'uri') === 'string'
}

/**
 * Whether the content is an object of strings, numbers, booleans and lists of strings. Some clients send null for no
 * content.
 */
function hasPlainContent(answer: Payload): boolean {
  const text = raw(answer, 'content')
  if (text === undefined || text === 'null') return true
  const content = objectIn(answer, 'content')
  return content !== undefined && keys(content).every((key) => isPlain(value(content, key)))
}

function isPlain(filled: unknown): boolean {
  if (Array.isArray(filled)) return filled.every((one) => typeof one === 'string')
  return ['string', 'number', 'boolean'].includes(typeof filled)
}

/** A legacy server's question in the form for modern clients. `capabilities` are those that the client declared. */
export function liftQuestion(method: string, params: Payload, capabilities: Payload): Json {
  const meta = objectIn(params, '_meta')
  const bare = meta
    ? withoutEnvelope(edit(params, { _meta: edit(meta, { progressToken: undefined }) }), {}, 'server')
    : params
  const question = edit(lifted(method, bare, capabilities), { task: undefined })
  const text = write(question)
  return text === '{}' ? `{"method":"${method}"}` : `{"method":"${method}","params":${text}}`
}

function lifted(method: string, params: Payload, capabilities: Payload): Payload {
  if (method === 'elicitation/create')
    return edit(params, { elicitationId: undefined, ...(!has(params, 'mode') && { mode: '"form"' }) })
  if (method !== 'sampling/createMessage') return params
  const sampling = objectIn(capabilities, 'sampling')
  const keeps = value(params, 'includeContext') === 'none' || (sampling && has(sampling, 'context'))
  return keeps ? params : edit(params, { includeContext: undefined })
}

/** A client's answer in the form for a legacy server; undefined if the server's revision cannot express it. */
export function lowerAnswer(method: string, answer: Payload, revision: LegacyRevision): Payload | undefined {
  const bare = withoutEnvelope(answer)
  const blocks = method === 'sampling/createMessage' ? arrayIn(bare, 'content') : undefined
  if (!blocks || traits[revision].samplingTools) return bare
  const payloads = blocks.elements.map((span) => payloadAt(blocks.source, span))
  const [only] = payloads
  if (only && payloads.length === 1) return edit(bare, { content: only })
  const texts = payloads.map((block) => (block && value(block, 'type') === 'text' ? value(block, 'text') : undefined))
  if (!texts.every((text) => typeof text === 'string')) return undefined
  return edit(bare, { content: `{"type":"text","text":${JSON.stringify(texts.join('\n'))}}` })
}

/** Whether a person may be sent to an address: https, or http on this machine, without a user name or password. */
export function isShowable(address: unknown): boolean {
  const url = typeof address === 'string' ? parseUrl(address) : undefined
  if (!url) return false
  const { protocol, hostname, username, password } = url
  // A user name before the host can be mistaken for the host.
  if (username !== '' || password !== '') return false
  return protocol === 'https:' || (protocol === 'http:' && /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(hostname))
}
