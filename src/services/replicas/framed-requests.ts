/** Sends requests to another replica as frames, many at a time on one connection. */
import type { Duplex } from 'node:stream'
import type { Dispatcher } from 'undici'
import type { Tags } from './encryption.js'
import type { Exchanged } from './exchange.js'
import { ABORT, DATA, Frames, HEAD, headIn, LEAVE, PAUSE, RESUME, type ReplicaFrame } from './frames.js'

const MAX_NUMBER = 2 ** 32

/** The connection. It takes requests as an HTTP client does. */
export class FramedRequests {
  readonly #frames: Frames
  readonly #asked = new Map<number, Asked>()
  readonly #left: () => void
  #next = 0
  #leaves = false

  /** `left` is called when the connection takes no more requests. */
  constructor(socket: Duplex, sent: Tags | undefined, left: () => void) {
    this.#left = left
    this.#frames = new Frames(socket, { sent, take: (frame) => this.#take(frame), closed: () => this.#closed() })
  }

  dispatch({ method, path, headers, body }: Exchanged, handler: Dispatcher.DispatchHandler): void {
    const id = this.#number()
    const frames = this.#frames
    const over = () => this.#over(id)
    const asked = new Asked(id, { frames, handler, over })
    this.#asked.set(id, asked)
    handler.onRequestStart?.(asked, {})
    if (asked.aborted) return
    const length = body ? ['content-length', String(body.length)] : []
    frames.send(HEAD, id, Buffer.from(JSON.stringify([method, path, [...headers, ...length]])), !body)
    if (body) frames.send(DATA, id, body, true)
  }

  /** Ends when all requests are answered. */
  leave(): void {
    if (this.#leaves) return
    this.#leaves = true
    this.#left()
    if (this.#asked.size === 0) this.#frames.destroy()
  }

  destroy(): void {
    this.leave()
    this.#frames.destroy()
  }

  #number(): number {
    do this.#next = (this.#next + 1) % MAX_NUMBER
    while (this.#asked.has(this.#next))
    return this.#next
  }

  #take(frame: ReplicaFrame): void {
    if (frame.kind === LEAVE) this.leave()
    else this.#asked.get(frame.id)?.take(frame)
  }

  #over(id: number): void {
    this.#asked.delete(id)
    if (this.#leaves && this.#asked.size === 0) this.#frames.destroy()
  }

  #closed(): void {
    this.leave()
    for (const asked of this.#asked.values()) asked.fail()
  }
}

interface AskedOptions {
  frames: Frames
  handler: Dispatcher.DispatchHandler
  over(): void
}

/** One request. */
class Asked implements Dispatcher.DispatchController {
  aborted = false
  paused = false
  reason: Error | null = null
  readonly #id: number
  readonly #options: AskedOptions

  constructor(id: number, options: AskedOptions) {
    this.#id = id
    this.#options = options
  }

  abort(reason: Error): void {
    if (this.aborted) return
    this.#options.frames.send(ABORT, this.#id)
    this.#fail(reason)
  }

  pause(): void {
    if (this.paused) return
    this.paused = true
    this.#options.frames.send(PAUSE, this.#id)
  }

  resume(): void {
    if (!this.paused) return
    this.paused = false
    this.#options.frames.send(RESUME, this.#id)
  }

  /** The other replica is gone, or has broken off. */
  fail(): void {
    this.#fail(Object.assign(new Error('The other replica has closed the connection'), { code: 'ECONNRESET' }))
  }

  take({ kind, bytes, isLast }: ReplicaFrame): void {
    const { handler, over, frames } = this.#options
    if (kind === HEAD) {
      const [status, headers] = headIn(bytes) ?? []
      if (!Number.isInteger(status) || typeof headers !== 'object' || !headers) return frames.destroy()
      handler.onResponseStart?.(this, status as number, headers as Record<string, string | string[]>)
    } else if (kind === DATA && bytes.length > 0) handler.onResponseData?.(this, bytes)
    else if (kind === ABORT) return this.fail()
    if (!isLast || this.aborted) return
    over()
    handler.onResponseEnd?.(this, {})
  }

  #fail(reason: Error): void {
    this.aborted = true
    this.reason = reason
    this.#options.over()
    this.#options.handler.onResponseError?.(this, reason)
  }
}
