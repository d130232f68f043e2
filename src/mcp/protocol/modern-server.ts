/** The codec of 2026-07-28 towards servers: writes requests with their envelope, reads results with their type. */

import { Fault } from '../../base/fault/fault.js'
import { faults } from '../../base/fault/faults.js'
import type { Response } from '../../base/rpc/message.js'
import { detach, wireOf } from '../../base/rpc/source.js'
import { EMPTY, edit, has, type Json, objectIn, type Payload, raw, value, write } from '../../base/rpc/splice.js'
import type { UnreadResponse } from '../../base/rpc/unread-response.js'
import { ECHOED, printable } from '../../base/texts/printable.js'
import type { CacheHint, Call, Caller, Final, Notice, ReceivedReply } from './call.js'
import { NEWEST_MODERN } from './eras.js'
import { CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL, PROTOCOL_VERSION, SERVER_INFO, withoutEnvelope } from './meta.js'
import { LISTS, methodTraits } from './methods.js'
import { hasReserved, withoutReserved } from './reserved.js'

const VERSION = JSON.stringify(NEWEST_MODERN)
const TYPE = { resultType: undefined }
const CACHE_HINTS = { ttlMs: undefined, cacheScope: undefined }
const INVALID_HINT: CacheHint = { ttlMs: 0, scope: 'private' }
/** Errors with an HTTP status of their own (MCP 2026-07-28, streamable-http, responses). */
const STATUSES = new Map<number, number>(
  [faults.methodNotFound, faults.headerMismatch, faults.missingCapability, faults.unsupportedRevision].map(
    ({ code, status }) => [code, status],
  ),
)

/** `_meta` that contain only an envelope, by caller: all calls of a legacy session have the same one. */
const envelopes = new WeakMap<Caller, Json>()

/** Params of a request to a modern server. */
export function encodeParams(call: Call, progressToken: Json | undefined): Payload {
  const { params, meta, caller, answers } = call
  const _meta =
    meta === EMPTY && progressToken === undefined ? envelopeOf(caller) : envelope(meta, caller, progressToken)
  return edit(params, answers ? { inputResponses: answers.responses, requestState: answers.state, _meta } : { _meta })
}

function envelopeOf(caller: Caller): Json {
  let text = envelopes.get(caller)
  if (text === undefined) {
    text = detach(write(envelope(EMPTY, caller, undefined)))
    envelopes.set(caller, text)
  }
  return text
}

function envelope(meta: Payload, caller: Caller, progressToken: Json | undefined): Payload {
  return edit(meta, {
    [PROTOCOL_VERSION]: VERSION,
    [CLIENT_INFO]: caller.clientInfo,
    [CLIENT_CAPABILITIES]: caller.capabilities,
    [LOG_LEVEL]: caller.logLevel && JSON.stringify(caller.logLevel),
    progressToken,
  })
}

/** Params of a notification to a modern server. */
export function encodeNotice({ params, meta, caller }: Notice): Payload {
  const envelope = {
    [PROTOCOL_VERSION]: VERSION,
    [CLIENT_INFO]: caller.clientInfo,
    [CLIENT_CAPABILITIES]: caller.capabilities,
  }
  return edit(params, { _meta: edit(meta, envelope) })
}

/** Params of the bridge's own `server/discover`, which detects a server's era. */
export function discoverParams(clientInfo: Json): Json {
  return `{"_meta":{"${PROTOCOL_VERSION}":${VERSION},"${CLIENT_INFO}":${clientInfo},"${CLIENT_CAPABILITIES}":{}}}`
}

/** The answer to a call as the server sent it, beside the Reply. Throws a Fault if it is not a valid answer. */
export function decodeReceived(call: Call, response: Response | UnreadResponse): Final {
  if ('unread' in response) return new UnreadReply(call, response)
  const { id, outcome, http } = response
  const reply = decodeReply(call, response)
  if (reply.kind === 'error' && http) reply.status = http.status
  if (!isMended(call, outcome, reply))
    reply.received = { era: 'modern', id, message: wireOf(outcome.source), origin: outcome.source, reply, http }
  return reply
}

/** Whether the bridge has taken something off the answer or replaced it, so that it must not pass unchanged. */
function isMended({ method }: Call, { kind, payload }: Response['outcome'], reply: Final): boolean {
  if (kind === 'error' || !payload) return false
  return hasReserved(method, payload) || (reply.kind === 'result' && reply.cache === INVALID_HINT)
}

