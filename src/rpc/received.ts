/** Describes a received message, for those who watch messages. */
import { idValue, type Notification, type Request, type Response } from './message.js'
import { type Source, weightOf } from './source.js'

/** What a received message is. The id is undefined in a notification, and in an error without one. */
export interface ReceivedMessage {
  form: 'request' | 'notification' | 'result' | 'error'
  method: string | undefined
  id: string | number | undefined
  bytes: number
}

/** Describes a message without its payload. */
export function receivedMessage(message: Request | Notification | Response): ReceivedMessage {
  const source = receivedText(message)
  const bytes = source ? weightOf(source) : 0
  if (message.kind === 'notification') return { form: message.kind, method: message.method, id: undefined, bytes }
  const id = message.id === undefined ? undefined : idValue(message.id)
  if (message.kind === 'request') return { form: message.kind, method: message.method, id, bytes }
  return { form: message.outcome.kind, method: undefined, id, bytes }
}

/** The text that a message was read from; undefined if the bridge has made the message. */
export function receivedText(message: Request | Notification | Response): Source | undefined {
  return message.kind === 'response' ? message.outcome.source : message.source
}
