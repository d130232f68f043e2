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
  /** Calls given up in a row, without a message since they were sent. */
  #inARow = 0
  /** The number of received messages when the last of them was given up. */
  #received = 0

  get inARow(): number {
    return this.#inARow
  }

  /**
   * Notes that a call was given up. Returns whether to test if the program still answers. `received`: the number of
   * messages received so far. `alone`: no other call is open; while one is, the program may be busy with it.
   */
  givenUp({ sentAt, receivedBefore }: Exchange, reason: string, received: number, alone: boolean): boolean {
    if (receivedBefore !== received) return false
    if (received !== this.#received) this.#inARow = 0
    this.#received = received
    const counts = reason === TIMED_OUT || (alone && performance.now() - sentAt >= PATIENCE)
    return counts && ++this.#inARow >= AFTER
  }
}
