/** Records messages on either wire: received and sent ones. */

import {
  headOf,
  idValue,
  type MessageHead,
  type Notification,
  type Request,
  type Response,
} from '../../base/rpc/message.js'
import { type JsonSource, type Wire, wireOf } from '../../base/rpc/source.js'
import type { MessageOrigin } from '../../mcp/protocol/encoded.js'
import type { Era } from '../../mcp/protocol/eras.js'
import type { MessageBody, RecordEvent, TraceEvent } from './events.js'
import { changesOf, receivedFor, type Towards } from './rules.js'

/** A message, before it is recorded. */
export type MessageTrace = Extract<TraceEvent, { kind: 'message' }>

/** The kind of a received message. The id is undefined in a notification, and in an error without one. */
export type ReceivedMessage = Pick<MessageBody, 'form' | 'method' | 'id'>

/** The receiver of messages to a client of an era. */
export const TOWARDS: Readonly<Record<Era, Towards>> = { modern: 'modern client', legacy: 'legacy client' }

/**
 * A message before it is recorded: the caller fills in form, method and id. It is the only object allocated for a message.
 * `now` is its `performance.now()`, if known.
 */
export function traceOf(
  hop: MessageBody['hop'],
  dir: MessageBody['dir'],
  server: string | undefined,
  call: number | undefined,
  session: string | undefined,
  now: number | undefined,
): MessageTrace {
  return {
    kind: 'message',
    server,
    call,
    session,
    now,
    hop,
    dir,
    form: 'notification',
    method: undefined,
    id: undefined,
    bytes: 0,
    http: undefined,
    changed: undefined,
    of: undefined,
  }
}

/** The bytes that a text takes on the wire. */
export function bytesOf(text: Wire): number {
  return typeof text === 'string'
    ? Buffer.byteLength(text)
    : text.reduce((sum, piece) => sum + (typeof piece === 'string' ? Buffer.byteLength(piece) : piece.length), 0)
}

/** Fills in form, method and id from an encoded message. Returns undefined if they cannot be read. */
export function fillIn(trace: MessageTrace, text: Wire): MessageHead | undefined {
  const head = headOf(text)
  if (!head) return undefined
  trace.form = head.form
  trace.method = head.method
  trace.id = head.id === undefined ? undefined : idValue(head.id)
  return head
}

/** Fills in form, method and id from a received message. */
export function describe(message: Request | Notification | Response, into: ReceivedMessage): void {
  const isResponse = message.kind === 'response'
  into.form = isResponse ? message.outcome.kind : message.kind
  into.method = isResponse ? undefined : message.method
  into.id = message.kind === 'notification' || message.id === undefined ? undefined : idValue(message.id)
}

/** The received text of a message; undefined if the bridge made the message. */
function receivedText(message: Request | Notification | Response): JsonSource | undefined {
  return message.kind === 'response' ? message.outcome.source : message.source
}

/**
 * Records a received message with its text. Its source keeps the number of the event, so that the event of the forwarded
 * message can refer to it.
 */
export function recordReceived(
  record: RecordEvent,
  message: Request | Notification | Response,
  trace: MessageTrace,
): void {
  describe(message, trace)
  const source = receivedText(message)
  const text = source && wireOf(source)
  if (text !== undefined) trace.bytes = bytesOf(text)
  const number = record(trace, text)
  if (source) source.event = number
}

/** Records a sent message, with its size and its changes compared with the message that it forwards. */
export function recordSent(
  record: RecordEvent,
  text: Wire,
  trace: MessageTrace,
  origin: MessageOrigin | undefined,
  to: Towards,
): void {
  trace.bytes = bytesOf(text)
  trace.changed = changesOf(trace.form, trace.method, origin, to)
  trace.of = receivedFor(origin)?.event
  record(trace, text)
}
