/** Listens at the address of a configuration: at a host and port, on a unix socket, or on a socket of systemd. */
import type { Server } from 'node:net'
import { type ListenAt, listenAt, originOf } from '../base/net/listen.js'
import { listenOnGiven } from './given-sockets.js'
import { listenOn } from './unix-socket.js'

interface How {
  /** The file descriptor of an open socket, if there is one. */
  given?: number | undefined
  /** Permissions of a unix socket. */
  mode: number
}

/**
 * Listens with as many servers as the address needs: `localhost` means IPv4 and, if the machine has it, IPv6. Resolves to the origin,
 * which is `unix:/path/to.sock:` on a unix socket.
 */
export async function listenWith(make: () => Server, at: ListenAt, { given, mode }: How): Promise<string> {
  const { host, port, secure = false, socket } = at
  if (given !== undefined) return listenOnGiven(make(), given, at)
  if (socket !== undefined) {
    await listenOn(make(), { path: socket, mode })
    return `unix:${socket}:`
  }
  const bind = async (one: string, its: number) => {
    const { address, port: actual } = await listenAt(make(), one, its)
    return originOf({ host: address, port: actual, secure })
  }
  if (host !== 'localhost') return bind(host, port)
  const origin = await bind('127.0.0.1', port)
  await bind('::1', Number(new URL(origin).port)).catch(() => {})
  return origin
}
