/** Tells a witness a message that has arrived, on either wire. */
import type { Notification, Request, Response } from '../rpc/message.js'
import { receivedMessage, receivedText } from '../rpc/received.js'
import { wireOf } from '../rpc/source.js'
import type { MessageSeen, Sight, Witness } from './seen.js'

/** Where a message has arrived, and what it belongs to. */
export interface Arrival extends Pick<MessageSeen, 'hop' | 'http'> {
  server: string
  call: string | undefined
  session: string | undefined
  /** `performance.now()` of the message, if it is known. */
  now: number | undefined
}

/**
 * Tells a witness a received message with its text. The text remembers the number of the event, for the message that is
 * made of it. Returns the value of the message's id.
 */
export function tellArrived(
  witness: Witness,
  message: Request | Notification | Response,
  { hop, http, server, call, session, now }: Arrival,
): string | number | undefined {
  const { form, method, id, bytes } = receivedMessage(message)
  const source = receivedText(message)
  const sight: Sight = {
    kind: 'message',
    server,
    call,
    continues: undefined,
    session,
    now,
    hop,
    dir: 'in',
    form,
    method,
    id,
    bytes,
    http,
    changed: undefined,
    of: undefined,
  }
  const number = witness(sight, source && wireOf(source))
  if (source) source.seen = number
  return id
}
