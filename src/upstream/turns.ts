/** Keeps messages for different readers in the order in which they came in. */

/** Messages that may wait. Beyond that, messages without a reader go out at once. */
const MAX_WAITING = 1_024

export class Turns<Reader extends object> {
  /** Messages that have not gone out, in order: the reader of each, or how to send it if it has none. */
  #order: (Reader | (() => void))[] = []
  readonly #waiting = new Map<Reader, () => void>()
  readonly #readers = new Set<Reader>()

  /** A reader takes its messages in turn from now on. Messages of others are not waited for. */
  enter(reader: Reader): void {
    this.#readers.add(reader)
  }

  /** A message for a reader has come in. */
  add(reader: Reader): void {
    if (this.#readers.has(reader)) this.#order.push(reader)
  }

  /** A message without a reader has come in: it is sent after those before it. */
  pass(send: () => void): void {
    if (this.#order.length === 0 || this.#order.length >= MAX_WAITING) send()
    else this.#order.push(send)
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
    for (const one of this.#order.splice(0)) if (typeof one === 'function') one()
    for (const resolve of this.#waiting.values()) resolve()
    this.#waiting.clear()
  }

  #goOn(): void {
    while (typeof this.#order[0] === 'function') (this.#order.shift() as () => void)()
    const [next] = this.#order
    if (next === undefined || typeof next === 'function') return
    this.#waiting.get(next)?.()
    this.#waiting.delete(next)
  }
}
