/**
 * Sends a request to another replica and reads its answer: a small one whole, any other as a stream. It takes a third less CPU than
 * the HTTP client's own `request`, which makes a stream, an abort listener and several promises for each answer.
 */
import { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import type { Signal } from '../../base/time/hang-up.js'
import { atTurnEnd } from '../../base/time/turn.js'
import type { ForwardedAnswer } from '../../mcp/ports/replicas.js'
import { isOfConnection } from './proof.js'

export interface Exchanged {
  method: string
  path: string
  /** Names and values in turn. */
  headers: string[]
  body: Uint8Array | null
}

export type PeerAnswer = Omit<ForwardedAnswer, 'lost'>

/** What takes requests: the HTTP client, or a connection for frames. */
export interface Dispatching {
  dispatch(request: Exchanged, handler: Dispatcher.DispatchHandler): unknown
}

interface Settle {
  resolve(answer: PeerAnswer): void
  reject(error: unknown): void
}

/** Bytes of an answer that is read whole, and of any other that wait to be read before the other replica pauses. */
const SMALL = 64 * 1024
const WAITING = 256 * 1024

/** Resolves when the answer is there, or begins. Rejects if it does not come, or the signal aborts. */
export function exchange(to: Dispatching, request: Exchanged, signal: Signal): Promise<PeerAnswer> {
  return new Promise((resolve, reject) => {
    const reading = new Reading(signal, { resolve, reject })
    // Requests of one turn are sent in a row. An error is told to the handler.
    atTurnEnd(() => to.dispatch(request, reading))
  })
}

class Reading implements Dispatcher.DispatchHandler {
  readonly #signal: Signal
  readonly #settle: Settle
  readonly #leave = () => this.#abort(this.#signal.reason)
  #controller: Dispatcher.DispatchController | undefined
  #status = 0
  #headers: ForwardedAnswer['headers'] = {}
  #pieces: Buffer[] = []
  /** The body of an answer that is not small. */
  #stream: Readable | undefined
  #isOver = false

  constructor(signal: Signal, settle: Settle) {
    this.#signal = signal
    this.#settle = settle
    signal.addEventListener('abort', this.#leave)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#signal.aborted) this.#leave()
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[]>,
  ): void {
    if (status < 200) return
    this.#status = status
    this.#headers = Object.fromEntries(Object.entries(headers).filter(([name]) => !isOfConnection(name)))
    if (Number(headers['content-length'] ?? Number.NaN) <= SMALL) return
    const stream = new Readable({
      highWaterMark: WAITING,
      read: () => controller.resume(),
      destroy: (error, done) => {
        this.#abort(error ?? new Error('The answer is no longer read'))
        done(error)
      },
    })
    // Without a listener, an error after the last read would end the process.
    stream.on('error', () => {})
    this.#stream = stream
    this.#settle.resolve({ status, headers: this.#headers, body: stream })
  }

  onResponseData(controller: Dispatcher.DispatchController, piece: Buffer): void {
    if (!this.#stream) this.#pieces.push(piece)
    else if (!this.#stream.push(piece)) controller.pause()
  }

  onResponseEnd(): void {
    this.#over()
    if (this.#stream) this.#stream.push(null)
    else this.#settle.resolve({ status: this.#status, headers: this.#headers, body: wholeOf(this.#pieces) })
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#over()
    if (this.#stream) this.#stream.destroy(error)
    else this.#settle.reject(error)
  }

  #abort(reason: unknown): void {
    if (this.#isOver) return
    this.#settle.reject(reason)
    this.#controller?.abort(reason as Error)
  }

  #over(): void {
    this.#isOver = true
    this.#signal.removeEventListener('abort', this.#leave)
  }
}

function wholeOf(pieces: Buffer[]): Buffer {
  const [first] = pieces
  return first && pieces.length === 1 ? first : Buffer.concat(pieces)
}
