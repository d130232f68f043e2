/** A line between the bridge and a server on which everything that the bridge sends is kept, to the byte. */

import type { AddressInfo } from 'node:net'
import { connect, createServer, type Socket } from 'node:net'
import type { Test } from 'tap'

/** Resolves to the address of the server behind the line, and what was sent there so far. */
export async function overheard(t: Test, target: string): Promise<{ url: string; sent(): string }> {
  const chunks: Buffer[] = []
  const { hostname, port, pathname } = new URL(target)
  const sockets = new Set<Socket>()
  const server = createServer((near) => {
    const far = connect(Number(port), hostname)
    for (const socket of [near, far]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        near.destroy()
        far.destroy()
      })
    }
    near.on('data', (chunk) => chunks.push(chunk))
    near.pipe(far)
    far.pipe(near)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const { port: own } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${own}${pathname}`, sent: () => Buffer.concat(chunks).toString('latin1') }
}
