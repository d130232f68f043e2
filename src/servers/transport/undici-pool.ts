/** Opens the connections to the origin of a server. A bridge with only stdio servers never loads undici. */

import type { buildConnector, Dispatcher } from 'undici'
import { whatOf } from './causes.js'
import { ChannelError } from './channel.js'
import { decoding } from './decoding.js'
import { readToTheEnd } from './paused.js'
import { keepAlert } from './tls-alert.js'
import { type ForwardProxy, viaProxy } from './via-proxy.js'

/** Opens a connection: a connector of undici. */
export type Connect = buildConnector.connector

export interface ConnectionOptions {
  /** Maximum concurrent connections. Further calls wait for one. By default there is one for each call and stream. */
  connections?: number | null
  /** Opens the connections, and may refuse some. By default, every address is allowed. */
  connect?: Connect | undefined
  /** A proxy that gets the requests. By default, the server itself gets them. */
  via?: ForwardProxy | undefined
}

/** Milliseconds for a connection, unless a connector has its own. */
const CONNECT_TIMEOUT = 5_000
/**
 * Milliseconds of silence on a connection before TCP keep-alive probes it, so that a stream that died without a FIN ends
 * within a minute.
 */
const KEEP_ALIVE = 30_000

export async function openPool(url: URL, { connections = null, connect, via }: ConnectionOptions): Promise<Dispatcher> {
  // In the bundle, a CommonJS package that is imported on demand has only a default export.
  const { buildConnector, interceptors, Pool } = (await import('undici')).default
  const pool = new Pool(via?.origin ?? url.origin, {
    connections,
    pipelining: 1,
    connect: withListeners(connect ? withUndelivered(connect) : buildConnector({ timeout: CONNECT_TIMEOUT })),
    // Calls have their own timeouts.
    headersTimeout: 0,
    bodyTimeout: 0,
    maxHeaderSize: 16 * 1024,
  })
  const decoded = pool.compose(decoding(interceptors.decompress))
  return via ? decoded.compose(viaProxy(url, via)) : decoded
}

/** Wraps a connector: adds to each connection what has to listen before undici does. */
function withListeners(connect: Connect): Connect {
  return (target, done) =>
    connect(target, (...result) => {
      const [, socket] = result
      if (socket) {
        keepAlert(socket)
        readToTheEnd(socket)
        socket.setKeepAlive(true, KEEP_ALIVE)
      }
      done(...result)
    })
}

/** Wraps a connector: its failures become ChannelErrors of requests that were not delivered. */
function withUndelivered(connect: Connect): Connect {
  return (target, done) =>
    connect(target, (...[error, socket]) => {
      if (error) done(new ChannelError(whatOf(error), { cause: error, delivered: 'no' }), null)
      else done(null, socket as NonNullable<typeof socket>)
    })
}
