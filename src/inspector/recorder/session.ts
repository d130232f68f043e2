/** Records the messages outside of calls in a session of a legacy client with a legacy server. */

import { type Id, idKey, type Notification, parseMessage, type Response } from '../../base/rpc/message.js'
import { join, sourceOf, type Wire } from '../../base/rpc/source.js'
import { type SessionRecorder, UNRECORDED } from '../../mcp/ports/recorder.js'
import { cancelledId } from '../../mcp/protocol/cancelled.js'
import type { MessageOrigin } from '../../mcp/protocol/encoded.js'
import type { RecordEvent } from './events.js'
import { fillIn, recordReceived, recordSent, TOWARDS, traceOf } from './message.js'
import { RecordedQuestions } from './questions.js'

export class RecordedSession implements SessionRecorder {
  readonly #record: RecordEvent
  readonly #server: string
  readonly #session: string | undefined
  /** By the keys of their ids. */
  readonly #questions: RecordedQuestions

  constructor(record: RecordEvent, server: string, session: string | undefined) {
    this.#record = record
    this.#server = server
    this.#session = session
    this.#questions = new RecordedQuestions(record, server)
  }

  sent(text: Wire, call: number | undefined, origin: MessageOrigin | undefined): void {
    const trace = traceOf('client', 'out', this.#server, call, this.#session, undefined)
    const head = fillIn(trace, text)
    if (!head) return
    if (call !== UNRECORDED) recordSent(this.#record, text, trace, origin, TOWARDS.legacy)
    if (head.form === 'request' && head.id !== undefined && call !== undefined)
      this.#questions.asked(idKey(head.id), head.method, call)
    if (head.method === 'notifications/cancelled') this.#withdrawn(text)
  }

  received(message: Notification | Response, call: number | undefined): void {
    const isAnswer = message.kind === 'response'
    const own = isAnswer ? message.id && this.#questions.answered(idKey(message.id)) : call
    if (own !== UNRECORDED)
      recordReceived(this.#record, message, traceOf('client', 'in', this.#server, own, this.#session, undefined))
  }

  /** The server has cancelled one of its requests to the client. */
  #withdrawn(cancellation: Wire): void {
    const id = cancelledIn(cancellation)
    if (id !== undefined) this.#questions.withdrawn(idKey(id))
  }
}

/** The id in a cancellation. A recorder never throws, although a large message of a server may have invalid strings. */
function cancelledIn(cancellation: Wire): Id | undefined {
  try {
    const message = parseMessage(sourceOf(join(cancellation)))
    return message.kind === 'notification' ? cancelledId(message.params) : undefined
  } catch {
    return undefined
  }
}
