/** The codec of the legacy era towards clients: reads `initialize` and requests, writes replies. */

import { Fault } from '../../base/fault/fault.js'
import { MAX_CAPABILITIES } from '../../base/limits/constants.js'
import { error as errorMessage, type Id, notification, type Request, readId, result } from '../../base/rpc/message.js'
import { detach } from '../../base/rpc/source.js'
import {
  EMPTY,
  edit,
  isEmpty,
  type Json,
  mapElements,
  objectIn,
  type Payload,
  parseObject,
  raw,
  stringUnder,
  value,
  write,
} from '../../base/rpc/splice.js'
import { ECHOED } from '../../base/texts/printable.js'
import { foreignIn } from './announced.js'
import type { Call, Reply, RpcError } from './call.js'
import { forwardedCapabilities, reportsRoots } from './capabilities.js'
import { type Downlevel, downlevelNotification, downlevelResult } from './downlevel/downlevel.js'
import type { Encoded } from './encoded.js'
import { type LegacyRevision, legacyRevision, NEWEST_LEGACY } from './eras.js'
import { isImplementation } from './implementation.js'
import {
  EVENTS_EXTENSION,
  PROGRESS_TOKEN,
  RELATED_TASK,
  TASKS_EXTENSION,
  withoutEnvelope,
  withoutRequestKeys,
} from './meta.js'
import { namesMissingKeys } from './modern-server.js'
import { declaredBy } from './offered.js'

/** What a client states in `initialize`. */
export interface Opening {
  /** The revision of the session: the one that the client asked for, if the bridge supports it. */
  revision: LegacyRevision
  clientInfo: Json | undefined
  /** ClientCapabilities of the modern schema. */
  capabilities: Json
  reportsRoots: boolean
}

/** A request of a session, decoded. */
export interface DecodedSessionRequest {
  params: Payload
  meta: Payload
  /** The client's own token, as text, to be put back into every progress notification. */
  progressToken: Json | undefined
}

const OF_A_MODERN_RESULT = { resultType: undefined, ttlMs: undefined, cacheScope: undefined }
/** A hint to the client. Only servers of 2025-11-25 with tasks use it. */
const IMMEDIATE_RESPONSE = 'io.modelcontextprotocol/model-immediate-response'
const CAPABILITIES = ['tools', 'prompts', 'resources', 'logging', 'completions'] as const

/**
 * Reads `initialize` (MCP 2025-11-25, basic/lifecycle). Throws a Fault if `protocolVersion` is missing or a text is too
 * long.
 */
export function decodeInitialize({ params }: Request): Opening {
  const payload = typeof params === 'string' ? EMPTY : params
  const asked = value(payload, 'protocolVersion')
  if (typeof asked !== 'string') throw new Fault('invalidParams', 'params.protocolVersion has to be a string')
  const capabilities = boundedObject(payload, 'capabilities') ?? '{}'
  return {
    revision: legacyRevision(asked) ?? NEWEST_LEGACY,
    clientInfo: detach(boundedObject(payload, 'clientInfo')),
    capabilities: detach(forwardedCapabilities(capabilities)),
    reportsRoots: reportsRoots(capabilities),
  }
}

/** An object that is stored as long as the session. Throws a Fault if it is too long. */
function boundedObject(params: Payload, key: 'clientInfo' | 'capabilities'): Json | undefined {
  const text = objectIn(params, key) && raw(params, key)
  if (text !== undefined && text.length > MAX_CAPABILITIES)
    throw new Fault('invalidParams', `params.${key} is longer than ${MAX_CAPABILITIES / 1024} KiB`)
  return text
}

/**
 * The answer to `initialize`, made from a DiscoverResult, and the capabilities that it offers, without those that the
 * client's revision does not define. `serverInfo` is for servers that state none.
 */
export function initializeResult(
  { result: discovered, server }: Reply & { kind: 'result' },
  to: Downlevel,
  serverInfo: Json,
): { answer: Json; offered: Payload } {
  const offered = declaredBy(discovered)
  const capabilities: Record<string, Json | undefined> = {}
  for (const name of CAPABILITIES) if (objectIn(offered, name)) capabilities[name] = raw(offered, name)
  const extensions = objectIn(offered, 'extensions')
  if (to.tasks && capabilities['tools'] !== undefined)
    capabilities['tasks'] = '{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}'
  const carried = extensions && edit(extensions, { [TASKS_EXTENSION]: undefined, [EVENTS_EXTENSION]: undefined })
  if (carried && !isEmpty(carried)) capabilities['extensions'] = write(carried)
  const offers = write(edit(foreignIn(offered), capabilities))
  const answer = parseObject(
    write(
      edit(EMPTY, {
        protocolVersion: JSON.stringify(to.revision),
        capabilities: offers,
        serverInfo: server !== undefined && isImplementation(server) ? server : serverInfo,
        instructions: raw(discovered, 'instructions'),
        _meta: raw(discovered, '_meta'),
      }),
    ),
  )
  return { answer: write(downlevelResult('initialize', EMPTY, answer, to)), offered: parseObject(offers) }
}

