/** Agents of Node.js whose connections lead through a proxy: for requests that other packages make. */
import { Agent } from 'node:http'
import { Agent as TlsAgent } from 'node:https'
import type { Duplex } from 'node:stream'
import { type ConnectionOptions, connect } from 'node:tls'
import { portOf } from '../texts/parse-url.js'
import { type HttpProxy, openTunnel } from './proxy.js'

type Created = (error: Error | null, stream: Duplex) => void

/** An agent for requests of a scheme, all of which go through tunnels. */
export function proxyAgent(proxy: HttpProxy, protocol: string): Agent {
  const secure = protocol === 'https:'
  const agent = secure ? new TlsAgent({ keepAlive: true }) : new Agent({ keepAlive: true })
  const createConnection = (options: ConnectionOptions, created: Created): undefined => {
    const { host = '', port } = options
    openTunnel(proxy, { host, port: portOf({ protocol, port }) }).then(
      (socket) => created(null, secure ? connect({ ...options, socket }) : socket),
      (error: Error) => created(error, undefined as unknown as Duplex),
    )
  }
  return Object.assign(agent, { createConnection })
}
