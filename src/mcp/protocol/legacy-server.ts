/** The codec of the legacy era towards servers: writes requests without an envelope, reads results without a type, and makes an answer to `server/discover` of that to `initialize`. */

import { Fault } from '../../base/fault/fault.js'
import type { Response } from '../../base/rpc/message.js'
import {
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
  value,
  write,
} from '../../base/rpc/splice.js'
import { ECHOED, printable } from '../../base/texts/printable.js'
import { foreignIn } from './announced.js'
import type { Call, Final, RpcError } from './call.js'
import { isLater, type LegacyRevision, legacyRevision, looksModern, MODERN, NEWEST_LEGACY, traits } from './eras.js'
import { lift } from './lift.js'
import { EVENTS_EXTENSION, TASKS_EXTENSION } from './meta.js'
import { CALL_TOOL, methodTraits } from './methods.js'
import { declaredBy } from './offered.js'
import { offersTasks } from './tasks.js'

const SUPPORTED = [...MODERN, ...Object.keys(traits)]

/** What a server states in its answer to `initialize`. */
export interface Handshake {
  revision: LegacyRevision
  capabilities: Payload
  /** Implementation of the server, unchanged. */
  serverInfo: Json | undefined
  instructions: Json | undefined
}

/**
 * The negotiated revision, if the answer to `initialize` opens a session; undefined otherwise. An answer with a modern
 * revision opens none. An unknown revision counts as the newest legacy one; the client decides whether to accept it.
 */
export function negotiated({ outcome: { kind, payload } }: Response): LegacyRevision | undefined {
  const result = kind === 'result' ? payload : undefined
  const version = result && value(result, 'protocolVersion')
  if (!result || (typeof version === 'string' && looksModern(version))) return undefined
  return legacyRevision(version) ?? NEWEST_LEGACY
}

/** Params of `initialize`. */
export function initializeParams(revision: string, clientInfo: Json, capabilities: Json): Json {
  return `{"protocolVersion":${JSON.stringify(revision)},"capabilities":${capabilities},"clientInfo":${clientInfo}}`
}

/** Params of a request to a legacy server. */
export function encodeParams(call: Call, revision: LegacyRevision, progressToken: number | undefined): Payload {
  let params = call.params
  const meta = progressToken === undefined ? call.meta : edit(call.meta, { progressToken: String(progressToken) })
  if (!isEmpty(meta)) params = edit(params, { _meta: meta })
  if (call.method === CALL_TOOL) params = edit(params, { task: undefined })
  if (call.method === 'completion/complete' && !traits[revision].completionContext)
    params = edit(params, { context: undefined })
  return params
}

/**
 * A server's answer as a Reply. Throws a Fault if it is not a valid answer to this method. `lifted` turns the result
 * into the bridge's form: `lift`, or a function that caches what `lift` returned.
 */
export function decodeReply(call: Call, { outcome }: Response, server: Json | undefined, lifted = lift): Final {
  if (outcome.kind === 'error') return { kind: 'error', error: decodeError(call, outcome.payload ?? EMPTY) }
  const result = outcome.payload
  if (!result) {
    if (methodTraits(call.method).empty) return { kind: 'result', result: EMPTY, server }
    throw new Fault(
      'upstreamProtocol',
      `The server answered ${printable(call.method, ECHOED)} with a result that is not an object`,
    )
  }
  return { kind: 'result', result: lifted(call.method, result), server }
}

/**
 * An error in the form for a modern client. Codes that the modern revision defines differently or not at all are
 * replaced, and `upstreamCode` in the data has the server's code (MCP 2026-07-28, basic/index, error codes).
 */
function decodeError(call: Call, error: Payload): RpcError {
  const code = value(error, 'code')
  const message = value(error, 'message')
  const data = raw(error, 'data')
  if (typeof code !== 'number' || !Number.isInteger(code) || typeof message !== 'string') {
    return {
      code: -32603,
      message: typeof message === 'string' ? message : 'The server answered with a malformed error',
      from: error,
    }
  }
  const foreign = () => ({ code: -32603, message, data: withMember(data, 'upstreamCode', String(code)), from: error })
  if (call.method === 'resources/read' && (code === -32002 || code === -32602)) {
    const uri = raw(call.params, 'uri') ?? 'null'
    return { code: -32602, message, data: uri.length > ECHOED ? data : withMember(data, 'uri', uri), from: error }
  }
  if (code === -32002) return foreign()
  // The data is dropped: it has URLs that a person may see only in an elicitation.
  if (code === -32042)
    return { code: -32603, message, data: withMember(undefined, 'upstreamCode', String(code)), from: error }
  if (code <= -32020 && code >= -32099) return foreign()
  return { code, message, data, from: error }
}

