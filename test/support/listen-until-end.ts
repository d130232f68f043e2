/** Lets a server listen on a free port of this machine, until the test ends. */
import type { Server } from 'node:http'
import type { Test } from 'tap'

export async function listenUntilEnd(t: Pick<Test, 'teardown'>, server: Server): Promise<void> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
}
