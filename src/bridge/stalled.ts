/** Cuts off connections whose other side takes nothing of what waits to be written to it. */
import type { Socket } from 'node:net'

/** Milliseconds between looks, at most. */
const LOOK = 1_000

/** How far writing had come, and since when it has come no further. */
interface Stall {
  written: number
  queued: number
  since: number
}

export class Stalled {
  /** Milliseconds without headway. */
  limit: number
  readonly #sockets = new Map<Socket, Stall | undefined>()
  readonly #timer: NodeJS.Timeout

  constructor(limit: number) {
    this.limit = limit
    this.#timer = setInterval(() => this.#look(), Math.min(LOOK, limit / 4)).unref()
  }

  /** Connections that are watched. */
  get size(): number {
    return this.#sockets.size
  }

  /** Watches a connection until it is closed. */
  watch(socket: Socket): void {
    this.#sockets.set(socket, undefined)
    socket.once('close', () => this.#sockets.delete(socket))
  }

  close(): void {
    clearInterval(this.#timer)
  }

  #look(): void {
    const now = performance.now()
    for (const [socket, before] of this.#sockets) {
      if (socket.writableLength === 0) {
        if (before) this.#sockets.set(socket, undefined)
        continue
      }
      const { written, queued } = progressOf(socket)
      if (before?.written !== written || before.queued !== queued)
        this.#sockets.set(socket, { written, queued, since: now })
      // Without a reset the system would keep what is written already, for as long as the other side is there.
      else if (now - before.since >= this.limit) socket.resetAndDestroy()
    }
  }
}

/** Both numbers stay the same exactly as long as nothing is taken: what has been written, and what is left of one write. */
function progressOf(socket: Socket): Pick<Stall, 'written' | 'queued'> {
  // There is no public way to see how far a large write has come. Without this one it counts when it is over.
  const { _handle } = socket as Socket & { _handle?: { writeQueueSize?: number } | null }
  return { written: socket.bytesWritten - socket.writableLength, queued: _handle?.writeQueueSize ?? 0 }
}
