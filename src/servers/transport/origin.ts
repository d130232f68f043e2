/** The HTTP origin of a server: its connections, the credential of each request, and bounded reading of its answers. */

import type { Dispatcher } from 'undici'
import { needsSignIn } from '../../base/fault/fault.js'
import { type Memory, NOBODY, type Reservation, SMALL, unlimited } from '../../base/limits/memory.js'
import { Gathering } from '../../base/rpc/gathering.js'
import { SseDecoder, SseError, type SseEvent } from '../../base/rpc/sse.js'
import { headerOf } from '../../base/texts/headers.js'
import { HangUp, type Signal } from '../../base/time/hang-up.js'
import { within } from '../../base/time/time.js'
import { atTurnEnd } from '../../base/time/turn.js'
import { type Account, MAX_RETRIES, needsProof, refusedCredential } from '../../mcp/protocol/account.js'
import { Lanes } from '../lanes.js'
import {
  type BodyKind,
  channelError,
  MAX_QUOTED_BYTES,
  type OriginAnswer,
  overLimit,
  type ResponseHeaders,
  refused,
  undecodedIn,
} from './answers.js'
import { ChannelError, type MessageLengths, noMemoryForAnswer } from './channel.js'
import type { Cookies } from './cookies.js'
import { Redirects } from './redirects.js'
import { Slices } from './slices.js'
import { type ConnectionOptions, openPool } from './undici-pool.js'

export type OriginHeaders = Readonly<Record<string, string>>
export interface OriginOptions extends ConnectionOptions {
  url: URL
  /** The name of the server in messages; by default its address without the query. */
  target?: string | undefined
  /** Sent with every request, for example credentials. Names in lower case. */
  headers?: OriginHeaders
  /** Maximum bytes of a JSON answer, and of one event. */
  bodyLimit?: number
  /** Maximum bytes of one event stream. */
  streamLimit?: number
  /** The ledger for bytes that have been read and not yet delivered. */
  memory?: Memory
  /** Several clients may call the server. */
  isShared?: boolean
  /** The name of the address, if the server has several. */
  address?: string | undefined
}

export interface HttpRequest {
  method: 'GET' | 'POST' | 'DELETE'
  path?: string | undefined
  /** All headers, including those of the origin. */
  headers: OriginHeaders
  body?: string | Uint8Array | undefined
  /** The cookies of its session: those that the answer sets are kept. */
  cookies?: Cookies | undefined
  /** Whether to follow redirects: `once` for this request only, otherwise for later ones of its principal, too. */
  follows?: boolean | 'once'
  /** The principal that waits for the answer. Memory for it is reserved in its name. */
  principal?: string | undefined
}

/** Receives an answer piece by piece. An error that it throws ends the request. */
export interface Reader {
  /** The path to which the request was sent last. */
  path?: string
  /** The request has been started. `abort` ends it at any time. */
  onStart?(abort: () => void): void
  onHead(status: number, headers: ResponseHeaders): BodyKind
  onEvent?(event: SseEvent, decoder: SseDecoder): void
  /** Whether a stream is of several calls: then it goes on after an event that is too long. */
  isShared?: boolean
  /** Whether events have all their bytes. */
  keepsRaw?: boolean
  /** So many bytes of a message have arrived, and it is not whole. Not called for small ones. */
  onPart?(bytes: number): void
}

/** Milliseconds that requests have to end when the connections are closed. */
const CLOSING = 5_000
/** For requests that nothing ends early. */
const NEVER: Signal = new HangUp()

export class Origin {
  readonly url: URL
  readonly address: string | undefined
  readonly headers: OriginHeaders
  readonly memory: Memory
  /** In which calls take turns, if several clients may call the server. */
  readonly lanes: Lanes | undefined
  readonly redirects: Redirects
  /** Most bytes of an answer that is not a stream. */
  bodyLimit: number
  streamLimit: number
  /** Resolves to the connections. A bridge with only stdio servers never loads undici. */
  readonly dispatcher: Promise<Dispatcher>
  /** The connections, after undici is loaded. */
  #pool: Dispatcher | undefined

  constructor(options: OriginOptions) {
    const { url, headers, memory = unlimited(), isShared = false, address } = options
    this.url = url
    this.address = address
    this.redirects = new Redirects(url)
    this.memory = memory
    this.lanes = isShared ? new Lanes(memory) : undefined
    this.headers = { 'accept-encoding': 'identity', ...headers }
    this.bodyLimit = options.bodyLimit ?? 16 * 1024 * 1024
    this.streamLimit = options.streamLimit ?? 64 * 1024 * 1024
    this.dispatcher = openPool(url, options).then((pool) => {
      this.#pool = pool.compose(inARow)
      return this.#pool
    })
  }

