/** The test's end of the tether by which it holds servers, whoever has started them. */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import type { Scope } from '../support/scope.js'

/** What node has to be given to be tied. */
export const TIED = '--import=./test/interop/tether.mjs'

export interface Tether {
  port: number
  /** Every server that was ever tied, in the order in which they came. A socket closes when its server ends. */
  tied: Socket[]
  /** Waits for the next server. */
  next(): Promise<Socket>
}

/** Opens a tether. What still hangs on it when the test is over ends then. */
export async function openTether(t: Scope): Promise<Tether> {
  const tied: Socket[] = []
  const server = createServer((socket) => {
    tied.push(socket.on('error', () => {}).resume())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    for (const socket of tied) socket.destroy()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const next = async () => ((await once(server, 'connection')) as [Socket])[0]
  return { port, tied, next }
}
