/** Reads the answer to a relayed request for a list, to learn the names that metrics and traces may contain. */
import { MAX_RELAYED_LIST } from '../../limits/constants.js'
import type { Reservation } from '../../limits/memory.js'
import { Gathering } from '../../rpc/gathering.js'
import { parseMessage } from '../../rpc/message.js'
import { sourceOfBytes } from '../../rpc/source.js'
import { SseDecoder } from '../../rpc/sse.js'
import type { CallLogEntry } from '../call-log.js'
import { replyIn } from '../outcome.js'

export class RelayedList {
  readonly #record: CallLogEntry
  readonly #reservation: Reservation
  #parts: Gathering | undefined
  #events: SseDecoder | undefined
  /** Whether there is memory for an answer in parts; undefined before it is needed. */
  #hasRoom: boolean | undefined

  /** `reservation` is for an answer that arrives in parts. It ends with `close`. */
  constructor(record: CallLogEntry, reservation: Reservation) {
    this.#record = record
    this.#reservation = reservation
  }

  /** Takes a whole answer. */
  answer(bytes: Uint8Array): void {
    this.#learn([bytes])
  }

  /** Takes a part of an answer that is one message. */
  part(bytes: Uint8Array): void {
    this.#parts ??= new Gathering()
    if (this.#reserved && this.#parts.length <= MAX_RELAYED_LIST) this.#parts.push(bytes)
  }

  /** To be called after the last part. */
  partsEnded(): void {
    if (this.#parts && this.#parts.length <= MAX_RELAYED_LIST) this.#learn(this.#parts.take())
  }

  /** Takes a part of an answer that is a stream of events. */
  chunk(bytes: Uint8Array): void {
    if (!this.#reserved) return
    this.#events ??= new SseDecoder(MAX_RELAYED_LIST, 'cut')
    for (const { data, missing = 0 } of this.#events.push(bytes)) if (missing === 0) this.#learn(data)
  }

  close(): void {
    this.#reservation.end()
  }

  get #reserved(): boolean {
    this.#hasRoom ??= this.#reservation.resize(MAX_RELAYED_LIST) === undefined
    return this.#hasRoom
  }

  #learn(text: readonly Uint8Array[]): void {
    if (text.length === 0) return
    try {
      const message = parseMessage(sourceOfBytes(text))
      if (message.kind === 'response') this.#record.listed(replyIn(message))
    } catch {
      // An unreadable answer lists nothing.
    }
  }
}
