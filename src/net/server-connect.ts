/** Connections to configured servers, through proxies. The guard does not apply, because a person has named the address. */
import type { Socket } from 'node:net'
import type { ConnectionOptions } from 'node:tls'
import type { buildConnector } from 'undici'
import { bare } from './address.js'
import { connectTo, type HttpProxy, openTunnel, type ProxyOf } from './proxy.js'

/** How to reach a server. */
export interface ReachOptions {
  proxyOf: ProxyOf
  /** Milliseconds until a connection must be established. */
  timeout?: number | undefined
}

/** Options of TLS, and of keeping its sessions. */
export type TlsOptions = Pick<
  ConnectionOptions,
  'ca' | 'cert' | 'key' | 'lookup' | 'rejectUnauthorized' | 'checkServerIdentity'
> & { allowH2?: boolean; maxCachedSessions?: number }

/** How the connections to a server are made. */
export interface Reach {
  /** Opens them; undefined for direct connections. */
  connect?: buildConnector.connector | undefined
  /** A proxy that gets whole requests. */
  via?: Via | undefined
}

/** A proxy that gets requests with a whole address as their target (RFC 9112, 3.2.2), and passes them on. */
export interface Via {
  /** Scheme, host and port of the proxy. */
  origin: string
  /** Sent with every request, for the proxy. */
  headers: Readonly<Record<string, string>>
}

/**
 * How a server is reached: over TLS through a tunnel. Without TLS the proxy gets the requests themselves, because most
 * proxies open tunnels only to port 443.
 */
export function reachOf(url: URL, { proxyOf, timeout }: ReachOptions): Reach {
  const proxy = proxyOf(url)
  if (!proxy) return {}
  if (url.protocol === 'https:') return { connect: tunnelling(proxy, { timeout }) }
  const { origin, authorization } = proxy
  return {
    connect: calling(() => connectTo(proxy, { timeout })),
    via: { origin, headers: authorization === undefined ? {} : { 'proxy-authorization': authorization } },
  }
}

/** A connector that opens tunnels through a proxy, and TLS in them with the options of `buildConnector` of undici. */
export function tunnelling(
  proxy: HttpProxy,
  { timeout, ...tls }: TlsOptions & { timeout?: number | undefined } = {},
): buildConnector.connector {
  const building = builder({ ...tls, ...(timeout !== undefined && { timeout }) })
  return calling(async (target) => {
    const connect = await building()
    const { hostname, port } = target
    const tunnel = await openTunnel(proxy, { host: bare(hostname), port: Number(port) || 443 }, { timeout })
    return connected(connect, { ...target, httpSocket: tunnel })
  })
}

/** Makes a connector of undici when it is first needed: most bridges never need it, because their servers are on stdio. */
function builder(options: TlsOptions & { timeout?: number }): () => Promise<buildConnector.connector> {
  let made: Promise<buildConnector.connector> | undefined
  return () => {
    // The bundle has no names of a CommonJS package that is imported on demand, only its default.
    made ??= import('undici').then(({ default: { buildConnector } }) => buildConnector(options))
    return made
  }
}

function connected(connect: buildConnector.connector, target: buildConnector.Options): Promise<Socket> {
  return new Promise((resolve, reject) => {
    connect(target, (...[error, socket]) => (error ? reject(error) : resolve(socket as Socket)))
  })
}

/** An asynchronous function as a connector. */
function calling(open: (target: buildConnector.Options) => Promise<Socket>): buildConnector.connector {
  return (target, done) => {
    open(target).then(
      (socket) => done(null, socket),
      (error: Error) => done(error, null),
    )
  }
}