  limit({ answer, stream }: MessageLengths): void {
    this.bodyLimit = answer
    this.streamLimit = stream
  }

  /**
   * Sends a request, and gives the pieces of the answer to `reader`: along redirects, and with the credential of an account
   * if there is one. If the server refuses the credential, repeats the request with another one; that is safe, because the
   * server has not acted on it. Rejects with a ChannelError, or with a Fault if there is no credential.
   */
  async askOrigin(
    request: HttpRequest,
    reader: Reader,
    account?: Account,
    signal: Signal = NEVER,
  ): Promise<OriginAnswer> {
    const { principal = NOBODY, cookies, follows } = request
    const { header = 'authorization' } = account ?? {}
    const { redirects } = this
    let path = request.path ?? redirects.pathFor(principal)
    for (let times = 0; ; times++) {
      reader.path = path
      const first = account?.authorization(signal)
      let authorization = typeof first === 'object' ? await first : first
      if (cookies?.settled) await cookies.settled
      const headers = cookies?.addTo(path, request.headers) ?? request.headers
      let answer: OriginAnswer
      for (let retries = 0; ; retries++) {
        const proof =
          authorization !== undefined && header === 'authorization' && needsProof(authorization)
            ? await account?.proof?.({ authorization, method: request.method, url: this.url.origin + path })
            : undefined
        const proven = proof === undefined ? headers : { ...headers, dpop: proof }
        const sent = authorization === undefined ? proven : { ...proven, [header]: authorization }
        answer = await this.#askOnce(request, path, sent, reader)
        if (answer.status >= 400) answer.sent = sent as Record<string, string>
        const nonce = proof === undefined ? undefined : headerOf(answer.headers, 'dpop-nonce')
        if (nonce !== undefined && answer.status < 400) account?.nonce?.(nonce)
        if (!account || answer.status < 400 || retries === MAX_RETRIES) break
        const refusal = refusedCredential(answer.status, answer.headers['www-authenticate'], authorization, nonce)
        if (!refusal) break
        const refusedAnswer = answer
        authorization = await account.refused(refusal, signal).catch((error: unknown) => {
          // The server's own refusal becomes the cause, for the operator.
          if (needsSignIn(error)) error.cause ??= refused(refusedAnswer)
          throw error
        })
      }
      const isFinal = !follows || answer.status < 300
      const next = isFinal ? undefined : redirects.next(follows === 'once' ? undefined : principal, path, answer, times)
      if (next === undefined) return answer
      path = next
    }
  }

  #askOnce(request: HttpRequest, path: string, headers: OriginHeaders, reader: Reader): Promise<OriginAnswer> {
    return new Promise((resolve, reject) => {
      const { method, body = null } = request
      const options = { method, path, headers, body }
      const answering = new Answering(reader, this, { ...request, path }, { resolve, reject })
      if (this.#pool) this.#pool.dispatch(options as Dispatcher.DispatchOptions, answering)
      else this.dispatcher.then((pool) => pool.dispatch(options as Dispatcher.DispatchOptions, answering)).catch(reject)
    })
  }

  async close(hurry = false): Promise<void> {
    const pool = await this.dispatcher
    // The server may have acted on what it has.
    const cut = () => pool.destroy(new ChannelError('The bridge has closed its connections to the server'))
    if (hurry) return cut()
    // Requests of this turn are sent at its end.
    await new Promise<void>((resolve) => atTurnEnd(resolve))
    await within(pool.close(), CLOSING, cut)
  }
}

/** A transport to one origin. */
export abstract class OriginTransport {
  readonly origin: Origin
  readonly target: string

  constructor(options: OriginOptions) {
    this.origin = new Origin(options)
    this.target = options.target ?? options.url.origin + options.url.pathname
  }

  limit(lengths: MessageLengths): void {
    this.origin.limit(lengths)
  }

  close(hurry = false): Promise<void> {
    return this.origin.close(hurry)
  }
}

/** Delays requests to the end of the turn of the event loop, so that they are sent in a row (see base/time/turn.ts). */
function inARow(dispatch: Dispatcher.Dispatch): Dispatcher.Dispatch {
  return (options, handler) => {
    atTurnEnd(() => dispatch(options, handler))
    return true
  }
}

interface Settle {
  resolve(answer: OriginAnswer): void
  reject(error: ChannelError): void
}

class Answering implements Dispatcher.DispatchHandler {
  readonly #reader: Reader
  readonly #origin: Origin
  readonly #request: HttpRequest & { path: string }
  readonly #settle: Settle
  /** The reservation for received and undelivered bytes. Small amounts are free. */
  #reservation: Reservation | undefined
  /** The first piece of the body, and the others. */
  #first: Buffer | undefined
  #others: Gathering | undefined
  #kind: BodyKind = 'nothing'
  #status = 0
  #headers: ResponseHeaders = {}
  #length = 0
  #events: SseDecoder | undefined
  #slices: Slices<SseEvent> | undefined

