/** The codec of 2026-07-28 towards clients: reads requests with their envelope, writes results with their type. */

import { Fault, type FaultOptions } from '../../base/fault/fault.js'
import { MAX_CAPABILITIES, MAX_SUBSCRIPTION } from '../../base/limits/constants.js'
import { MAX_KEY, memoize, Recent } from '../../base/rpc/memoize.js'
import {
  error as errorMessage,
  notification,
  type Params,
  type Request,
  readId,
  result,
} from '../../base/rpc/message.js'
import { cut, detach } from '../../base/rpc/source.js'
import {
  duplicateKey,
  EMPTY,
  edit,
  has,
  isEmpty,
  type Json,
  objectIn,
  opens,
  type Payload,
  parseObject,
  raw,
  type Value,
  value,
  write,
} from '../../base/rpc/splice.js'
import type { Answers, CacheHint, Caller, Reply } from './call.js'
import type { Encoded } from './encoded.js'
import { NEWEST_MODERN } from './eras.js'
import { isImplementation } from './implementation.js'
import {
  CLIENT_CAPABILITIES,
  CLIENT_INFO,
  LOG_LEVEL,
  PROGRESS_TOKEN,
  PROTOCOL_VERSION,
  SERVER_INFO,
  SUBSCRIPTION_ID,
  withoutRequestKeys,
} from './meta.js'
import { isLogLevel, LOG_LEVELS, methodTraits } from './methods.js'

/** A request, decoded. */
export interface DecodedModernRequest {
  method: string
  params: Payload
  meta: Payload
  caller: Caller
  /** The client's own token, as text, to be put back into every progress notification. */
  progressToken: Json | undefined
  /** Set in a retry. */
  answers?: Answers
}

/** The `_meta` of a request that claims a protocol version, and so a modern revision. */
export interface Envelope {
  meta: Payload
  /** The revision that it claims, which may be any value. */
  claim: unknown
  /** Its decoded content, if it contains only an envelope that any client has sent before. */
  known: KnownEnvelope | undefined
}

interface KnownEnvelope {
  caller: Caller
  edits: Payload['edits']
}

const KNOWN_CAPABILITIES = ['elicitation', 'sampling', 'roots', 'experimental', 'extensions'] as const
const WITHOUT_RETRY = { _meta: undefined, inputResponses: undefined, requestState: undefined }
const NO_CACHING: CacheHint = { ttlMs: 0, scope: 'private' }

/** Envelopes by their texts. Clients send the same one with each request. */
const envelopes = new Recent<KnownEnvelope>()

/** The envelope in params; undefined if they claim no revision. Throws a Fault if a key on the way is duplicated. */
export function envelopeIn(params: Params): Envelope | undefined {
  if (typeof params === 'string') return undefined
  if (duplicateKey(params, '_meta') !== undefined)
    throw new Fault('invalidRequest', 'The member "_meta" appears twice in the params')
  const meta = objectIn(params, '_meta')
  if (!meta) return undefined
  const { source, start, end } = meta
  const known = end - start > MAX_KEY ? undefined : envelopes.get(cut(source, start, end))
  if (known) return { meta, claim: known.caller.revision, known }
  if (duplicateKey(meta, PROTOCOL_VERSION) !== undefined)
    throw new Fault('invalidRequest', `The member "${PROTOCOL_VERSION}" appears twice in "_meta"`)
  const claim = value(meta, PROTOCOL_VERSION)
  return claim === undefined ? undefined : { meta, claim, known }
}

