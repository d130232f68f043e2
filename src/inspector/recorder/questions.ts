/** Records questions that are forwarded unchanged: requests of a legacy server, and the answers of its client. */
import { BoundedMap } from '../../base/limits/bounded.js'
import { UNRECORDED } from '../../mcp/ports/recorder.js'
import { isQuestion } from '../../mcp/protocol/input.js'
import type { RecordEvent } from './events.js'

/** Most open requests of servers whose calls are remembered. */
const MAX_WATCHED_QUESTIONS = 1_000

/** A request of a server: the call that it belongs to, and whether it is a question. */
interface OpenRequest {
  call: number
  asks: boolean
}

/** The open requests of a server to its clients. */
export class RecordedQuestions {
  readonly #record: RecordEvent
  readonly #server: string
  readonly #open = new BoundedMap<string, OpenRequest>(MAX_WATCHED_QUESTIONS)

  constructor(record: RecordEvent, server: string) {
    this.#record = record
    this.#server = server
  }

  /** A request of the server was sent to the client of this call. */
  asked(key: string, method: string | undefined, call: number): void {
    const asks = call !== UNRECORDED && isQuestion(method)
    this.#open.set(key, { call, asks })
    if (asks) this.#report('parked', call)
  }

  /** The client answers the request with this key. Returns the call that the request belongs to, if it is known. */
  answered(key: string): number | undefined {
    return this.#close(key, 'answered')
  }

  /** The server cancels its request with this key. */
  withdrawn(key: string): void {
    this.#close(key, 'lost')
  }

  #close(key: string, what: 'answered' | 'lost'): number | undefined {
    const request = this.#open.get(key)
    if (!request) return undefined
    this.#open.delete(key)
    if (request.asks) this.#report(what, request.call)
    return request.call
  }

  #report(what: 'parked' | 'answered' | 'lost', call: number): void {
    this.#record({ kind: 'question', what, server: this.#server, call })
  }
}