/** The data of an error with one more member; unchanged if it already has the member. */
function withMember(data: Json | undefined, key: string, json: Json): Json {
  if (!data?.startsWith('{')) return data === undefined ? `{"${key}":${json}}` : `{"${key}":${json},"data":${data}}`
  const object = parseObject(data)
  return has(object, key) ? data : write(edit(object, { [key]: json }))
}

/** Reads the answer to `initialize`. Throws a Fault if the server and the bridge have no revision in common. */
export function decodeHandshake(result: Payload, revision: LegacyRevision | undefined): Handshake {
  if (revision === undefined) throw unsupported(value(result, 'protocolVersion') ?? null)
  return {
    revision,
    capabilities: declaredBy(result),
    serverInfo: objectIn(result, 'serverInfo') && raw(result, 'serverInfo'),
    instructions: typeof value(result, 'instructions') === 'string' ? raw(result, 'instructions') : undefined,
  }
}

/** The Fault for a server that supports only later revisions than the bridge. */
export function speaksOnly(later: readonly string[]): Fault {
  const offered = printable(later.join(', '), ECHOED)
  return new Fault(
    'upstreamIncompatible',
    `The server speaks only ${offered}, and this version of the bridge knows revisions up to ${MODERN[0]}: update mcp-bridge, or have the server also support one of them`,
    { data: { offered, supported: SUPPORTED } },
  )
}

function unsupported(version: unknown): Fault {
  const supported = SUPPORTED
  if (version === null)
    return new Fault('upstreamIncompatible', 'The server answered initialize without a protocolVersion', {
      data: { offered: null, supported },
    })
  if (isLater(version)) return speaksOnly([version])
  const offered = printable(typeof version === 'string' ? version : JSON.stringify(version), ECHOED)
  return new Fault(
    'upstreamIncompatible',
    `The server offers protocol version "${offered}", which the bridge does not support`,
    { data: { offered, supported } },
  )
}

/** The abilities of the transport to the server, which limit what the bridge may offer to clients. */
export interface TransportAbilities {
  /** Notifications that belong to no call can be received. */
  receives: boolean
  /** Tasks of the server are forwarded. */
  tasks?: boolean
}

/** The answer to `server/discover`, made from the handshake with a legacy server. */
export function discoverResult(
  { capabilities, serverInfo, instructions, revision }: Handshake,
  channels: TransportAbilities,
): Payload {
  const offered: Record<string, Json> = {}
  for (const name of ['tools', 'prompts', 'resources'] as const) {
    const capability = objectIn(capabilities, name)
    if (!capability) continue
    offered[name] = channels.receives
      ? write(capability)
      : write(edit(capability, { listChanged: undefined, subscribe: undefined }))
  }
  if (objectIn(capabilities, 'logging')) offered['logging'] = '{}'
  if (offersCompletions(capabilities, revision)) offered['completions'] = raw(capabilities, 'completions') ?? '{}'
  const tasks = channels.tasks === true && offersTasks(capabilities)
  const extensions = objectIn(capabilities, 'extensions') ?? (tasks ? EMPTY : undefined)
  if (extensions) {
    const carried = { [TASKS_EXTENSION]: tasks ? '{}' : undefined, [EVENTS_EXTENSION]: undefined }
    offered['extensions'] = write(edit(extensions, carried))
  }
  return edit(EMPTY, {
    supportedVersions: JSON.stringify(MODERN),
    capabilities: write(edit(foreignIn(capabilities), offered)),
    serverInfo,
    instructions,
  })
}

function offersCompletions(capabilities: Payload, revision: LegacyRevision): boolean {
  if (traits[revision].completionsCapability) return opens(capabilities, 'completions') === '{'
  return opens(capabilities, 'prompts') === '{' || opens(capabilities, 'resources') === '{'
}

/** Whether the server's capabilities include a method. Methods of extensions need no capability. */
export function offers(
  { capabilities, revision }: Pick<Handshake, 'capabilities' | 'revision'>,
  method: string,
): boolean {
  const { capability } = methodTraits(method)
  if (capability === undefined) return true
  if (capability === 'completions') return offersCompletions(capabilities, revision)
  return opens(capabilities, capability) === '{'
}
