/**
 * One connection that sends events to a client: keep-alive comments, backpressure, and how much may wait before the
 * client is disconnected. Waiting bytes reserve memory in the ledger, and a sender that is faster than the client has
 * to wait.
 */
import { Readable } from 'node:stream'
import type { Reservation } from '../../base/limits/memory.js'
import { lengthOf, type Piece, type Wire } from '../../base/rpc/source.js'
import { KEEP_ALIVE } from '../../base/rpc/sse.js'

/**
 * Bytes that may wait for the client before the sender has to wait, and, beside one message of any size, before the connection is
 * closed.
 */
const WAIT_AT = 1024 * 1024
const CUT_AT = 16 * 1024 * 1024
/** Most bytes that are given to the socket at once. Then they no longer count as waiting. */
const PIECE = 256 * 1024

/** A connection with events. `readable` is the body of the HTTP answer. */
export class EventConnection {
  readonly readable: Readable
  readonly #reservation: Reservation
  #hasEnded = false
  /** Bytes of the largest message since nothing waited. */
  #largest = 0
  /** Resolves the promises of senders that wait for room. */
  #waiting: (() => void)[] = []

  /** `closed` is called when the client has disconnected, or everything has been written. */
  constructor(reservation: Reservation, closed: () => void) {
    this.#reservation = reservation
    this.readable = new Readable({
      read: () => this.#continue(),
      destroy: (error, done) => {
        this.#continue()
        reservation.end()
        closed()
        done(error)
      },
    })
  }

  /** Whether there is memory to write the message. */
  admits(text: Wire): boolean {
    return this.#reservation.resize(this.readable.readableLength + lengthOf(text)) === undefined
  }

  /** Writes an event. The promise resolves when there is room for more; undefined if there is room now. */
  write(event: Wire): Promise<void> | undefined {
    if (this.readable.destroyed) return undefined
    const { readableLength: before } = this.readable
    if (before === 0) this.#largest = 0
    this.#push(event)
    const { readableLength } = this.readable
    // A client is not slow because it has not read what has just come, or is still reading a large message.
    if (this.#reservation.resize(readableLength) || before - this.#largest > CUT_AT) {
      this.cut()
      return undefined
    }
    this.#largest = Math.max(this.#largest, readableLength - before)
    return readableLength < WAIT_AT ? undefined : new Promise((resolve) => this.#waiting.push(resolve))
  }

  /** Sends a comment to keep the connection open, unless other bytes are waiting. */
  keepAlive(): void {
    this.#settle()
    if (this.readable.readableLength === 0 && !this.#hasEnded) this.readable.push(KEEP_ALIVE)
  }

  /** Ends the stream after the written events, and a last one that is sent whether or not there is memory for it. */
  end(last: Wire = ''): void {
    if (last !== '') this.#push(last)
    this.#hasEnded = true
    this.readable.push(null)
  }

  /** Closes the connection at once, and drops unread events. */
  cut(): void {
    this.readable.destroy()
  }

  /** Returns the memory of bytes that have been read. */
  #settle(): void {
    this.#reservation.resize(this.readable.readableLength)
  }

  #push(event: Wire): void {
    const parts: readonly Piece[] = typeof event === 'string' ? [event] : event
    for (const part of parts) {
      if (part.length <= PIECE) this.readable.push(part)
      else {
        const bytes = typeof part === 'string' ? Buffer.from(part) : part
        for (let at = 0; at < bytes.length; at += PIECE) this.readable.push(bytes.subarray(at, at + PIECE))
      }
    }
  }

  #continue(): void {
    // The bytes that are being read now still count as waiting, so settle later.
    if (this.#reservation.bytes > 0) setImmediate(() => this.#settle())
    for (const resolve of this.#waiting.splice(0)) resolve()
  }
}
