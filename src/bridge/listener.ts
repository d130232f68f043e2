/** Where HTTP requests come in. What answers them can be changed while connections stay open. */
import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { Fault, type FaultName } from '../protocol/fault.js'
import { error as errorMessage } from '../rpc/message.js'
import { linger } from './linger.js'
import { Stalled } from './stalled.js'

/** What answers requests. */
export interface Front {
  routing(request: IncomingMessage, response: ServerResponse): void
}

export interface ListenerOptions {
  maxConnections: number
  /** Milliseconds after which a client that takes nothing of what is being written to it is cut off. */
  write: number
  /** Milliseconds for the headers of a request, and for all of it. */
  within?: { headers: number; request: number }
  /** Is told of what is refused before there is a request that the front could be given. */
  refused(fault: Fault, request: { from: string | undefined }): void
}

/** Without these a request that comes a byte at a time is waited for without end. */
const WITHIN = { headers: 30_000, request: 60_000 }
const JSON_TYPE = 'application/json; charset=utf-8'
const OPTIONS = {
  connectionsCheckingInterval: 1_000,
  keepAliveTimeout: 65_000,
  maxHeaderSize: 16 * 1024,
}

export class Listener {
  front: Front
  readonly #options: ListenerOptions
  readonly #servers: Server[] = []
  readonly #stalled: Stalled
  #maxConnections: number

  constructor(front: Front, options: ListenerOptions) {
    this.front = front
    this.#options = options
    this.#maxConnections = options.maxConnections
    this.#stalled = new Stalled(options.write)
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
    const answer = (request: IncomingMessage, response: ServerResponse) => this.front.routing(request, response)
    const { headers: headersTimeout, request: requestTimeout } = this.#options.within ?? WITHIN
    const server = createServer({ ...OPTIONS, headersTimeout, requestTimeout }, answer)
    server.on('connection', (socket) => this.#stalled.watch(socket))
    // The front says whether it wants the rest of the request.
    server.on('checkContinue', answer)
    server.on('checkExpectation', (request, response) => this.#refuseExpectation(request, response))
    server.on('clientError', (error, socket) => this.#refuse(error, socket as Socket))
    server.on('drop', (dropped) => {
      const fault = new Fault('overloaded', `Over ${this.#maxConnections} connections (limits.connections)`)
      this.#options.refused(fault, { from: dropped?.remoteAddress })
    })
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

  #refuseExpectation({ socket }: IncomingMessage, response: ServerResponse): void {
    const fault = new Fault('expectationFailed', 'Only "Expect: 100-continue" is understood')
    this.#options.refused(fault, { from: socket.remoteAddress })
    const body = textOf(fault)
    const headers = { 'content-type': JSON_TYPE, 'content-length': Buffer.byteLength(body), connection: 'close' }
    response.writeHead(fault.status, headers).end(body)
  }

  /** Refuses what Node cannot read as a request, or what takes too long to come. */
  #refuse(error: Error & { code?: string }, socket: Socket & { _httpMessage?: { _headerSent?: boolean } }): void {
    // Of a connection that is being refused, what else comes in is dropped.
    if (socket.writableEnded) return
    const answering = socket._httpMessage?._headerSent === true
    if (!socket.writable || answering || error.code === 'ECONNRESET') {
      socket.destroy()
      return
    }
    const fault = faultOf(error)
    this.#options.refused(fault, { from: socket.remoteAddress })
    const body = textOf(fault)
    const head = [
      `HTTP/1.1 ${fault.status} ${STATUS_CODES[fault.status]}`,
      'connection: close',
      `content-type: ${JSON_TYPE}`,
      `content-length: ${Buffer.byteLength(body)}`,
    ]
    socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
    linger(socket)
  }
}

function textOf(fault: Fault): string {
  return errorMessage(undefined, fault.toRpcError())
}

/** What Node's parser and its timers refuse, by the codes of their errors. */
const REFUSALS: Readonly<Record<string, readonly [FaultName, string]>> = {
  ERR_HTTP_REQUEST_TIMEOUT: [
    'requestTimeout',
    `The request did not come in time: its headers may take ${WITHIN.headers / 1000} s, all of it ${WITHIN.request / 1000} s`,
  ],
  HPE_HEADER_OVERFLOW: ['tooManyHeaders', 'A request may have 100 headers, of 16 KiB together'],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: ['bodyTooLarge', 'The extensions of a chunk are too large'],
}

function faultOf({ code = '', message }: Error & { code?: string }): Fault {
  const [name, said] = REFUSALS[code] ?? ['invalidRequest', `Not an HTTP request that can be read: ${message}`]
  return new Fault(name, said)
}
