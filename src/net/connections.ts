/** The open connections of HTTP servers, and which of them are silent: those are closed when there are too many. */
import type { Server } from 'node:http'
import type { Socket } from 'node:net'

/** Connections beyond the bound that are kept open until their request is refused. */
const EXCESS = 64

interface Connection {
  socket: Socket
  /** Requests in progress. */
  requests: number
  /** It was opened when all others were in use. */
  isExcess: boolean
}

/** Connections are in the order in which they have become silent. */
type Silent = Map<unknown, Connection>

/**
 * A bound of connections. A new one beyond it takes the place of the one that has been without a request for longest: of
 * those that have sent none yet, else of the others. If none is silent, the first request on the new one is to be refused.
 */
export class Connections {
  most: number
  readonly #all = new Map<unknown, Connection>()
  readonly #unused: Silent = new Map()
  readonly #idle: Silent = new Map()
  readonly #excess: Silent = new Map()

  constructor(most: number) {
    this.most = most
  }

  /** Bounds the connections of a server. `secure`: with TLS. */
  watch(server: Server, secure = false): void {
    server.on('connection', (socket: Socket) => this.#enter(socket))
    if (!secure) return
    server.on('secureConnection', (socket: Socket) => {
      const connection = this.#all.get(keyOf(socket))
      if (connection) connection.socket = socket
    })
  }

  /** Notes a request, until its response is closed. Returns whether it may be answered: if not, it is to be refused. */
  begin(socket: Socket, response: { on(event: 'close', listener: () => void): unknown }): boolean {
    const key = keyOf(socket)
    const connection = this.#all.get(key)
    if (!connection) return true
    this.#isHeard(key)
    connection.requests++
    response.on('close', () => {
      connection.requests--
      if (connection.requests === 0 && this.#all.get(key) === connection) this.#idle.set(key, connection)
    })
    if (this.#all.size <= this.most) connection.isExcess = false
    return !connection.isExcess
  }

  #enter(socket: Socket): void {
    const key = keyOf(socket)
    const connection: Connection = { socket, requests: 0, isExcess: false }
    socket.once('close', () => this.#leave(key, connection))
    const isFull = this.#all.size >= this.most && !this.#makeRoom()
    this.#all.set(key, connection)
    connection.isExcess = isFull
    if (!isFull) this.#unused.set(key, connection)
    else {
      if (this.#excess.size >= EXCESS) this.#close(this.#excess)
      this.#excess.set(key, connection)
    }
  }

  #makeRoom(): boolean {
    return this.#close(this.#unused) || this.#close(this.#idle)
  }

  /** Closes the first one of them, if there is one. */
  #close(silent: Silent): boolean {
    const [first] = silent
    if (!first) return false
    const [key, connection] = first
    this.#leave(key, connection)
    connection.socket.destroy()
    return true
  }

  #leave(key: unknown, connection: Connection): void {
    if (this.#all.get(key) !== connection) return
    this.#all.delete(key)
    this.#isHeard(key)
  }

  #isHeard(key: unknown): void {
    for (const silent of [this.#unused, this.#idle, this.#excess]) silent.delete(key)
  }
}

/** The same for a connection and for what TLS makes of it: its other end. A unix socket has no TLS, and no such address. */
function keyOf(socket: Socket): unknown {
  const { remoteAddress, remotePort, localAddress, localPort } = socket
  return remotePort === undefined ? socket : `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`
}