/** Reads a request of a session. Throws a Fault if params or the progress token are invalid. */
export function decodeRequest({ params }: Request): DecodedSessionRequest {
  if (params === 'not an object') throw new Fault('invalidParams', 'params has to be an object')
  if (params === 'absent') return { params: EMPTY, meta: EMPTY, progressToken: undefined }
  const meta = objectIn(params, '_meta')
  if (!meta) return { params: edit(params, { _meta: undefined }), meta: EMPTY, progressToken: undefined }
  const progressToken = raw(meta, PROGRESS_TOKEN)
  if (progressToken !== undefined && readId(progressToken) === undefined)
    throw new Fault('invalidParams', '_meta.progressToken has to be a string or an integer')
  return {
    params: edit(params, { _meta: undefined }),
    meta: edit(withoutRequestKeys(meta), { [IMMEDIATE_RESPONSE]: undefined }),
    progressToken,
  }
}

/**
 * The message for a reply to the request `id`. `task` is the id of the task whose result it is. Throws a Fault if no
 * client could read the reply.
 */
export function encodeReply(
  reply: Exclude<Reply, { kind: 'input' }>,
  id: Id,
  call: Call,
  progressToken: Json | undefined,
  to: Downlevel,
  task?: string,
): Encoded {
  switch (reply.kind) {
    case 'notification': {
      const restored =
        reply.method === 'notifications/progress' && progressToken !== undefined
          ? edit(reply.params, { progressToken })
          : reply.params
      const origin = downlevelNotification(reply.method, restored, to)
      return { text: notification(reply.method, write(origin)), origin }
    }
    case 'result': {
      if (reply.type !== undefined)
        throw new Fault(
          'upstreamProtocol',
          `The server answered with a result of the unsupported type "${reply.type.slice(0, 64)}"`,
        )
      const stripped = withoutEnvelope(reply.result, OF_A_MODERN_RESULT)
      const adapted = downlevelResult(call.method, call.params, stripped, to)
      const listed = to.tasks && call.method === 'tools/list' ? withTaskSupport(adapted) : adapted
      const origin = task === undefined ? listed : ofTask(adapted, task)
      return { text: result(id, origin), origin }
    }
    case 'error': {
      const origin = legacyError(call, reply.error, to.revision)
      return { text: errorMessage(id, origin), origin }
    }
  }
}

/** A result with the id of its task in `_meta`. */
function ofTask(payload: Payload, taskId: string): Payload {
  const meta = objectIn(payload, '_meta') ?? EMPTY
  return edit(payload, { _meta: edit(meta, { [RELATED_TASK]: `{"taskId":${JSON.stringify(taskId)}}` }) })
}

/** The list with a mark on each tool: calls of it can be tasks, which the bridge provides. */
function withTaskSupport(list: Payload): Payload {
  const tools = mapElements(list, 'tools', (tool) => edit(tool, { execution: '{"taskSupport":"optional"}' }))
  return tools === undefined ? list : edit(list, { tools })
}

/** An error of the modern era in the form for a legacy client. Codes that its revision does not define are replaced. */
export function legacyError(
  call: Pick<Call, 'method' | 'params' | 'caller'>,
  error: RpcError,
  revision: LegacyRevision,
): RpcError {
  const { code, message, data, from } = error
  const details = data?.startsWith('{') ? parseObject(data) : EMPTY
  const failure = (more: Record<string, Json | undefined> = {}): RpcError => {
    const text = write(edit(details, more))
    return { code: -32603, message, data: text === '{}' ? data : text, from }
  }
  if (code === -32602) {
    if (call.method === 'resources/read' && isMissing(call.params, message, details))
      return { code: -32002, message, data: write(edit(details, addressOf(call.params))), from }
    return namesMissingKeys(edit(EMPTY, { data })) ? failure() : error
  }
  if (code === -32042) {
    const shown = revision === '2025-11-25' && canOpenAddresses(call.caller.capabilities)
    return shown ? error : { code: -32603, message, data: `{"upstreamCode":${code}}`, from }
  }
  if (code === -32020 || code === -32021 || code === -32022) return failure()
  if (code <= -32020 && code >= -32099) return failure({ upstreamCode: String(code) })
  return error
}

/** Whether an error says that the resource does not exist. Modern servers use the code for any invalid argument. */
function isMissing(params: Payload, message: string, data: Payload): boolean {
  const uri = stringUnder(params, 'uri')
  if (typeof uri !== 'string') return false
  return value(data, 'uri') === uri || (message.includes(uri) && /not found/i.test(message))
}

/** The URI of the request, if it is at most ECHOED characters. */
function addressOf(params: Payload): { uri?: Json | undefined } {
  const uri = raw(params, 'uri')
  return uri === undefined || uri.length > ECHOED ? {} : { uri }
}

function canOpenAddresses(capabilities: Json): boolean {
  const elicitation = objectIn(parseObject(capabilities), 'elicitation')
  return elicitation !== undefined && objectIn(elicitation, 'url') !== undefined
}
