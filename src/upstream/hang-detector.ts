/**
 * Detects programs that may hang: several calls in a row were given up, and no message has arrived since they were
 * sent.
 */
import { type Exchange, TIMED_OUT } from './exchange.js'

/** Number of such calls in a row after which the program should be tested. */
const AFTER = 2
/** A call that its client gave up counts if it ran for this many milliseconds and no other call is open. */
const PATIENCE = 30_000

export class HangDetector {
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
   * Notes that a call was given up. Returns whether to test if the program still answers. `alone`: no other call is
   * open; while one is, the program may be busy with it.
   */
  givenUp({ sentAt, receivedBefore }: Exchange, reason: string, alone: boolean): boolean {
    if (receivedBefore !== this.#received) return false
    const counts = reason === TIMED_OUT || (alone && performance.now() - sentAt >= PATIENCE)
    return counts && ++this.#inARow >= AFTER
  }
}
