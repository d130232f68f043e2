/** Notices that a program may hang: calls are given up one after another, and meanwhile it says nothing at all. */
import { type Exchange, TIMED_OUT } from './exchange.js'

/** Calls given up in a row, without a message from the program since they were sent, after which it is worth asking. */
const AFTER = 2
/** Milliseconds after which a call counts that its client has given up, if no other call is open. */
const PATIENCE = 30_000

export class Silence {
  #received = 0
  #inARow = 0

  /** Messages received so far. */
  get received(): number {
    return this.#received
  }

  /** Calls given up in a row, without a message since they were sent. */
  get inARow(): number {
    return this.#inARow
  }

  /** Notes that a message was received. */
  end(): void {
    this.#received++
    this.#inARow = 0
  }

  /** Notes that a request is sent. */
  sent(exchange: Exchange): void {
    exchange.sentAt = performance.now()
    exchange.receivedBefore = this.#received
  }

  /**
   * Notes that a call was given up. Returns whether the program should be asked if it still answers. `alone`: no other call
   * is open; while one is, the program may be busy with it.
   */
  givenUp({ sentAt, receivedBefore }: Exchange, reason: string, alone: boolean): boolean {
    if (receivedBefore !== this.#received) return false
    const counts = reason === TIMED_OUT || (alone && performance.now() - sentAt >= PATIENCE)
    return counts && ++this.#inARow >= AFTER
  }
}
