/** Keeps messages for different readers in the order in which they came in. */
import type { Loan } from '../../protocol/memory.js'

/** Messages that may wait. Beyond that, and where there is no memory for one, messages without a reader go out at once. */
const MAX_WAITING = 1_024

/** A message without a reader that waits. */
class Waiting {
  readonly send: () => void
  readonly bytes: number

  constructor(send: () => void, bytes: number) {
    this.send = send
    this.bytes = bytes
  }
}

export class Turns<Reader extends object> {
  /** Messages that have not gone out, in order: the reader of each, or the message itself if it has none. */
  #order: (Reader | Waiting)[] = []
  readonly #waiting = new Map<Reader, () => void>()
  readonly #readers = new Set<Reader>()
  /** Lends the messages without a reader. What waits for a reader is lent elsewhere. */
  readonly #loan: Loan
  #bytes = 0

  constructor(loan: Loan) {
    this.#loan = loan
  }

  /** A reader takes its messages in turn from now on. Messages of others are not waited for. */
  enter(reader: Reader): void {
    this.#readers.add(reader)
  }

  /** A message for a reader has come in. */
  add(reader: Reader): void {
    if (this.#readers.has(reader)) this.#order.push(reader)
  }

  /** A message without a reader has come in: it is sent after those before it. */
  pass(send: () => void, bytes: number): void {
    const waits = this.#order.length > 0 && this.#order.length < MAX_WAITING
    if (!waits || this.#loan.hold(this.#bytes + bytes)) return send()
    this.#bytes += bytes
    this.#order.push(new Waiting(send, bytes))
  }

  /** Waits until a reader's next message may go out. Undefined where it may go out now. */
  wait(reader: Reader): Promise<void> | undefined {
    if (this.#order[0] === reader || !this.#order.includes(reader)) return undefined
    return new Promise((resolve) => this.#waiting.set(reader, resolve))
  }

  /** The message of a reader has gone out. */
  done(reader: Reader): void {
    if (this.#order[0] !== reader) return
    this.#order.shift()
    this.#goOn()
  }

  /** A reader takes no more messages. */
  leave(reader: Reader): void {
    this.#readers.delete(reader)
    this.#waiting.get(reader)?.()
    this.#waiting.delete(reader)
    this.#order = this.#order.filter((one) => one !== reader)
    this.#goOn()
  }

  /** Sends what is left without a reader, and lets all readers go on. */
  end(): void {
    for (const one of this.#order.splice(0)) if (one instanceof Waiting) this.#send(one)
    this.#loan.end()
    for (const resolve of this.#waiting.values()) resolve()
    this.#waiting.clear()
  }

  #goOn(): void {
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
    this.#loan.hold(this.#bytes)
    send()
  }
}
