/** Names and removes the keys of `_meta` that belong to the protocol itself (MCP 2026-07-28, basic/index, `_meta`). */
import { type Edits, edit, isEmpty, objectIn, type Payload } from '../rpc/splice.js'

const RESERVED = 'io.modelcontextprotocol/'

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

/** A result, or the params of a notification, without the protocol's own keys in `_meta`, and with these edits. */
export function withoutEnvelope(payload: Payload, edits: Edits = NO_EDITS): Payload {
  const meta = objectIn(payload, '_meta')
  return edit(payload, meta ? { ...edits, _meta: unlessEmpty(edit(meta, ENVELOPE)) } : edits)
}
