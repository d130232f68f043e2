/** A message on either wire, as a witness is told, and as it is recorded. */
import { changesOf, type Made, receivedFor, type Towards } from './rules.js'
import type { Notification, Request, Response } from '../rpc/message.js'
import { describe, receivedText } from './received.js'
import { type Wire, wireOf } from '../rpc/source.js'
import type { MessageSeen, Sight, Witness } from './events.js'

/** A message, as a witness is told. */
export type MessageSight = Extract<Sight, { kind: 'message' }>

/**
 * A message on one of the wires, before it is told: whoever tells it fills in what it is. It is the only object that is
 * made for a message. `now` is its `performance.now()`, if it is known.
 */
export function sightOf(
  hop: MessageSeen['hop'],
  dir: MessageSeen['dir'],
  server: string | undefined,
  call: number | undefined,
  session: string | undefined,
  now: number | undefined,
): MessageSight {
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

/**
 * Tells a received message with its text, which remembers the number of the event, for the message that is made of it.
 * Fills in what the message is.
 */
export function tellArrived(witness: Witness, message: Request | Notification | Response, sight: MessageSight): void {
  describe(message, sight)
  const source = receivedText(message)
  const text = source && wireOf(source)
  if (text !== undefined) sight.bytes = bytesOf(text)
  const number = witness(sight, text)
  if (source) source.seen = number
}

/** Tells a message that is sent. Fills in its size, and what the bridge changed in what it was made of. */
export function tellSent(witness: Witness, text: Wire, sight: MessageSight, made: Made | undefined, to: Towards): void {
  sight.bytes = bytesOf(text)
  sight.changed = changesOf(sight.form, sight.method, made, to)
  sight.of = receivedFor(made)?.seen
  witness(sight, text)
}
