/** Messages of a session that belong to no request, and wait for a stream. Questions wait for a GET stream. */
import type { Reservation } from '../../base/limits/memory.js'
import { lengthOf, type Wire } from '../../base/rpc/source.js'
import type { DeliveryKind } from '../../mcp/protocol/upstream.js'

/** A stream on which messages can be sent. */
interface Receiving {
  push(message: Wire): Promise<void> | undefined
}

interface Queued extends DeliveryKind {
  text: Wire
}

/** Most messages that wait. More are dropped. */
const MAX_QUEUED_MESSAGES = 256
/**
 * Milliseconds for which a question waits for a GET stream while a request is open. Then it goes to the stream of the
 * request, which may wait for the answer.
 */
const ASK_ANYWHERE_AFTER = 1_000

export class QueuedMessages {
  /** A question waits. */
  hasQuestions = false
  #queued: readonly Queued[] = []
  readonly #reservation: Reservation
  readonly #streamOfRequest: () => Receiving | undefined
  #askAnywhere: NodeJS.Timeout | undefined

  /** `streamOfRequest` returns the stream of an open request, if there is one. */
  constructor(reservation: Reservation, streamOfRequest: () => Receiving | undefined) {
    this.#reservation = reservation
    this.#streamOfRequest = streamOfRequest
  }

  /** Adds a message in place of an earlier one with the same key. */
  addMessage(text: Wire, about: DeliveryKind): void {
    this.dropMessage(about.key)
    if (this.#queued.length >= MAX_QUEUED_MESSAGES) return
    this.#replace([...this.#queued, { text, ...about }])
    if (this.hasQuestions) this.askLater()
  }

  /** Drops the message with this key. Returns whether there was one. */
  dropMessage(key: string | undefined): boolean {
    const others = key === undefined ? this.#queued : this.#queued.filter((waiting) => waiting.key !== key)
    if (others.length === this.#queued.length) return false
    this.#replace(others)
    return true
  }

  /** Sends messages on a stream: the questions, the others, or all. */
  flush(stream: Receiving, which: 'questions' | 'others' | 'all'): void {
    const leaving = this.#queued.filter((one) => which === 'all' || isQuestion(one) === (which === 'questions'))
    this.#replace(this.#queued.filter((one) => !leaving.includes(one)))
    for (const { text } of leaving) stream.push(text)?.catch(() => {})
  }

  /** To be called when a request begins while a question waits. */
  askLater(): void {
    this.#askAnywhere ??= setTimeout(() => {
      this.#askAnywhere = undefined
      const stream = this.#streamOfRequest()
      if (stream) this.flush(stream, 'questions')
    }, ASK_ANYWHERE_AFTER).unref()
  }

  close(): void {
    clearTimeout(this.#askAnywhere)
    this.#queued = []
    this.hasQuestions = false
    this.#reservation.end()
  }

  /** Replaces the messages, if there is memory for them. */
  #replace(queued: readonly Queued[]): void {
    if (this.#reservation.resize(queued.reduce((sum, { text }) => sum + lengthOf(text), 0))) return
    this.#queued = queued
    this.hasQuestions = queued.some(isQuestion)
  }
}

function isQuestion({ kind }: Queued): boolean {
  return kind === 'question'
}
