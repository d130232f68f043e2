/**
 * Preserves the TLS alert with which a server refuses a client certificate. With TLS 1.3 it arrives after the handshake, as
 * an error of the connection, and undici would replace it by "other side closed" when the connection ends.
 */
import type { Socket } from 'node:net'

/** Destroys this connection at its end if it has had an error, so that undici reports the error. */
export function keepAlert(socket: Socket): void {
  let failed = false
  socket
    .on('error', () => {
      failed = true
    })
    .on('end', () => {
      if (failed) socket.destroy()
    })
}
