/** Records the messages outside of calls in a session of a legacy client with a legacy server. */

import { BoundedMap } from '../../base/limits/bounded.js'
import { type Id, idKey, type Notification, parseMessage, type Response } from '../../base/rpc/message.js'
import { join, sourceOf, type Wire } from '../../base/rpc/source.js'
import { type SessionRecorder, UNRECORDED } from '../../mcp/ports/recorder.js'
import { cancelledId } from '../../mcp/protocol/cancelled.js'
import type { MessageOrigin } from '../../mcp/protocol/encoded.js'
import { isQuestion } from '../../mcp/protocol/input.js'
import type { RecordEvent } from './events.js'
import { fillIn, recordReceived, recordSent, TOWARDS, traceOf } from './message.js'

/** Most open requests of servers whose calls are remembered. */
const MAX_WATCHED_QUESTIONS = 1_000

export class RecordedSession implements SessionRecorder {
  readonly #record: RecordEvent
  readonly #server: string
  readonly #session: string | undefined
  /** The open requests of the server to its client, by the keys of their ids: their calls, and whether they are questions. */
  readonly #open = new BoundedMap<string, { call: number; asks: boolean }>(MAX_WATCHED_QUESTIONS)

  constructor(record: RecordEvent, server: string, session: string | undefined) {
    this.#record = record
    this.#server = server
    this.#session = session
  }

  sent(text: Wire, call: number | undefined, origin: MessageOrigin | undefined): void {
    const trace = traceOf('client', 'out', this.#server, call, this.#session, undefined)
    const head = fillIn(trace, text)
    if (!head) return
    if (call !== UNRECORDED) recordSent(this.#record, text, trace, origin, TOWARDS.legacy)
    if (head.form === 'request' && head.id !== undefined && call !== undefined) {
      const asks = call !== UNRECORDED && isQuestion(head.method)
      this.#open.set(idKey(head.id), { call, asks })
      if (asks) this.#report('parked', call)
    }
    // The server has cancelled one of its requests to the client.
    if (head.method === 'notifications/cancelled') this.#close(cancelledIn(text), 'lost')
  }

  received(message: Notification | Response, call: number | undefined): void {
    const isAnswer = message.kind === 'response'
    const own = isAnswer ? this.#close(message.id, 'answered') : call
    if (own !== UNRECORDED)
      recordReceived(this.#record, message, traceOf('client', 'in', this.#server, own, this.#session, undefined))
  }

  /** A request of the server is no longer open. Returns the call that it belongs to, if it is known. */
  #close(id: Id | undefined, what: 'answered' | 'lost'): number | undefined {
    const key = id && idKey(id)
    const request = key === undefined ? undefined : this.#open.get(key)
    if (key === undefined || !request) return undefined
    this.#open.delete(key)
    if (request.asks) this.#report(what, request.call)
    return request.call
  }

  #report(what: 'parked' | 'answered' | 'lost', call: number): void {
    this.#record({ kind: 'question', what, server: this.#server, call })
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