/** A large result, which is decoded only if somebody reads it. See `UnreadResponse` about its getters. */
class UnreadReply {
  readonly kind: 'input' | 'result'
  readonly isToolError: boolean
  /** Results of other types are read at once. */
  readonly type = undefined
  declare readonly result: Payload
  readonly received: ReceivedReply
  readonly #call: Call
  readonly #response: UnreadResponse
  #decoded: Final | undefined

  static readonly #getters: PropertyDescriptorMap & ThisType<UnreadReply> = {
    result: {
      enumerable: true,
      get() {
        const reply = this.#read()
        return reply.kind === 'error' ? EMPTY : reply.result
      },
    },
    server: {
      enumerable: true,
      get() {
        return this.#read().server
      },
    },
    cache: {
      enumerable: true,
      get() {
        const reply = this.#read()
        return reply.kind === 'result' ? reply.cache : undefined
      },
    },
  }

  constructor(call: Call, response: UnreadResponse) {
    const { id, http, unread } = response
    this.kind = unread.ended === 'input' ? 'input' : 'result'
    this.isToolError = unread.ended === 'tool error'
    this.#call = call
    this.#response = response
    this.received = { era: 'modern', id, message: unread.pieces, origin: 'rebuilt', reply: this, http }
    Object.defineProperties(this, UnreadReply.#getters)
  }

  #read(): Final {
    this.#decoded ??= decodeUnread(this.#call, this.#response)
    return this.#decoded
  }
}

function decodeUnread(call: Call, response: Response): Final {
  try {
    return decodeReply(call, response)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    throw new Fault('upstreamProtocol', 'The server sent an invalid answer: it is not JSON-RPC', { cause: error })
  }
}

/** A server's answer as a Reply. Throws a Fault if it is not a valid answer. */
export function decodeReply(call: Call, { outcome }: Response): Final {
  const { payload } = outcome
  if (outcome.kind === 'error') return decodeError(payload ?? EMPTY)
  if (!payload)
    throw new Fault(
      'upstreamProtocol',
      `The server answered ${printable(call.method, ECHOED)} with a result that is not an object`,
    )
  const type = value(payload, 'resultType') ?? 'complete'
  if (typeof type !== 'string')
    throw new Fault(
      'upstreamProtocol',
      `The server answered ${printable(call.method, ECHOED)} with a resultType that is not a string`,
    )
  const server = serverOf(call, payload)
  const sent = withoutEnvelope(payload, TYPE, 'server')
  const list = LISTS.get(call.method)
  const { cacheable } = methodTraits(call.method)
  const result = list ? withoutReserved(sent, list.key) : sent
  if (type === 'input_required') return { kind: 'input', result, server }
  if (type !== 'complete') return { kind: 'result', result, type, server }
  if (!cacheable) return { kind: 'result', result, server }
  return { kind: 'result', result: edit(result, CACHE_HINTS), server, cache: cacheOf(result) }
}

function decodeError(error: Payload): Final {
  const code = value(error, 'code')
  const message = value(error, 'message')
  if (typeof code !== 'number' || !Number.isInteger(code) || typeof message !== 'string') {
    const said = typeof message === 'string' ? message : 'The server answered with a malformed error'
    return { kind: 'error', error: { code: -32603, message: said, from: error } }
  }
  const data = raw(error, 'data')
  const malformed = code === -32602 && namesMissingKeys(error)
  return { kind: 'error', error: { code, message, data, from: error }, status: malformed ? 400 : STATUSES.get(code) }
}

/** Whether an error is about an incomplete envelope, not about invalid arguments. */
export function namesMissingKeys(error: Payload): boolean {
  const data = objectIn(error, 'data')
  return data !== undefined && Array.isArray(value(data, 'missing'))
}

/** The server's Implementation. Also read from the body of a DiscoverResult, where drafts had it. */
function serverOf({ method }: Call, result: Payload): Json | undefined {
  const meta = objectIn(result, '_meta')
  const stated = meta && raw(meta, SERVER_INFO)
  if (stated !== undefined || method !== 'server/discover') return stated
  return objectIn(result, 'serverInfo') && raw(result, 'serverInfo')
}

/** The cache hint of a result. An invalid one forbids caching. */
function cacheOf(result: Payload): CacheHint | undefined {
  if (!has(result, 'ttlMs') && !has(result, 'cacheScope')) return undefined
  const ttlMs = value(result, 'ttlMs')
  if (typeof ttlMs !== 'number' || !Number.isInteger(ttlMs) || ttlMs < 0) return INVALID_HINT
  return { ttlMs, scope: value(result, 'cacheScope') === 'public' ? 'public' : 'private' }
}
