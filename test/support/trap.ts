/** A server that nobody is to reach. */
import { connect, createServer, type Server } from 'node:net'
import type { Test } from 'tap'
import { listenAtOwnPort } from './free-port.js'

export interface Trap {
  readonly port: number
  /**
   * What those who have come said first, as far as it can be read. Comes once itself, last, so that nobody is left who
   * has not been counted.
   */
  caught(): Promise<string[]>
}

/** Listens at every address that this machine has, until the test ends. */
export async function setTrap(t: Test): Promise<Trap> {
  const caught: string[] = []
  const server = createServer((socket) => {
    const place = caught.push('') - 1
    socket.on('error', () => {})
    socket.once('end', () => socket.destroy())
    socket.once('data', (data) => {
      caught[place] = data.toString('latin1').replaceAll(/[^ -~]+/g, '.')
      socket.destroy()
    })
  })
  const port = await listen(server)
  t.teardown(() => server.close())
  return {
    port,
    async caught() {
      const own = connect(port, '127.0.0.1').end()
      own.on('error', () => {})
      await new Promise<void>((resolve) => own.once('close', () => resolve()))
      caught.pop()
      return caught
    },
  }
}

async function listen(server: Server): Promise<number> {
  try {
    return await listenAtOwnPort(server, '::')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'EAFNOSUPPORT' && code !== 'EADDRNOTAVAIL') throw error
    // A machine without IPv6 has fewer addresses to be reached at.
    return listenAtOwnPort(server, '0.0.0.0')
  }
}