/** Reads a request that was classified as modern. Throws a Fault if its envelope is invalid. */
export function decodeRequest(
  { method, params }: Request,
  envelope: Envelope | undefined = envelopeIn(params),
): DecodedModernRequest {
  if (typeof params === 'string') throw new Fault('invalidEnvelope', 'params has to be an object with a _meta')
  if (!envelope) throw new Fault('invalidEnvelope', 'params._meta has to be an object with an envelope')
  const { meta, claim, known } = envelope
  const twice = duplicateKey(params) ?? (known ? undefined : duplicateKey(meta))
  if (twice !== undefined) throw new Fault('invalidRequest', `The member "${twice.slice(0, 64)}" appears twice`)
  const decoded: DecodedModernRequest = {
    method,
    params: edit(params, WITHOUT_RETRY),
    meta: known ? { ...meta, edits: known.edits } : withoutRequestKeys(meta),
    caller: known?.caller ?? decodeCaller(meta),
    progressToken: known ? undefined : decodeProgressToken(meta),
  }
  if (!known && claim === decoded.caller.revision) remember(meta, decoded)
  const responses = raw(params, 'inputResponses')
  const state = raw(params, 'requestState')
  if (responses !== undefined || state !== undefined) decoded.answers = { responses, state }
  return decoded
}

/** Remembers a `_meta` that contains only a valid envelope. */
function remember({ source, start, end }: Payload, { meta, caller, progressToken }: DecodedModernRequest): void {
  if (end - start > MAX_KEY || progressToken !== undefined || !isEmpty(meta)) return
  envelopes.set(cut(source, start, end), { caller: detachedCaller(caller), edits: meta.edits })
}

/**
 * A copy with texts of its own, for a request that stays open for long: the received message can be freed. Throws a Fault
 * if it is too long.
 */
export function detached({
  method,
  params,
  meta,
  caller,
  progressToken,
  answers,
}: DecodedModernRequest): DecodedModernRequest & { size: number } {
  const texts = [write(params), write(meta)] as const
  const { clientInfo, capabilities } = caller
  const size = texts[0].length + texts[1].length + capabilities.length + (clientInfo?.length ?? 0)
  if (size > MAX_SUBSCRIPTION)
    throw new Fault('invalidParams', `A request of ${method} may have at most ${MAX_SUBSCRIPTION / 1024} KiB`)
  return {
    method,
    params: parseObject(detach(texts[0])),
    meta: parseObject(detach(texts[1])),
    caller: detachedCaller(caller),
    progressToken: detach(progressToken),
    ...(answers && { answers: { responses: detach(answers.responses), state: detach(answers.state) } }),
    size,
  }
}

function detachedCaller(caller: Caller): Caller {
  return { ...caller, clientInfo: detach(caller.clientInfo), capabilities: detach(caller.capabilities) }
}

/** Reads a notification. 2026-07-28 requires no envelope for it; a valid one is used. */
export function decodeNotification(params: Params): Pick<DecodedModernRequest, 'params' | 'meta' | 'caller'> {
  const payload = typeof params === 'string' ? EMPTY : params
  const meta = objectIn(payload, '_meta') ?? EMPTY
  const capabilities = raw(meta, CLIENT_CAPABILITIES)
  const info = raw(meta, CLIENT_INFO)
  const short = capabilities?.startsWith('{') && capabilities.length <= MAX_CAPABILITIES ? capabilities : '{}'
  const sound = wrongCapability(short) === '' ? short : '{}'
  const caller: Caller = { revision: NEWEST_MODERN, capabilities: sound }
  if (info !== undefined && info.length <= MAX_CAPABILITIES && isImplementation(info)) caller.clientInfo = info
  return { params: edit(payload, { _meta: undefined }), meta: withoutRequestKeys(meta), caller }
}

/** A `server/discover` without an envelope, as if it had a minimal one. */
export function decodeBareDiscover(): DecodedModernRequest {
  const caller = { revision: NEWEST_MODERN, capabilities: '{}' }
  return { method: 'server/discover', params: EMPTY, meta: EMPTY, caller, progressToken: undefined }
}

function decodeCaller(meta: Payload): Caller {
  const caller: Caller = { revision: NEWEST_MODERN, capabilities: decodeCapabilities(meta) }
  const info = raw(meta, CLIENT_INFO)
  if (info !== undefined) {
    checkLength(info, CLIENT_INFO)
    if (!isImplementation(info)) throw invalid(`${CLIENT_INFO} has to be an object with a name and a version`)
    caller.clientInfo = info
  }
  if (has(meta, LOG_LEVEL)) {
    const level = value(meta, LOG_LEVEL)
    if (!isLogLevel(level)) throw invalid(`${LOG_LEVEL} has to be one of ${LOG_LEVELS.join(', ')}`)
    caller.logLevel = level
  }
  return caller
}

