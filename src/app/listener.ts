/**
 * Listens for HTTP requests: TLS, connections, the size of headers, time limits for the arrival of a request, and
 * answers to what is not HTTP. The handler can be replaced while connections stay open.
 */
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { Server as NetServer, type Socket } from 'node:net'
import { Fault } from '../base/fault/fault.js'
import { Connections } from '../base/net/connections.js'
import type { ListenAt } from '../base/net/listen.js'
import type { PemFiles } from '../base/net/pem-files.js'
import { pause } from '../base/time/pause.js'
import { listenWith } from './listen-with.js'
import { Stalled } from './stalled.js'
import { headersOf, refuseUnparsed, textOf, WITHIN } from './unparsed.js'
import type { Entrance } from './workers.js'

/** A handler of requests: a Fastify instance. */
export interface Front {
  routing(request: IncomingMessage, response: ServerResponse): void
}

/** Bounds of a listener. */
export interface ListenerOptions {
  maxConnections: number
  /** The option with that bound, if there is one. */
  maxConnectionsOption?: string
  /** Milliseconds without progress after which a client that does not read its answer is disconnected. */
  write: number
  /** Milliseconds for the headers of a request, and for the whole request. */
  within?: { headers: number; request: number }
  /** The certificate for addresses with TLS. */
  pem?: PemFiles | undefined
  /** Permissions of a unix socket; by default for its user only. */
  socketMode?: number
  /** What accepts connections in place of this process. */
  entrance?: Entrance | undefined
  /** Called for a connection or request that is refused before the handler gets it. */
  refused(fault: Fault, request: { from: string | undefined }): void
}

const OPTIONS = {
  connectionsCheckingInterval: 1_000,
  keepAliveTimeout: 65_000,
  maxHeaderSize: 16 * 1024,
}

/**
 * Milliseconds without a new connection and without an answer before the bridge stops accepting connections: who has just been answered
 * may come back, and has to be told. Most milliseconds to wait for that, and between two looks.
 */
const QUIET = 500
const MOST_QUIET = 1_000
const QUIET_LOOK = 20
/** Milliseconds for a TLS handshake. */
const HANDSHAKE = 30_000
/** Milliseconds between two checks of the certificate files. */
const CERTIFICATE_CHECK = 1_000

/** A connection with its current response, for which Node has no public property. */
type AnsweringSocket = Socket & { _httpMessage?: ServerResponse | null }

/** A listening HTTP server, or two for `localhost`. */
export class Listener {
  front: Front
  readonly #options: ListenerOptions
  readonly #servers: Server[] = []
  readonly #stalled: Stalled
  readonly #connections: Connections
  /** Whether every answer ends its connection. */
  #isLeaving = false
  /** When a client has last connected or been answered. */
  #heard = Number.NEGATIVE_INFINITY
  /** Requests that wait for `stopAccepting`, at most one of each connection; undefined if none has to wait. */
  #held: (() => void)[] | undefined

  constructor(front: Front, options: ListenerOptions) {
    this.front = front
    this.#options = options
    this.#connections = new Connections(options.maxConnections)
    this.#stalled = new Stalled(options.write)
  }

  set write(milliseconds: number) {
    this.#stalled.limit = milliseconds
  }

  set maxConnections(most: number) {
    this.#connections.most = most
  }

  /** Number of open connections. */
  get connections(): number {
    return this.#stalled.size
  }

  /** Starts to listen, on the socket `given` if there is one. Resolves to the origin. */
  async listen(at: ListenAt, given?: number): Promise<string> {
    const { entrance, socketMode: mode = 0o600 } = this.#options
    const make = () => {
      const server = this.#serve(at.secure ?? false)
      this.#servers.push(server)
      return server
    }
    if (!entrance) return listenWith(make, at, { given, mode })
    const server = make()
    // Node.js watches the time limits of requests from then on.
    server.emit('listening')
    return entrance.open(at, mode, (socket) => server.emit('connection', socket))
  }

  /**
   * From now on, each answer ends its connection with `Connection: close`. So the client sends its next request over another
   * connection, and not over one that is about to be closed. Idle connections stay.
   */
  leave(): void {
    this.#isLeaving = true
    for (const socket of this.#stalled.sockets) {
      const { _httpMessage: response } = socket as AnsweringSocket
      if (response) this.#isLast(response)
    }
  }

