/** Listens at a host and port. */
import { once } from 'node:events'
import type { AddressInfo, Server } from 'node:net'

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
