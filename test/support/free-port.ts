/**
 * Ports of this machine that nobody listens on, and that stay free: no system gives them to who asks for any port, be it to
 * listen or to connect. One of the others may be taken before the program that is told of it listens there, or while it starts
 * again; and it may be one that somebody else has left, whose clients still come.
 */
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Server } from 'node:net'

/** The ports to choose from, first and after the last. Many, because several processes choose at once. */
const PORTS = [20_000, 32_000] as const
/** Why another one is tried: it is in use, or the system keeps it for itself (Windows). */
const TAKEN = new Set<unknown>(['EADDRINUSE', 'EACCES'])
const given = new Set<number>()

/** A port of the loopback address, for something that cannot be told to take any and say which. */
export async function freePort(): Promise<number> {
  const server = createServer()
  const port = await listenAtOwnPort(server, '127.0.0.1')
  server.close()
  await once(server, 'close')
  return port
}

/** Has a server listen at a port that it can have again later. Resolves to the port. */
export async function listenAtOwnPort(server: Server, host: string): Promise<number> {
  for (;;) {
    const port = randomInt(...PORTS)
    if (given.has(port)) continue
    try {
      await once(server.listen(port, host), 'listening')
      given.add(port)
      return port
    } catch (error) {
      if (!TAKEN.has((error as NodeJS.ErrnoException).code)) throw error
    }
  }
}
