/**
 * Reads on after a request was refused before all of it had come. A connection that is closed with bytes unread is reset,
 * and the answer is lost with it.
 */
import type { Socket } from 'node:net'

/** What is read and dropped before the connection is cut. */
const MOST = { bytes: 64 * 1024 * 1024, milliseconds: 10_000 }

/** Drops what comes in, within bounds. Gives what ends the watch over these. */
export function linger(socket: Socket, most = MOST): () => void {
  let left = most.bytes
  const cut = () => socket.destroy()
  const timer = setTimeout(cut, most.milliseconds).unref()
  const count = (chunk: Buffer) => {
    left -= chunk.length
    if (left < 0) cut()
  }
  const stop = () => {
    clearTimeout(timer)
    socket.off('data', count).off('close', stop)
  }
  socket.on('data', count).on('close', stop)
  return stop
}
