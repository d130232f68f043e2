/** Describes a received message, for those who watch messages. */
import { idValue, type Notification, type Request, type Response } from './message.js'
import { type Wire, weightOf, wireOf } from './source.js'

/** What kind of message it is. The id is undefined in a notification, and in an error without one. */
export interface ReceivedHead {
  form: 'request' | 'notification' | 'result' | 'error'
  method: string | undefined
  id: string | number | undefined
}

/** What a received message is. */
export interface ReceivedMessage {
  head: ReceivedHead
  bytes: number
  /** The object that its payload was read from; undefined if it has none. */
  source: Request['source'] | Response['outcome']['source']
  /** The message as received. */
  text: Wire | undefined
}

/** Describes a message without its payload. */
export function receivedHead(message: Request | Notification | Response): ReceivedHead {
  return {
    form: message.kind === 'response' ? message.outcome.kind : message.kind,
    method: message.kind === 'response' ? undefined : message.method,
    id: message.kind === 'notification' || message.id === undefined ? undefined : idValue(message.id),
  }
}

/** Describes a message. */
export function receivedMessage(message: Request | Notification | Response): ReceivedMessage {
  const source = message.kind === 'response' ? message.outcome.source : message.source
  return {
    head: receivedHead(message),
    bytes: source ? weightOf(source) : 0,
    source,
    text: source && wireOf(source),
  }
}
