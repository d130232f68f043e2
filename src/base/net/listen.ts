/** Where to listen, and listening at a host and port. */
import { once } from 'node:events'
import type { AddressInfo, Server } from 'node:net'

export interface ListenAt {
  host: string
  port: number
  /** Over TLS. */
  secure?: boolean
  /** The path of a unix socket, in place of host and port. */
  socket?: string
}

/** The address, as in a URL. */
export function originOf({ host, port, secure = false }: ListenAt): string {
  return `${secure ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port}`
}

/** The host for all addresses of this machine, of both families. */
const ALL = '::'
const ALL_OF_IPV4 = '0.0.0.0'
/** Errors of a system without IPv6. */
const NO_IPV6: ReadonlySet<unknown> = new Set(['EAFNOSUPPORT', 'EADDRNOTAVAIL'])

/** Resolves to the address. On a system without IPv6, all addresses are those of IPv4. Rejects if it cannot be listened at. */
export async function listenAt(server: Server, host: string, port: number): Promise<AddressInfo> {
  try {
    await once(server.listen({ host, port }), 'listening')
  } catch (error) {
    if (host !== ALL || !NO_IPV6.has((error as NodeJS.ErrnoException).code)) throw error
    await once(server.listen({ host: ALL_OF_IPV4, port }), 'listening')
  }
  return server.address() as AddressInfo
}

/** Listens on an open socket. Resolves to its address, which Node.js does not know of a unix socket that it has not opened. */
export async function listenGiven(server: Server, fd: number): Promise<AddressInfo | null> {
  await once(server.listen({ fd }), 'listening')
  return server.address() as AddressInfo | null
}
