/** Bounds the open connections of HTTP servers: if there are too many, one without a request is closed. */
import type { Server } from 'node:http'
import type { Socket } from 'node:net'

/** Connections beyond the bound that are kept open until their request is refused. */
const EXCESS = 64

interface Connection {
  socket: Socket
  /** The set of silent connections that it is in; undefined while it has a request. */
  silent: Silent | undefined
  /** Requests in progress. */
  requests: number
  /** It was opened when all others were in use, so its first request is refused. */
  isExcess: boolean
}

/** Connections without a request, in the order in which they became silent. */
type Silent = Set<Connection>

/**
 * A bound of connections. A new one beyond it takes the place of the one that has been without a request for longest: of
 * those that have sent none yet, else of the others. If none is silent, the first request on the new one must be refused.
 */
export class Connections {
  most: number
  readonly #all = new Set<Connection>()
  readonly #bySocket = new WeakMap<Socket, Connection>()
  /** Connections that have not completed the TLS handshake, by their endpoints. */
  readonly #plain = new Map<string, Connection>()
  readonly #unused: Silent = new Set()
  readonly #idle: Silent = new Set()
  readonly #excess: Silent = new Set()

  constructor(most: number) {
    this.most = most
  }

  /** Bounds the connections of a server. `secure`: with TLS. */
  watch(server: Server, secure = false): void {
    server.on('connection', (socket: Socket) => this.#enter(socket, secure))
    if (!secure) return
    server.on('secureConnection', (socket: Socket) => {
      const ends = endsOf(socket)
      const connection = this.#plain.get(ends)
      if (!connection) return
      this.#plain.delete(ends)
      connection.socket = socket
      this.#bySocket.set(socket, connection)
    })
  }

  /** Counts a request until its response is closed. Returns whether it may be answered; otherwise it must be refused. */
  requestBegins(socket: Socket, response: { on(event: 'close', listener: () => void): unknown }): boolean {
    const connection = this.#bySocket.get(socket)
    if (!connection || !this.#all.has(connection)) return true
    connection.silent?.delete(connection)
    connection.silent = undefined
    connection.requests++
    response.on('close', () => {
      connection.requests--
      if (connection.requests > 0 || !this.#all.has(connection)) return
      connection.silent = this.#idle
      this.#idle.add(connection)
    })
    if (this.#all.size <= this.most) connection.isExcess = false
    return !connection.isExcess
  }

  #enter(socket: Socket, secure: boolean): void {
    const connection: Connection = { socket, silent: undefined, requests: 0, isExcess: false }
    const ends = secure ? endsOf(socket) : undefined
    socket.once('close', () => {
      if (ends !== undefined && this.#plain.get(ends) === connection) this.#plain.delete(ends)
      this.#leave(connection)
    })
    const isFull = this.#all.size >= this.most && !this.#makeRoom()
    this.#all.add(connection)
    this.#bySocket.set(socket, connection)
    if (ends !== undefined) this.#plain.set(ends, connection)
    connection.isExcess = isFull
    if (isFull && this.#excess.size >= EXCESS) this.#close(this.#excess)
    connection.silent = isFull ? this.#excess : this.#unused
    connection.silent.add(connection)
  }

  #makeRoom(): boolean {
    return this.#close(this.#unused) || this.#close(this.#idle)
  }

  /** Closes the first one of them, if there is one. */
  #close(silent: Silent): boolean {
    const [first] = silent
    if (!first) return false
    this.#leave(first)
    first.socket.destroy()
    return true
  }

  #leave(connection: Connection): void {
    this.#all.delete(connection)
    connection.silent?.delete(connection)
    connection.silent = undefined
  }
}

/** Both endpoints of a connection: equal for the TCP socket and for the TLS socket on top of it. */
function endsOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`
}
