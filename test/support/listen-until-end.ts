/** Lets a server listen on a free port of this machine, until the test ends. */
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import { listenAtOwnPort } from './free-port.js'

export async function listenUntilEnd(t: Pick<Test, 'teardown'>, server: Server): Promise<void> {
  await listenAtOwnPort(server, '127.0.0.1')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
}

/** Has a server listen no more, as if it were killed. Resolves to what has it listen again, at the same port. */
export async function stopListening(server: Server): Promise<() => Promise<void>> {
  const { port } = server.address() as AddressInfo
  const closed = new Promise((resolve) => server.close(resolve))
  server.closeAllConnections()
  await closed
  return () => new Promise((resolve) => server.listen(port, '127.0.0.1', resolve))
}
