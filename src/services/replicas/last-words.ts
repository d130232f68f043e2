/**
 * Works around a gap of @redis/client 6.3: a Redis that lets nobody in (protected mode, too many clients) says so and closes the
 * connection, but the library reports only that it was closed.
 */
import { createClient } from '@redis/client'
import { ownerOf } from './destroyed.js'

/** A client of the library, with the methods that give access to its socket. */
interface Client {
  connect(): Promise<unknown>
  _ejectSocket(): Socket
  _insertSocket(socket: Socket): void
}

interface Socket {
  on(event: 'connect' | 'ready', listener: () => void): this
  on(event: 'data', listener: (chunk: Buffer) => void): this
  on(event: 'error', listener: (error: Error) => void): this
}

/** Most characters of the words. */
const MOST = 500
const LINE = /^-([^\r\n]+)/

/** Patches the library, so that the error of a connection that was closed before its first use has the words of Redis. Must be called once. */
export function hearLastWords(): void {
  const prototype = ownerOf(createClient(), 'connect') as Client
  const { connect } = prototype
  prototype.connect = function (this: Client) {
    const socket = this._ejectSocket()
    let words: string | undefined
    let isReady = false
    socket
      .on('connect', () => {
        words = undefined
        isReady = false
      })
      .on('ready', () => {
        isReady = true
      })
      .on('data', (chunk) => {
        if (!isReady) words ??= LINE.exec(chunk.toString('latin1', 0, MOST))?.[1]
      })
      // The first listener of this event: later ones see the words.
      .on('error', (error) => {
        if (!isReady && words !== undefined && isLoss(error)) error.message = words
      })
    this._insertSocket(socket)
    return connect.call(this)
  }
}

/** The connection was closed, or reset because Redis closed it without reading. */
function isLoss(error: NodeJS.ErrnoException): boolean {
  return (
    error.constructor.name === 'SocketClosedUnexpectedlyError' || error.code === 'ECONNRESET' || error.code === 'EPIPE'
  )
}
