/**
 * Receives requests of another replica as frames, and sends the answers. What answers them takes each for a request of Node's HTTP
 * server.
 */
import { EventEmitter } from 'node:events'
import { IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { type Duplex, Writable } from 'node:stream'
import type { Tags } from './encryption.js'
import { ABORT, DATA, Frames, HEAD, headIn, LEAVE, PAUSE, RESUME, type ReplicaFrame } from './frames.js'
import { distinctHeaders, joinedHeaders } from './joined-headers.js'

export interface FramedAnswersOptions {
  received: Tags | undefined
  answer: RequestListener
  closed(): void
}

type Done = (error?: Error | null) => void
type Headers = Record<string, number | string | readonly string[]>

/** The connection of one other replica. */
export class FramedAnswers {
  readonly #frames: Frames
  readonly #options: FramedAnswersOptions
  readonly #origin: EventEmitter
  readonly #open = new Map<number, { request: FramedRequest; response: FramedResponse }>()

  constructor(socket: Socket, options: FramedAnswersOptions) {
    const { remoteAddress, encrypted = false } = socket as Socket & { encrypted?: boolean }
    this.#options = options
    this.#origin = Object.assign(new EventEmitter(), { remoteAddress, encrypted, end: () => {}, destroy: () => {} })
    const drained = () => {
      for (const { response } of this.#open.values()) response.resume()
    }
    const take = (frame: ReplicaFrame) => this.#take(frame)
    this.#frames = new Frames(socket as Duplex, {
      received: options.received,
      take,
      drained,
      closed: () => this.#closed(),
    })
  }

  /** Asks the other replica to send no more requests here. */
  leave(): void {
    this.#frames.send(LEAVE, 0)
  }

  destroy(): void {
    this.#frames.destroy()
  }

  #take({ kind, id, bytes, isLast }: ReplicaFrame): void {
    if (kind === HEAD) this.#begin(id, bytes)
    const open = this.#open.get(id)
    if (!open) return
    const { request, response } = open
    if (kind === DATA && bytes.length > 0) request.push(bytes)
    else if (kind === PAUSE) response.isPaused = true
    else if (kind === RESUME) {
      response.isPaused = false
      response.resume()
    } else if (kind === ABORT) this.#end(id)
    if (!isLast) return
    request.complete = true
    request.push(null)
  }

  #begin(id: number, head: Buffer): void {
    const request = requestIn(head, this.#origin as Socket)
    if (!request) return this.destroy()
    const response = new FramedResponse(this.#frames, id)
    this.#open.set(id, { request, response })
    response.once('close', () => this.#open.delete(id))
    this.#options.answer(request, response as unknown as ServerResponse)
  }

  #end(id: number): void {
    const open = this.#open.get(id)
    this.#open.delete(id)
    open?.response.destroy()
    open?.request.destroy(new Error('aborted'))
  }

  #closed(): void {
    for (const id of this.#open.keys()) this.#end(id)
    this.#options.closed()
  }
}

/** The request that begins with a head; undefined if it is none. */
function requestIn(head: Buffer, origin: Socket): FramedRequest | undefined {
  const [method, path, headers] = headIn(head) ?? []
  if (typeof method !== 'string' || typeof path !== 'string' || !isTexts(headers)) return undefined
  return new FramedRequest(origin, { method, path, headers })
}

function isTexts(list: unknown): list is string[] {
  return Array.isArray(list) && list.every((one) => typeof one === 'string')
}

class FramedRequest extends IncomingMessage {
  constructor(origin: Socket, { method, path, headers }: { method: string; path: string; headers: string[] }) {
    super(origin)
    this.method = method
    this.url = path
    this.httpVersion = '1.1'
    this.httpVersionMajor = 1
    this.httpVersionMinor = 1
    this.rawHeaders = headers
    this.headers = joinedHeaders(headers)
  }

  /** Leaves its connection open, which has other requests. An error is for who reads the request. */
  override _destroy(error: Error | null, done: Done): void {
    this.aborted = !this.readableEnded || !this.complete
    done(this.listenerCount('error') > 0 ? error : null)
  }
}

// Made when it is read, which is hardly ever.
Object.defineProperty(FramedRequest.prototype, 'headersDistinct', {
  get(this: FramedRequest) {
    return distinctHeaders(this.rawHeaders)
  },
})

/** What is used of a ServerResponse. */
class FramedResponse extends Writable {
  statusCode = 200
  headersSent = false
  shouldKeepAlive = true
  isPaused = false
  readonly #frames: Frames
  readonly #id: number
  readonly #headers: Headers = {}
  #isHeadSent = false
  /** A write that waits until the reader goes on. */
  #waiting: Done | undefined

  constructor(frames: Frames, id: number) {
    super()
    this.#frames = frames
    this.#id = id
  }

  setHeader(name: string, value: Headers[string]): this {
    this.#headers[name.toLowerCase()] = value
    return this
  }

  getHeader(name: string): Headers[string] | undefined {
    return this.#headers[name.toLowerCase()]
  }

  hasHeader(name: string): boolean {
    return this.getHeader(name) !== undefined
  }

  getHeaders(): Headers {
    return this.#headers
  }

  removeHeader(name: string): void {
    delete this.#headers[name.toLowerCase()]
  }

  writeHead(status: number, headers: Headers = {}): this {
    this.statusCode = status
    this.headersSent = true
    for (const name of Object.keys(headers)) this.setHeader(name, headers[name] as Headers[string])
    return this
  }

  flushHeaders(): void {
    if (this.#isHeadSent) return
    this.headersSent = true
    this.#isHeadSent = true
    this.#frames.send(HEAD, this.#id, Buffer.from(JSON.stringify([this.statusCode, this.#headers])))
  }

  /** Goes on with a write that waits, if there is room. */
  resume(): void {
    if (this.isPaused || this.#frames.isFull) return
    const waiting = this.#waiting
    this.#waiting = undefined
    waiting?.()
  }

  /** Takes one piece, or all that wait: those of a large answer come together. */
  override _writev(chunks: { chunk: Buffer }[], done: Done): void {
    this.flushHeaders()
    for (const { chunk } of chunks) this.#frames.send(DATA, this.#id, chunk)
    this.#waiting = done
    this.resume()
  }

  override _final(done: Done): void {
    this.flushHeaders()
    this.#frames.send(DATA, this.#id, undefined, true)
    done()
  }

  override _destroy(_error: Error | null, done: Done): void {
    if (!this.writableFinished) this.#frames.send(ABORT, this.#id)
    done()
  }
}
