/** Describes a received message, for the recorder. */
import { idValue, type Notification, type Request, type Response } from '../rpc/message.js'
import type { JsonSource } from '../rpc/source.js'

/** What a received message is. The id is undefined in a notification, and in an error without one. */
export interface ReceivedMessage {
  form: 'request' | 'notification' | 'result' | 'error'
  method?: string | undefined
  id?: string | number | undefined
}

/** Fills in what a message is, without its payload. */
export function describe(message: Request | Notification | Response, into: ReceivedMessage): void {
  const isResponse = message.kind === 'response'
  into.form = isResponse ? message.outcome.kind : message.kind
  into.method = isResponse ? undefined : message.method
  into.id = message.kind === 'notification' || message.id === undefined ? undefined : idValue(message.id)
}

/** The received text of a message; undefined if the bridge has made the message. */
export function receivedText(message: Request | Notification | Response): JsonSource | undefined {
  return message.kind === 'response' ? message.outcome.source : message.source
}
