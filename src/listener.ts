/** Where HTTP requests come in. What answers them can be changed while connections stay open. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Stalled } from './listener/stalled.js'

/** What answers requests, and those that cannot be read. */
export interface Front {
  routing(request: IncomingMessage, response: ServerResponse): void
  readonly server: { emit(event: string, ...rest: unknown[]): unknown }
}

const OPTIONS = {
  // Without these a request that comes a byte at a time is waited for without end.
  requestTimeout: 30_000,
  headersTimeout: 5_000,
  connectionsCheckingInterval: 1_000,
  keepAliveTimeout: 65_000,
  maxHeaderSize: 16 * 1024,
}

export class Listener {
  front: Front
  readonly #servers: Server[] = []
  readonly #stalled: Stalled
  #maxConnections: number

  /** `write`: milliseconds after which a client that takes nothing of what is being written to it is cut off. */
  constructor(front: Front, maxConnections: number, write: number) {
    this.front = front
    this.#maxConnections = maxConnections
    this.#stalled = new Stalled(write)
  }

  set write(milliseconds: number) {
    this.#stalled.limit = milliseconds
  }

  set maxConnections(most: number) {
    this.#maxConnections = most
    for (const server of this.#servers) server.maxConnections = most
  }

  /** Connections that are open. */
  get connections(): number {
    return this.#stalled.size
  }

  /** Starts to listen. Resolves to the origin; `localhost` is that of both families, as far as the machine has them. */
  async listen({ host, port }: { host: string; port: number }): Promise<string> {
    if (host !== 'localhost') return this.#bind(host, port)
    const origin = await this.#bind('127.0.0.1', port)
    await this.#bind('::1', Number(new URL(origin).port)).catch(() => {})
    return origin
  }

  /** Ends all connections. */
  close(): void {
    this.#stalled.close()
    for (const server of this.#servers) {
      server.close()
      server.closeAllConnections()
    }
  }

  #bind(host: string, port: number): Promise<string> {
    const server = createServer(OPTIONS, (request, response) => this.front.routing(request, response))
    server.on('connection', (socket) => this.#stalled.watch(socket))
    server.on('clientError', (error, socket) => this.front.server.emit('clientError', error, socket))
    server.maxConnections = this.#maxConnections
    // More than are accepted, so that the excess is seen rather than cut off unseen.
    server.maxHeadersCount = 200
    return new Promise((resolve, reject) => {
      server.once('error', reject)
      server.listen({ host, port }, () => {
        server.off('error', reject)
        this.#servers.push(server)
        const { address, port: actual } = server.address() as AddressInfo
        resolve(`http://${address.includes(':') ? `[${address}]` : address}:${actual}`)
      })
    })
  }
}
