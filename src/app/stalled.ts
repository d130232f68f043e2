/** Closes connections whose clients do not read their answers. */
import type { Socket } from 'node:net'
import { lookEvery } from '../base/time/time.js'

/** Most milliseconds between two checks. */
const LOOK = 1_000

/** The progress of a connection, and the time of its last change. */
interface Stall {
  written: number
  queued: number
  since: number
}

export class Stalled {
  /** Milliseconds without progress before a connection is closed. */
  limit: number
  readonly #sockets = new Map<Socket, Stall | undefined>()
  readonly #timer: NodeJS.Timeout

  constructor(limit: number) {
    this.limit = limit
    this.#timer = lookEvery(Math.min(LOOK, limit / 4), () => this.look())
  }

  /** Number of watched connections. */
  get size(): number {
    return this.#sockets.size
  }

  /** The watched connections. */
  get sockets(): Iterable<Socket> {
    return this.#sockets.keys()
  }

  /** Watches a connection until it is closed. */
  watch(socket: Socket): void {
    this.#sockets.set(socket, undefined)
    socket.once('close', () => this.#sockets.delete(socket))
  }

  close(): void {
    clearInterval(this.#timer)
  }

  /** Checks all connections. A timer does so at least once a second. */
  look(): void {
    const now = performance.now()
    for (const [socket, before] of this.#sockets) {
      if (socket.writableLength === 0) {
        if (before) this.#sockets.set(socket, undefined)
        continue
      }
      const { written, queued } = progressOf(socket)
      if (before?.written !== written || before.queued !== queued)
        this.#sockets.set(socket, { written, queued, since: now })
      // Without a reset, the system keeps the written bytes as long as the client stays connected.
      else if (now - before.since >= this.limit) socket.resetAndDestroy()
    }
  }
}

/** The written bytes, and the remainder of the current write. Both stay the same exactly while the client reads nothing. */
function progressOf(socket: Socket): Pick<Stall, 'written' | 'queued'> {
  // Node has no public property for the progress of a large write. Without this private one, only a complete write
  // counts.
  const { _handle } = socket as Socket & { _handle?: { writeQueueSize?: number } | null }
  return { written: socket.bytesWritten - socket.writableLength, queued: _handle?.writeQueueSize ?? 0 }
}
