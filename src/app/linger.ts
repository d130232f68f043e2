/**
 * Reads and drops the rest of a refused request. If a connection is closed with unread bytes, it is reset, and the
 * client loses the answer.
 */
import type { Socket } from 'node:net'

/** The bounds of what is read and dropped before the connection is closed. */
const MOST = { bytes: 64 * 1024 * 1024, milliseconds: 10_000 }

/** Drops incoming bytes, and closes the connection at a bound. Returns the function that removes the bounds. */
export function linger(socket: Socket): () => void {
  let left = MOST.bytes
  const cut = () => socket.destroy()
  const timer = setTimeout(cut, MOST.milliseconds).unref()
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