  constructor(reader: Reader, origin: Origin, request: HttpRequest & { path: string }, settle: Settle) {
    this.#reader = reader
    this.#origin = origin
    this.#request = request
    this.#settle = settle
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#reader.onStart?.(() => controller.abort(new ChannelError('The request was aborted')))
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[]>,
  ): void {
    if (status < 200) return
    this.#status = status
    this.#headers = headers
    const { cookies, path } = this.#request
    if (headers['set-cookie'] !== undefined) cookies?.keepFrom(path, headers)
    try {
      this.#kind = this.#reader.onHead(status, this.#headers)
      const isCoded = this.#kind !== 'nothing' && headers['content-encoding'] !== undefined
      const undecoded = isCoded ? undecodedIn(headers) : undefined
      if (undecoded) throw undecoded
    } catch (error) {
      controller.abort(error as Error)
      return
    }
    if (this.#kind === 'events') {
      const { isShared, keepsRaw } = this.#reader
      this.#events = new SseDecoder(this.#origin.bodyLimit, isShared ? 'outlined' : 'fails', keepsRaw)
      this.#slices = new Slices(
        (event) => this.#handOn(event, controller),
        () => controller.resume(),
      )
    }
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#length += chunk.length
    try {
      if (this.#kind === 'events') this.#readEvents(chunk, controller)
      else if (this.#kind === 'beginning') this.#keepBeginning(chunk, controller)
      else if (this.#kind === 'whole') {
        if (this.#length > this.#origin.bodyLimit) throw overLimit(this.#origin.bodyLimit)
        // Most are small.
        if (this.#length > SMALL && !this.#hasRoom(this.#length)) throw noMemoryForAnswer()
        if (!this.#first) this.#first = chunk
        else {
          this.#others ??= new Gathering()
          this.#others.push(chunk)
        }
      }
    } catch (error) {
      controller.abort(error as Error)
    }
  }

  /** Keeps what is quoted. The rest is not waited for, because it may have no end. */
  #keepBeginning(chunk: Buffer, controller: Dispatcher.DispatchController): void {
    const excess = this.#length - MAX_QUOTED_BYTES
    this.#others ??= new Gathering()
    this.#first ??= Buffer.alloc(0)
    this.#others.push(excess > 0 ? chunk.subarray(0, chunk.length - excess) : chunk)
    if (excess <= 0) return
    this.onResponseEnd()
    controller.abort(new ChannelError('The request was aborted'))
  }

  onResponseEnd(): void {
    this.#reservation?.end()
    const body = this.#first ? [this.#first, ...(this.#others?.take() ?? [])] : []
    const answer = { status: this.#status, kind: this.#kind, headers: this.#headers, body }
    if (this.#slices) this.#slices.finish(() => this.#settle.resolve(answer))
    else this.#settle.resolve(answer)
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#reservation?.end()
    const reject = () => this.#settle.reject(channelError(error))
    // Events that arrived before the stream broke may contain the answer.
    if (this.#slices) this.#slices.finish(reject)
    else reject()
  }

  #readEvents(chunk: Buffer, controller: Dispatcher.DispatchController): void {
    if (this.#length > this.#origin.streamLimit)
      throw new ChannelError(
        `The server sent a stream of more than ${this.#origin.streamLimit} bytes (limits.streamBytes)`,
        {
          protocol: true,
        },
      )
    const decoder = this.#events as SseDecoder
    const slices = this.#slices as Slices<SseEvent>
    slices.deliver(decoder.push(chunk))
    // It is that of one client now.
    if (decoder.isTooLong && !this.#reader.isShared) throw new SseError(this.#origin.bodyLimit)
    if (slices.busy) controller.pause()
    // Without memory for an event, only this event is dropped: other events may follow in the stream.
    if (this.#hasRoom(decoder.kept)) return
    decoder.skip()
    this.#hasRoom(decoder.kept)
  }

  #handOn(event: SseEvent, controller: Dispatcher.DispatchController): void {
    try {
      this.#reader.onEvent?.(event, this.#events as SseDecoder)
    } catch (error) {
      this.#slices?.clear()
      controller.abort(error as Error)
    }
  }

  /** Reserves `bytes` in total. Returns whether there is memory for them. */
  #hasRoom(bytes: number): boolean {
    if (bytes <= SMALL && !this.#reservation) return true
    this.#reader.onPart?.(bytes)
    this.#reservation ??= this.#origin.memory.reserve(this.#request.principal ?? NOBODY, SMALL)
    return this.#reservation.resize(bytes) === undefined
  }
}
