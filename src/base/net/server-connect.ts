/** Connections to configured servers: through proxies, and with certificates of their own. The guard does not apply, because a person has named the address. */

import type { LookupFunction, Socket } from 'node:net'
import type { ConnectionOptions } from 'node:tls'
import type { buildConnector } from 'undici'
import { connectorOf, targetOf } from './connect.js'
import { IPV4_ONLY, ONE_AFTER_THE_OTHER } from './families.js'
import type { Pem } from './pem-files.js'
import { connectTo, type HttpProxy, openTunnel, type ProxyOf } from './proxy.js'

/** How to reach a server. */
export interface ReachOptions {
  proxyOf: ProxyOf
  /** A unix socket, which is used in place of host and port. */
  socketPath?: string | undefined
  /** Certificates and key for TLS; by default those of Node.js. Another object means that they have changed. */
  pem?: (() => Pem) | undefined
  /** Milliseconds until a connection must be established. */
  timeout?: number | undefined
  /** Connect over IPv4 only. A proxy chooses by itself. */
  ipv4?: boolean | undefined
  /** Resolves the host, without a proxy; by default with the system's resolver. */
  lookup?: LookupFunction | undefined
}

/** How the connections to a server are made. */
export interface ServerReach {
  /** Opens them. */
  connect: buildConnector.connector
  /** A proxy that gets whole requests. */
  via?: Via | undefined
}

/** Milliseconds for a connection without a proxy. */
const DIRECT = 5_000

/** A proxy that gets requests with a whole address as their target (RFC 9112, 3.2.2), and passes them on. */
interface Via {
  /** Scheme, host and port of the proxy. */
  origin: string
  /** Sent with every request, for the proxy. */
  headers: Readonly<Record<string, string>>
}

/**
 * How a server is reached: over TLS through a tunnel. Without TLS the proxy gets the requests themselves, because most
 * proxies open tunnels only to port 443.
 */
export function reachOf(url: URL, { proxyOf, pem, socketPath, timeout, ipv4, lookup }: ReachOptions): ServerReach {
  if (socketPath !== undefined) return { connect: serverConnector({ socketPath, pem, timeout }) }
  const proxy = proxyOf(url)
  const tls = lookup && { lookup }
  if (!proxy) return { connect: serverConnector({ pem, timeout: timeout ?? DIRECT, ipv4, ...(tls && { tls }) }) }
  if (url.protocol === 'https:') return { connect: serverConnector({ proxy, pem, timeout }) }
  const { origin, authorization } = proxy
  return {
    connect: connectorOf(() => connectTo(proxy, { timeout })),
    via: { origin, headers: authorization === undefined ? {} : { 'proxy-authorization': authorization } },
  }
}

/** How to connect to one server. */
export interface ServerConnectOptions extends Pick<ReachOptions, 'pem' | 'socketPath' | 'timeout' | 'ipv4'> {
  proxy?: HttpProxy | undefined
  /** Further options of TLS. */
  tls?: TlsOptions
}

/** Options of TLS, and of keeping its sessions. */
type TlsOptions = Pick<ConnectionOptions, 'ca' | 'lookup' | 'rejectUnauthorized' | 'checkServerIdentity'> & {
  allowH2?: boolean
  maxCachedSessions?: number
}

/** A connector that uses a proxy, and certificates that can change. */
export function serverConnector({
  proxy,
  pem = () => NONE,
  socketPath,
  timeout,
  ipv4 = false,
  tls,
}: ServerConnectOptions): buildConnector.connector {
  let made: { from: Pem; connect: buildConnector.connector } | undefined
  return connectorOf(async (target) => {
    const from = pem()
    if (made?.from !== from) {
      // Loaded on demand. In the bundle, a CommonJS package that is imported on demand has only a default export.
      const { buildConnector } = (await import('undici')).default
      const path = socketPath === undefined ? {} : { socketPath }
      const limit = timeout === undefined ? {} : { timeout }
      const families = ipv4 ? IPV4_ONLY : ONE_AFTER_THE_OTHER
      made = { from, connect: buildConnector({ ...families, ...tls, ...from, ...path, ...limit }) }
    }
    const { connect } = made
    if (socketPath !== undefined) return connected(connect, target).catch((error) => throwOf(socketPath, error))
    if (!proxy) return connected(connect, target)
    const tunnel = await openTunnel(proxy, targetOf(target), { timeout })
    return connected(connect, { ...target, httpSocket: tunnel })
  })
}

const NONE: Pem = {}

function connected(connect: buildConnector.connector, target: buildConnector.Options): Promise<Socket> {
  return new Promise((resolve, reject) => {
    connect(target, (...[error, socket]) => (error ? reject(error) : resolve(socket as Socket)))
  })
}

/** Throws an error that says that it is about a socket. Without that, ENOENT could be about any file. */
function throwOf(path: string, cause: Error & { code?: string }): never {
  throw Object.assign(new Error(`cannot connect to the socket ${path} (${cause.code})`), {
    code: `ERR_UNIX_${cause.code}`,
  })
}
