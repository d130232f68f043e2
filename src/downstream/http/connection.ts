/**
 * One connection on which events go out to a client. What waits on it is lent by the ledger; whoever makes more than the
 * client reads has to wait.
 */
import { Readable } from 'node:stream'
import type { Loan } from '../../protocol/memory.js'
import { lengthOf, type Piece, type Wire } from '../../rpc/source.js'
import { KEEP_ALIVE } from '../../rpc/sse.js'

/** Bytes that may wait before whoever makes them waits as well, and before the connection is cut. */
const WAIT_AT = 1024 * 1024
const CUT_AT = 16 * 1024 * 1024
/** Bytes that are handed over at once: what is handed over does not wait here any more. */
const PIECE = 256 * 1024

export class EventConnection {
  readonly readable: Readable
  readonly #loan: Loan
  /** Those who wait until there is room for more. */
  #waiting: (() => void)[] = []

  /** `closed` is called when the client has gone, or everything has been written. */
  constructor(loan: Loan, closed: () => void) {
    this.#loan = loan
    this.readable = new Readable({
      read: () => this.#goOn(),
      destroy: (error, done) => {
        this.#goOn()
        loan.end()
        closed()
        done(error)
      },
    })
  }

  /** Whether there is memory for a message that is to be written. */
  admits(text: Wire): boolean {
    return this.#loan.hold(this.readable.readableLength + lengthOf(text)) === undefined
  }

  /** Writes an event. Resolves when there is room for more, if that takes waiting. */
  write(event: Wire): Promise<void> | undefined {
    if (this.readable.destroyed) return undefined
    const parts: readonly Piece[] = typeof event === 'string' ? [event] : event
    for (const part of parts) this.#push(part)
    const { readableLength } = this.readable
    if (this.#loan.hold(readableLength) || readableLength > CUT_AT) {
      this.cut()
      return undefined
    }
    return readableLength < WAIT_AT ? undefined : new Promise((resolve) => this.#waiting.push(resolve))
  }

  /** Says something that means nothing, unless there is something to be read anyway. */
  keepAlive(): void {
    this.#settle()
    if (this.readable.readableLength === 0) this.readable.push(KEEP_ALIVE)
  }

  /** Nothing follows what has been written. */
  end(): void {
    this.readable.push(null)
  }

  /** Ends the connection, whatever has not been read. */
  cut(): void {
    this.readable.destroy()
  }

  /** Gives back what has been read meanwhile. */
  #settle(): void {
    this.#loan.hold(this.readable.readableLength)
  }

  #push(part: Piece): void {
    if (part.length <= PIECE) {
      this.readable.push(part)
      return
    }
    const bytes = typeof part === 'string' ? Buffer.from(part) : part
    for (let at = 0; at < bytes.length; at += PIECE) this.readable.push(bytes.subarray(at, at + PIECE))
  }

  #goOn(): void {
    // What is being read at this moment is still counted as waiting.
    if (this.#loan.lent > 0) setImmediate(() => this.#settle())
    for (const resolve of this.#waiting.splice(0)) resolve()
  }
}
