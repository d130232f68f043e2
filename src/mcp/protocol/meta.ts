/** Names and removes the keys of `_meta` that belong to the protocol itself (MCP 2026-07-28, basic/index, `_meta`), or to the bridge. */
import {
  type Edits,
  edit,
  isEmpty,
  keys,
  mapElements,
  objectIn,
  opens,
  type Payload,
  type Value,
} from '../../base/rpc/splice.js'

const RESERVED = 'io.modelcontextprotocol/'
/** Begins the keys that the bridge adds to results. */
export const OF_BRIDGE = 'io.github.mcp-bridge/'

/** Begins the URIs of what the bridge keeps of results that it has cut. */
export const KEPT_RESULT = 'mcp-bridge://results/'

export const PROTOCOL_VERSION = `${RESERVED}protocolVersion`
export const CLIENT_INFO = `${RESERVED}clientInfo`
export const CLIENT_CAPABILITIES = `${RESERVED}clientCapabilities`
export const LOG_LEVEL = `${RESERVED}logLevel`
export const SERVER_INFO = `${RESERVED}serverInfo`
export const SUBSCRIPTION_ID = `${RESERVED}subscriptionId`
/** Tasks of 2025-11-25: the task that a message belongs to. */
export const RELATED_TASK = `${RESERVED}related-task`
export const PROGRESS_TOKEN = 'progressToken'

/** The extension that replaces the tasks of 2025-11-25. */
export const TASKS_EXTENSION = `${RESERVED}tasks`
/** The extension for events (SEP-3415). A server may also announce it by a capability of its own, `events`. */
export const EVENTS_EXTENSION = `${RESERVED}events`

const NO_EDITS: Edits = {}
const remove = (...keys: string[]): Edits => Object.fromEntries(keys.map((key) => [key, undefined]))

const ENVELOPE = remove(
  PROTOCOL_VERSION,
  CLIENT_INFO,
  CLIENT_CAPABILITIES,
  LOG_LEVEL,
  SERVER_INFO,
  SUBSCRIPTION_ID,
  RELATED_TASK,
)
const REQUEST_ENVELOPE = { ...ENVELOPE, ...remove(PROGRESS_TOKEN) }

/** A request's `_meta` without the protocol's own keys and without the progress token. The rest is forwarded. */
export function withoutRequestKeys(meta: Payload): Payload {
  return edit(meta, REQUEST_ENVELOPE)
}

/** The `_meta` as a new value; undefined if it is empty. */
export function unlessEmpty(meta: Payload): Payload | undefined {
  return isEmpty(meta) ? undefined : meta
}

/** Whether a text may have the bridge's own keys. Letters may be written as escapes. */
const MAY_HAVE_OWN = /mcp-bridge|\\u/

/**
 * A result, or the params of a notification, without the protocol's own keys in `_meta`, and with these edits. What a server
 * sent (`of`) is also without the bridge's own keys, as `withoutOwn`.
 */
export function withoutEnvelope(payload: Payload, edits: Edits = NO_EDITS, of?: 'server'): Payload {
  const sent = of === 'server' && MAY_HAVE_OWN.test(payload.source.text) ? withoutOwn(payload) : payload
  const meta = objectIn(sent, '_meta')
  return edit(sent, meta ? { ...edits, _meta: unlessEmpty(edit(meta, ENVELOPE)) } : edits)
}

/** Whether a server's result, or the params of its notification, have keys of the bridge's own. */
export function hasOwnKeys(payload: Payload): boolean {
  return MAY_HAVE_OWN.test(payload.source.text) && withoutOwn(payload) !== payload
}

/** Members of results and questions in which others have a `_meta`: blocks, resources, messages, the result of a task. */
const HOLDERS = ['content', 'contents', 'messages', 'params', 'resource', 'resources', 'result', 'skill']
/** The member with questions, by keys of the server. */
const QUESTIONS = 'inputRequests'

/** What a server sent, without the bridge's own keys in any `_meta`. The data of a tool stays as it is. */
function withoutOwn(sent: Payload): Payload {
  const edits: Record<string, Value | undefined> = {}
  const meta = objectIn(sent, '_meta')
  const allowed = meta && withoutOwnKeys(meta)
  if (allowed !== meta) edits['_meta'] = allowed && unlessEmpty(allowed)
  for (const key of HOLDERS) {
    const changed = opens(sent, key) === '[' ? mapElements(sent, key, withoutOwn) : holderIn(sent, key)
    if (changed) edits[key] = changed
  }
  const questions = objectIn(sent, QUESTIONS)
  const changed =
    questions &&
    keys(questions).flatMap((key) => {
      const question = holderIn(questions, key)
      return question ? [[key, question] as const] : []
    })
  if (questions && changed?.length) edits[QUESTIONS] = edit(questions, Object.fromEntries(changed))
  return edit(sent, edits)
}

/** The object under `key` without the bridge's own keys; undefined if it has none. */
function holderIn(sent: Payload, key: string): Payload | undefined {
  const held = objectIn(sent, key)
  const allowed = held && withoutOwn(held)
  return allowed === held ? undefined : allowed
}

/** The `_meta` of a server without the bridge's own keys. */
export function withoutOwnKeys(meta: Payload): Payload {
  const own = keys(meta).filter((key) => key.startsWith(OF_BRIDGE))
  return own.length === 0 ? meta : edit(meta, remove(...own))
}
