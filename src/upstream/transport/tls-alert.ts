/**
 * Preserves the TLS alert with which a server refuses a client certificate. With TLS 1.3 it arrives after the handshake, as
 * an error of the connection, and undici would replace it by "other side closed" when the connection ends.
 */
import type { buildConnector } from 'undici'

/** Wraps a connector: a connection with an error is destroyed at its end, so that undici reports the error. */
export function keepingAlerts(connect: buildConnector.connector): buildConnector.connector {
  return (target, done) =>
    connect(target, (...result) => {
      const [, socket] = result
      let failed = false
      // Undici adds its own listeners later, so these run first.
      socket
        ?.on('error', () => {
          failed = true
        })
        .on('end', () => {
          if (failed) socket.destroy()
        })
      done(...result)
    })
}
