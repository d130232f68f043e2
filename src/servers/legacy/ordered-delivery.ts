/** Delivers messages to different readers in the order in which they arrived. */
import type { Reservation } from '../../base/limits/memory.js'

/** The maximum number of waiting messages. Beyond it, or without memory, messages without a reader are sent at once. */
const MAX_ORDERED = 1_024

class Waiting {
  readonly send: () => void
  readonly bytes: number

  constructor(send: () => void, bytes: number) {
    this.send = send
    this.bytes = bytes
  }
}

export class OrderedDelivery<Reader extends object> {
  /** Messages that have not been delivered, in order: the reader of each, or the message itself if it has none. */
  #order: (Reader | Waiting)[] = []
  readonly #waiting = new Map<Reader, () => void>()
  readonly #readers = new Set<Reader>()
  /** The reservation for messages without a reader. Messages for a reader are in the reservation of its exchange. */
  readonly #reservation: Reservation
  #bytes = 0

  constructor(reservation: Reservation) {
    this.#reservation = reservation
  }

  /** Adds a reader. Only messages of added readers are kept in order. */
  enter(reader: Reader): void {
    this.#readers.add(reader)
  }

  add(reader: Reader): void {
    if (this.#readers.has(reader)) this.#order.push(reader)
  }

  /** Sends a message without a reader, after the messages that arrived before it. `bytes` is its size. */
  pass(send: () => void, bytes: number): void {
    const waits = this.#order.length > 0 && this.#order.length < MAX_ORDERED
    if (!waits || this.#reservation.resize(this.#bytes + bytes)) return send()
    this.#bytes += bytes
    this.#order.push(new Waiting(send, bytes))
  }

  /** Resolves when a reader's next message may be delivered; undefined if it may be now. */
  wait(reader: Reader): Promise<void> | undefined {
    if (this.#order[0] === reader || !this.#order.includes(reader)) return undefined
    return new Promise((resolve) => this.#waiting.set(reader, resolve))
  }

  done(reader: Reader): void {
    if (this.#order[0] !== reader) return
    this.#order.shift()
    this.#advance()
  }

  /** Removes a reader: its undelivered messages no longer hold up others. */
  leave(reader: Reader): void {
    this.#readers.delete(reader)
    this.#waiting.get(reader)?.()
    this.#waiting.delete(reader)
    this.#order = this.#order.filter((one) => one !== reader)
    this.#advance()
  }

  /** Sends the remaining messages without a reader, and lets all readers continue. */
  end(): void {
    for (const one of this.#order.splice(0)) if (one instanceof Waiting) this.#send(one)
    this.#reservation.end()
    for (const resolve of this.#waiting.values()) resolve()
    this.#waiting.clear()
  }

  #advance(): void {
    let [next] = this.#order
    while (next instanceof Waiting) {
      this.#order.shift()
      this.#send(next)
      next = this.#order[0]
    }
    if (!next) return
    this.#waiting.get(next)?.()
    this.#waiting.delete(next)
  }

  #send({ send, bytes }: Waiting): void {
    this.#bytes -= bytes
    this.#reservation.resize(this.#bytes)
    send()
  }
}
