/** The HTTP origin of a server: its connections, and bounded ways to read what comes back. */

import { TextDecoder } from 'node:util'
import { buildConnector, type Dispatcher, Pool } from 'undici'
import { type Account, MAX_RETRIES, refusedCredential } from '../../protocol/account.js'
import { needsSignIn } from '../../protocol/fault.js'
import { type Loan, type Memory, NOBODY, SMALL, unlimited } from '../../protocol/memory.js'
import { refusalOf } from '../../protocol/refusal.js'
import { Gathering } from '../../rpc/gathering.js'
import { SseDecoder, SseError, type SseEvent } from '../../rpc/sse.js'
import { causeOf } from './causes.js'
import { answerTooLarge, ChannelError } from './channel.js'
import { readingToTheEnd } from './paused.js'
import { Slices } from './slices.js'

export type Headers = Readonly<Record<string, string>>
/** Makes a connection: a connector of undici. */
export type Connect = buildConnector.connector

export interface OriginOptions {
  url: URL
  /** Sent with every request: credentials, say. Names in lower case. */
  headers?: Headers
  /** Connections at once; calls beyond wait for one. */
  connections?: number
  connectTimeout?: number
  /** Makes the connections, where not every one will do. Nothing is sent through one that it refuses. */
  connect?: Connect | undefined
  /** Bytes of a JSON answer. */
  bodyLimit?: number
  /** Bytes of all that one stream of events carries. */
  streamLimit?: number
  /** Lends what is read and not taken yet. */
  memory?: Memory
}

export interface Question {
  method: 'GET' | 'POST' | 'DELETE'
  path?: string
  /** All of them: those of the origin included. */
  headers: Headers
  body?: string | undefined
  /** Who waits for the answer, and borrows for it. */
  principal?: string | undefined
}

/** What becomes of an answer, piece by piece. What it throws fails the exchange. */
export interface Reader {
  /** The request is on its way, and can be ended at any time. */
  start?(abort: () => void): void
  head(status: number, headers: AnswerHeaders): BodyKind
  event?(event: SseEvent, decoder: SseDecoder): void
}

/** How to read a body: as events, one by one; as a whole; or not at all. */
export type BodyKind = 'events' | 'whole' | 'nothing'

/** As undici gives them: names in lower case. */
export type AnswerHeaders = Readonly<Record<string, string | string[] | undefined>>

export interface Answer {
  status: number
  kind: BodyKind
  headers: AnswerHeaders
  /** The body, where it was read whole, in the pieces in which it came. */
  body: readonly Uint8Array[]
}

const DEFAULTS = {
  connections: 256,
  connectTimeout: 5_000,
  bodyLimit: 16 * 1024 * 1024,
  streamLimit: 64 * 1024 * 1024,
}
/** Bytes of a refusal that are looked at. */
const REFUSAL_BODY = 64 * 1024

export class Origin {
  readonly url: URL
  /** Go with every request. */
  readonly headers: Headers
  readonly memory: Memory
  readonly #pool: Pool
  readonly #limits: { body: number; stream: number }

  constructor(options: OriginOptions) {
    const {
      url,
      headers = {},
      connections,
      connectTimeout,
      connect,
      bodyLimit,
      streamLimit,
      memory = unlimited(),
    } = {
      ...DEFAULTS,
      ...options,
    }
    this.url = url
    this.memory = memory
    this.headers = { 'accept-encoding': 'identity', ...headers }
    this.#limits = { body: bodyLimit, stream: streamLimit }
    this.#pool = new Pool(url.origin, {
      connections,
      pipelining: 1,
      connect: readingToTheEnd(connect ? telling(connect) : buildConnector({ timeout: connectTimeout })),
      // How long an answer may take is for the call to say, not for the connection.
      headersTimeout: 0,
      bodyTimeout: 0,
      maxHeaderSize: 16 * 1024,
    })
  }

  /** Asks, and gives the answer's pieces to `reader`. Rejects with a ChannelError. */
  ask(question: Question, reader: Reader): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const { method, path = this.url.pathname + this.url.search, headers, body, principal = NOBODY } = question
      const borrow = () => this.memory.borrow(principal, SMALL)
      this.#pool.dispatch(
        { method, path, headers, body: body ?? null },
        new Answering(reader, this.#limits, { resolve, reject }, borrow),
      )
    })
  }

  /** The connections themselves. */
  get dispatcher(): unknown {
    return this.#pool
  }

  async close(): Promise<void> {
    await this.#pool.destroy()
  }
}

interface Settle {
  resolve(answer: Answer): void
  reject(error: ChannelError): void
}

/** Reads one answer as it comes in. */
class Answering implements Dispatcher.DispatchHandler {
  readonly #reader: Reader
  readonly #limits: { body: number; stream: number }
  readonly #settle: Settle
  readonly #borrow: () => Loan
  /** What has come and has not been taken, as far as it is not small. */
  #loan: Loan | undefined
  readonly #body = new Gathering()
  #kind: BodyKind = 'nothing'
  #status = 0
  #headers: AnswerHeaders = {}
  #length = 0
  #events: SseDecoder | undefined
  #utf8: TextDecoder | undefined
  #slices: Slices<SseEvent> | undefined