function decodeCapabilities(meta: Payload): Json {
  const capabilities = raw(meta, CLIENT_CAPABILITIES)
  if (capabilities === undefined || opens(meta, CLIENT_CAPABILITIES) !== '{') {
    const what = capabilities === undefined ? 'is missing' : 'has to be an object'
    throw invalid(`${CLIENT_CAPABILITIES} ${what}`, { missing: [CLIENT_CAPABILITIES] })
  }
  checkLength(capabilities, CLIENT_CAPABILITIES)
  const wrong = wrongCapability(capabilities)
  if (wrong !== '') throw invalid(`Capability "${wrong}" has to be an object`)
  return capabilities
}

/** These texts are stored and forwarded, so their length is bounded. */
function checkLength({ length }: Json, key: string): void {
  if (length > MAX_CAPABILITIES) throw invalid(`${key} is longer than ${MAX_CAPABILITIES / 1024} KiB`)
}

/** The first known capability that is not an object; empty if there is none. */
const wrongCapability = memoize((capabilities): string => {
  const declared = parseObject(capabilities)
  return KNOWN_CAPABILITIES.find((name) => has(declared, name) && !objectIn(declared, name)) ?? ''
})

function decodeProgressToken(meta: Payload): Json | undefined {
  const token = raw(meta, PROGRESS_TOKEN)
  if (token !== undefined && readId(token) === undefined)
    throw invalid('_meta.progressToken has to be a string or an integer')
  return token
}

function invalid(message: string, data: FaultOptions['data'] = {}): Fault {
  return new Fault('invalidEnvelope', message, { data })
}

/** The message for a reply to a request, which the client sent with this id. */
export function encodeReply(
  reply: Reply,
  id: Request['id'],
  { method, progressToken }: Pick<DecodedModernRequest, 'method' | 'progressToken'>,
): Encoded {
  const subscription = methodTraits(method).endless ? id : undefined
  switch (reply.kind) {
    case 'notification': {
      const progress = reply.method === 'notifications/progress' && progressToken !== undefined
      const params = progress ? edit(reply.params, { progressToken }) : reply.params
      const origin = subscription === undefined ? params : ofSubscription(params, subscription)
      return { text: notification(reply.method, write(origin)), origin }
    }
    case 'result': {
      const { type, server, cache = NO_CACHING } = reply
      const isCacheable = type === undefined && methodTraits(method).cacheable
      const stamped = stamp(reply.result, type ?? 'complete', server, isCacheable ? cache : undefined)
      const origin = subscription === undefined ? stamped : ofSubscription(stamped, subscription)
      return { text: result(id, origin), origin }
    }
    case 'input': {
      const origin = stamp(reply.result, 'input_required', reply.server)
      return { text: result(id, origin), origin }
    }
    case 'error':
      return { text: errorMessage(id, reply.error), origin: reply.error }
  }
}

/** Adds the members that only this revision has: the result's type, the server's Implementation and the cache hint. */
function stamp(result: Payload, type: string, server: Json | undefined, cache?: CacheHint): Payload {
  const edits: Record<string, Value> = { resultType: JSON.stringify(type) }
  if (server !== undefined) edits['_meta'] = withMeta(result, SERVER_INFO, server)
  if (cache) {
    edits['ttlMs'] = String(cache.ttlMs)
    edits['cacheScope'] = JSON.stringify(cache.scope)
  }
  return edit(result, edits)
}

/** Adds the id of the subscription. */
function ofSubscription(payload: Payload, id: Request['id']): Payload {
  return edit(payload, { _meta: withMeta(payload, SUBSCRIPTION_ID, id) })
}

/** The payload's `_meta` with one more key. */
function withMeta(payload: Payload, key: string, json: Json): Value {
  const meta = objectIn(payload, '_meta')
  return meta ? edit(meta, { [key]: json }) : `{${JSON.stringify(key)}:${json}}`
}
