/** A server that nobody is to reach. */
import { type AddressInfo, connect, createServer } from 'node:net'
import type { Test } from 'tap'

export interface Trap {
  readonly port: number
  /** Connections that have come in. Comes once itself, last, so that nobody is left who has not been counted. */
  caught(): Promise<number>
}

/** Listens at every address that this machine has, until the test ends. */
export async function setTrap(t: Test): Promise<Trap> {
  let accepted = 0
  const server = createServer((socket) => {
    accepted++
    socket.on('error', () => {})
    socket.destroy()
  })
  await new Promise<void>((resolve, reject) => {
    server.once('listening', resolve)
    server.once('error', (error: NodeJS.ErrnoException) => {
      // A machine without IPv6 has fewer addresses to be reached at.
      if (error.code === 'EAFNOSUPPORT' || error.code === 'EADDRNOTAVAIL') server.listen(0, '0.0.0.0')
      else reject(error)
    })
    server.listen(0, '::')
  })
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  return {
    port,
    async caught() {
      const own = connect(port, '127.0.0.1')
      own.on('error', () => {})
      await new Promise<void>((resolve) => own.once('close', () => resolve()))
      accepted--
      return accepted
    },
  }
}