  constructor(reader: Reader, limits: { body: number; stream: number }, settle: Settle, borrow: () => Loan) {
    this.#reader = reader
    this.#limits = limits
    this.#settle = settle
    this.#borrow = borrow
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#reader.start?.(() => controller.abort(new ChannelError('Given up')))
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[]>,
  ): void {
    if (status < 200) return
    this.#status = status
    this.#headers = headers
    const encoding = headerOf(headers, 'content-encoding') ?? 'identity'
    if (encoding !== 'identity') {
      controller.abort(
        new ChannelError(`The server compresses its answer (${encoding}) without being asked to`, { protocol: true }),
      )
      return
    }
    try {
      this.#kind = this.#reader.head(status, this.#headers)
    } catch (error) {
      controller.abort(error as Error)
      return
    }
    if (this.#kind === 'events') {
      this.#events = new SseDecoder()
      this.#utf8 = new TextDecoder()
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
      else if (this.#kind === 'whole') this.#keep(chunk)
    } catch (error) {
      controller.abort(error as Error)
    }
  }

  onResponseEnd(): void {
    this.#loan?.end()
    const answer = { status: this.#status, kind: this.#kind, headers: this.#headers, body: this.#body.take() }
    if (this.#slices) this.#slices.finish(() => this.#settle.resolve(answer))
    else this.#settle.resolve(answer)
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#loan?.end()
    const reject = () => this.#settle.reject(channelError(error))
    // What came before the stream broke may have been the answer.
    if (this.#slices) this.#slices.finish(reject)
    else reject()
  }

  #readEvents(chunk: Buffer, controller: Dispatcher.DispatchController): void {
    if (this.#length > this.#limits.stream)
      throw new ChannelError(`A stream of over ${this.#limits.stream} bytes`, { protocol: true })
    const decoder = this.#events as SseDecoder
    const slices = this.#slices as Slices<SseEvent>
    slices.push(decoder.push((this.#utf8 as TextDecoder).decode(chunk, { stream: true })))
    if (slices.busy) controller.pause()
    this.#hold(decoder.pending)
  }

  #handOn(event: SseEvent, controller: Dispatcher.DispatchController): void {
    try {
      this.#reader.event?.(event, this.#events as SseDecoder)
    } catch (error) {
      this.#slices?.clear()
      controller.abort(error as Error)
    }
  }

  #keep(chunk: Buffer): void {
    if (this.#length > this.#limits.body)
      throw new ChannelError(`An answer of over ${this.#limits.body} bytes`, { protocol: true })
    this.#hold(this.#length)
    this.#body.push(chunk)
  }

  #hold(bytes: number): void {
    if (bytes <= SMALL && !this.#loan) return
    this.#loan ??= this.#borrow()
    if (this.#loan.hold(bytes)) throw answerTooLarge()
  }
}

/** A question with a credential. */
export function withCredential(question: Question, authorization: string): Question {
  return { ...question, headers: { ...question.headers, authorization } }
}

/**
 * Asks in the name of an account, and again with another credential where one was refused: the server has not acted on what
 * it refused so. Rejects with a Fault where there is no other credential.
 */
export async function askAs(
  account: Account | undefined,
  signal: AbortSignal,
  ask: (credential: string | undefined) => Promise<Answer>,
): Promise<Answer> {
  const first = account?.authorization(signal)
  let sent = typeof first === 'object' ? await first : first
  for (let retries = 0; ; retries++) {
    const answer = await ask(sent)
    const refusal = refusedCredential(answer.status, answer.headers['www-authenticate'], sent)
    if (!account || !refusal || retries === MAX_RETRIES) return answer
    sent = await account.refused(refusal, signal).catch((error: unknown) => {
      // What the server itself has said is for the operator.
      if (needsSignIn(error)) error.cause ??= refused(answer)
      throw error
    })
  }
}

/** The first value of a header. */
export function headerOf(headers: AnswerHeaders, name: string): string | undefined {
  const value = headers[name]
  return typeof value === 'string' ? value : value?.[0]
}

/** The media type of an answer, without its parameters. */
export function mediaType(headers: AnswerHeaders): string | undefined {
  const type = headerOf(headers, 'content-type')
  const end = type?.indexOf(';') ?? -1
  return (end < 0 ? type : type?.slice(0, end).trim())?.toLowerCase()
}

/** Throws where the answer is a refusal. */
export function refuse(answer: Answer): void {
  if (answer.status >= 300) throw refused(answer)
}

function refused({ status, headers, body }: Answer): ChannelError {
  const said = Buffer.concat(body).toString('utf8', 0, REFUSAL_BODY)
  return new ChannelError(`The server answered with HTTP ${status}`, {
    refusal: refusalOf(status, (name) => headerOf(headers, name), said),
  })
}

/** Where a server points to, if that is on its own origin: elsewhere, what is meant for it would be in other hands. */
export function onSameOrigin(location: string | undefined, base: URL): URL | undefined {
  if (location === undefined || !URL.canParse(location, base.href)) return undefined
  const target = new URL(location, base)
  return target.origin === base.origin ? target : undefined
}

/** Of what fails before there is a connection, the server has seen nothing. */
function telling(connect: Connect): Connect {
  return (target, done) =>
    connect(target, (...[error, socket]) => {
      if (error) done(new ChannelError(causeOf(error)?.what ?? error.message, { cause: error, delivered: 'no' }), null)
      else done(null, socket as NonNullable<typeof socket>)
    })
}

/** What an error of undici or of the system says of what was sent. */
export function channelError(error: Error): ChannelError {
  if (error instanceof ChannelError) return error
  if (error instanceof SseError) return new ChannelError(error.message, { cause: error, protocol: true })
  const cause = causeOf(error)
  return new ChannelError(cause?.what ?? error.message, { cause: error, delivered: cause?.notSent ? 'no' : 'maybe' })
}
