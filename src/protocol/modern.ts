/** The codec of the modern era, 2026-07-28: requests that carry their envelope, results that carry their type. */
import { error as errorMessage, notification, type Request, readId, result } from '../rpc/message.js'
import { remembering } from '../rpc/remembering.js'
import type { Wire } from '../rpc/source.js'
import {
  duplicateKey,
  EMPTY,
  edit,
  has,
  type Json,
  objectIn,
  opens,
  type Payload,
  parseObject,
  raw,
  value,
  wire,
  write,
} from '../rpc/splice.js'
import type { CacheHint, Caller, Reply } from './call.js'
import { NEWEST_MODERN } from './eras.js'
import { Fault } from './fault.js'
import {
  CLIENT_CAPABILITIES,
  CLIENT_INFO,
  LOG_LEVEL,
  PROGRESS_TOKEN,
  PROTOCOL_VERSION,
  SERVER_INFO,
  withoutRequestKeys,
} from './meta.js'
import { isLogLevel, LOG_LEVELS, methodTraits } from './methods.js'

/** What a request says, taken apart. */
export interface Decoded {
  method: string
  params: Payload
  meta: Payload
  caller: Caller
  /** The client's own token, as text, to be put back on every progress notification. */
  progressToken: Json | undefined
}

const KNOWN_CAPABILITIES = ['elicitation', 'sampling', 'roots', 'experimental', 'extensions'] as const
const WITHOUT_RETRY = { _meta: undefined, inputResponses: undefined, requestState: undefined }
const NO_CACHING: CacheHint = { ttlMs: 0, scope: 'private' }

/** Reads a request that has been classified as modern. Throws a Fault when its envelope is malformed. */
export function decodeRequest({ method, params }: Request): Decoded {
  if (typeof params === 'string') throw new Fault('invalidEnvelope', 'params has to be an object with a _meta')
  const meta = objectIn(params, '_meta')
  if (!meta) throw new Fault('invalidEnvelope', 'params._meta has to be an object')
  const twice = duplicateKey(params) ?? duplicateKey(meta)
  if (twice !== undefined) throw new Fault('invalidRequest', `The member "${twice.slice(0, 64)}" stands twice`)
  return {
    method,
    params: edit(params, WITHOUT_RETRY),
    meta: withoutRequestKeys(meta),
    caller: decodeCaller(meta),
    progressToken: decodeProgressToken(meta),
  }
}

/** A `server/discover` without envelope, as if it had the smallest one. */
export function decodeBareDiscover(): Decoded {
  const caller = { revision: NEWEST_MODERN, capabilities: '{}' }
  return { method: 'server/discover', params: EMPTY, meta: EMPTY, caller, progressToken: undefined }
}

function decodeCaller(meta: Payload): Caller {
  const caller: Caller = { revision: NEWEST_MODERN, capabilities: decodeCapabilities(meta) }
  const info = raw(meta, CLIENT_INFO)
  if (info !== undefined) {
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
    throw invalid(`${CLIENT_CAPABILITIES} ${what}`, { missing: JSON.stringify([CLIENT_CAPABILITIES]) })
  }
  const wrong = wrongCapability(capabilities)
  if (wrong !== '') throw invalid(`Capability "${wrong}" has to be an object`)
  return capabilities
}

/** The first known capability that is no object; empty where there is none. */
const wrongCapability = remembering((capabilities): string => {
  const declared = parseObject(capabilities)
  return KNOWN_CAPABILITIES.find((name) => has(declared, name) && !objectIn(declared, name)) ?? ''
})

const isImplementation = remembering((info): boolean => {
  const implementation = info.startsWith('{') ? parseObject(info) : EMPTY
  return typeof value(implementation, 'name') === 'string' && typeof value(implementation, 'version') === 'string'
})

function decodeProgressToken(meta: Payload): Json | undefined {
  const token = raw(meta, PROGRESS_TOKEN)
  if (token !== undefined && readId(token) === undefined)
    throw invalid('_meta.progressToken has to be a string or an integer')
  return token
}

function invalid(message: string, data?: Record<string, Json>): Fault {
  return new Fault('invalidEnvelope', message, data ? { data } : {})
}

/** The message that says a reply to the client that sent `decoded` under `id`. */
export function encodeReply(reply: Reply, id: Request['id'], { method, progressToken }: Decoded): Wire {
  switch (reply.kind) {
    case 'notification':
      return notification(
        reply.method,
        write(
          reply.method === 'notifications/progress' && progressToken !== undefined
            ? edit(reply.params, { progressToken })
            : reply.params,
        ),
      )
    case 'result':
      return result(id, wire(stamp(reply, method)))
    case 'error':
      return errorMessage(id, reply.error)
  }
}

/** Puts on what only this revision has: the type of the result, who answers, how long it may be kept. */
function stamp({ result, server, cache = NO_CACHING }: Reply & { kind: 'result' }, method: string): Payload {
  const edits: Record<string, Json> = { resultType: '"complete"' }
  if (methodTraits(method).cacheable) {
    edits['ttlMs'] = String(cache.ttlMs)
    edits['cacheScope'] = JSON.stringify(cache.scope)
  }
  if (server !== undefined) {
    const meta = objectIn(result, '_meta')
    edits['_meta'] = meta ? write(edit(meta, { [SERVER_INFO]: server })) : `{${JSON.stringify(SERVER_INFO)}:${server}}`
  }
  return edit(result, edits)
}

/** Params of a `server/discover` of the bridge's own, to find out what a server speaks. */
export function discoverParams(clientInfo: Json): Json {
  return `{"_meta":{"${PROTOCOL_VERSION}":"${NEWEST_MODERN}","${CLIENT_INFO}":${clientInfo},"${CLIENT_CAPABILITIES}":{}}}`
}
