/** Clients that ask and do not read what they are answered. */
import { connect, type Socket } from 'node:net'
import type { Test } from 'tap'

export type Headers = Readonly<Record<string, string | undefined>>

/** Sends a request over a connection of its own, of which nothing is read. Resolves when it has been written. */
export function askDeaf(
  t: Test,
  { method = 'POST', url, headers, body = '' }: { method?: string; url: string; headers: Headers; body?: string },
): Promise<Socket> {
  const { hostname, port, pathname, search, host } = new URL(url)
  const socket = connect({ port: Number(port), host: hostname })
  t.teardown(() => socket.destroy())
  socket.on('error', () => {})
  socket.pause()
  const length = method === 'POST' ? { 'content-length': String(Buffer.byteLength(body)) } : {}
  const lines = Object.entries({ host, ...headers, ...length }).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}: ${value}`],
  )
  return new Promise((resolve) => {
    socket.write(`${method} ${pathname}${search} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n${body}`, () =>
      resolve(socket),
    )
  })
}
