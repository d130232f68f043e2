/** Receives the answer of another replica to a forwarded request: a small one whole, any other as a stream. */
import { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import type { Signal } from '../time/hang-up.js'
import { isOfConnection } from './proof.js'

/** Bytes of an answer that is received whole: cheaper than a stream. */
const SMALL = 64 * 1024

type Headers = Readonly<Record<string, string | string[]>>

export interface Received {
  status: number
  /** By lower-cased name, without those of a single connection. */
  headers: Headers
  body: Buffer | Readable
}

interface Settle {
  resolve(received: Received): void
  reject(error: Error): void
  /** Called once, when nothing more will come. */
  over(): void
}

/** Handles one answer. */
export class Receiving implements Dispatcher.DispatchHandler {
  readonly #settle: Settle
  readonly #signal: Signal
  #abort: (() => void) | undefined
  #status = 0
  #headers: Headers = {}
  /** The pieces of a small answer. */
  #pieces: Buffer[] | undefined
  #stream: Readable | undefined

  constructor(signal: Signal, settle: Settle) {
    this.#signal = signal
    this.#settle = settle
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    const abort = () => controller.abort(new Error('The client has disconnected'))
    if (this.#signal.aborted) return abort()
    this.#abort = abort
    this.#signal.addEventListener('abort', abort)
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[]>,
  ): void {
    if (status < 200) return
    this.#status = status
    const carried: Record<string, string | string[]> = {}
    for (const name in headers) if (!isOfConnection(name)) carried[name] = headers[name] as string
    this.#headers = carried
    const length = headers['content-length']
    if (length !== undefined && Number(length) <= SMALL) {
      this.#pieces = []
      return
    }
    const stream = new Readable({
      read: () => controller.resume(),
      destroy: (error, done) => {
        controller.abort(error ?? new Error('The answer is not wanted any more'))
        done(error)
      },
    })
    this.#stream = stream
    this.#settle.resolve({ status, headers: carried, body: stream })
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#pieces) this.#pieces.push(chunk)
    else if (this.#stream?.push(chunk) === false) controller.pause()
  }

  onResponseEnd(): void {
    this.#end()
    if (!this.#pieces) {
      this.#stream?.push(null)
      return
    }
    const [first, ...others] = this.#pieces
    const body = first && others.length === 0 ? first : Buffer.concat(this.#pieces)
    this.#settle.resolve({ status: this.#status, headers: this.#headers, body })
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#end()
    if (this.#stream) this.#stream.destroy(error)
    else this.#settle.reject(error)
  }

  #end(): void {
    if (this.#abort) this.#signal.removeEventListener('abort', this.#abort)
    this.#settle.over()
  }
}

/** Ends an answer that nobody wants. */
export function discard({ body }: Pick<Received, 'body'>): void {
  if (body instanceof Readable) body.on('error', () => {}).destroy()
}