  /**
   * Stops accepting connections; open ones stay. The system resets connections that the bridge has not accepted yet, and what
   * publishes a port may reset later ones, too. So requests wait first while clients come: they are answered, and do not come again
   * in that time.
   */
  async stopAccepting(): Promise<void> {
    const held: (() => void)[] = []
    this.#held = held
    await this.#quiet()
    // Not `close` of the HTTP server, which also closes idle connections.
    for (const server of this.#servers) NetServer.prototype.close.call(server)
    this.#options.entrance?.close()
    this.#held = undefined
    for (const route of held) route()
  }

  /** Ends all connections. */
  close(): void {
    this.#options.entrance?.close()
    this.#stalled.close()
    for (const server of this.#servers) {
      server.close()
      server.closeAllConnections()
    }
  }

  #serve(secure: boolean): Server {
    const answer = this.#answer
    const { headers: headersTimeout, request: requestTimeout } = this.#options.within ?? WITHIN
    const options = { ...OPTIONS, headersTimeout, requestTimeout }
    const server = secure ? this.#encrypted(options, answer) : createServer(options, answer)
    server.on(secure ? 'secureConnection' : 'connection', (socket: Socket) => {
      this.#heard = performance.now()
      this.#stalled.watch(socket)
    })
    // The handler decides whether to ask for the rest of the request.
    server.on('checkContinue', answer)
    const unsupported = new Fault('expectationFailed', 'Unsupported Expect header: only "100-continue" is supported')
    server.on('checkExpectation', (request, response) => this.#refuseRequest(unsupported, request, response))
    server.on('clientError', (error, socket) => this.#refuse(error, socket as Socket))
    this.#connections.watch(server, secure)
    // More than the bridge accepts: Node would drop further headers silently, but the bridge must refuse them.
    server.maxHeadersCount = 200
    return server
  }

  /** Waits until no client is expected. */
  async #quiet(): Promise<void> {
    const latest = performance.now() + MOST_QUIET
    while (performance.now() < Math.min(latest, this.#heard + QUIET)) {
      await pause(QUIET_LOOK)
      // If the event loop was blocked, the timer fires before pending connections are accepted.
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  readonly #answer = (request: IncomingMessage, response: ServerResponse): void => {
    if (!this.#connections.requestBegins(request.socket, response))
      return this.#refuseRequest(this.#tooMany(), request, response)
    if (this.#isLeaving) this.#isLast(response)
    if (this.#held) this.#held.push(() => this.front.routing(request, response))
    else this.front.routing(request, response)
  }

  /** An answer ends its connection, if its head has not been sent. */
  #isLast(response: ServerResponse): void {
    if (!response.headersSent) response.shouldKeepAlive = false
    response.once('close', () => {
      this.#heard = performance.now()
    })
  }

  /** A server with TLS. When its certificate changes, open connections stay, and new ones use the new certificate. */
  #encrypted(options: ServerOptions, answer: RequestListener): Server {
    const { pem } = this.#options
    if (!pem) throw new TypeError('TLS requires a certificate')
    let used = pem.current
    const server = createTlsServer({ ...options, ...used, handshakeTimeout: HANDSHAKE, minVersion: 'TLSv1.2' }, answer)
    const look = () => {
      const now = pem.current
      if (now !== used) server.setSecureContext(now)
      used = now
    }
    const looking = setInterval(look, CERTIFICATE_CHECK).unref()
    server.once('close', () => clearInterval(looking))
    return server
  }

  #tooMany(): Fault {
    const { maxConnectionsOption: option } = this.#options
    const bound = `at most ${this.#connections.most}${option === undefined ? '' : `, ${option}`}`
    return new Fault('overloaded', `Too many connections (${bound})`, { retryAfter: 1 })
  }

  /** Refuses a request in place of the handler, and ends its connection. */
  #refuseRequest(fault: Fault, { socket }: IncomingMessage, response: ServerResponse): void {
    this.#options.refused(fault, { from: socket.remoteAddress })
    const body = textOf(fault)
    response.writeHead(fault.status, { ...headersOf(fault, body), connection: 'close' }).end(body)
  }

  /** Refuses a request that Node cannot parse, or that arrives too slowly. */
  #refuse(error: Error & { code?: string }, socket: Socket): void {
    // Without a handshake, no answer can be sent.
    if (/^ERR_(?:SSL|TLS)_/.test(error.code ?? '')) {
      this.#options.refused(new Fault('invalidRequest', `TLS handshake failed (${error.code})`), {
        from: socket.remoteAddress,
      })
      socket.destroy()
      return
    }
    refuseUnparsed(error, socket, (fault) => this.#options.refused(fault, { from: socket.remoteAddress }))
  }
}
