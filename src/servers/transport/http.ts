/**
 * The Streamable HTTP transport to servers: one POST per message, answers as JSON or events, broken streams resumed.
 */

import { Fault } from '../../base/fault/fault.js'
import { MAX_NAME } from '../../base/limits/constants.js'
import { type Memory, NOBODY } from '../../base/limits/memory.js'
import { detach } from '../../base/rpc/source.js'
import type { PassedEvent, PassedStream, SseDecoder, SseEvent } from '../../base/rpc/sse.js'
import { headerOf, mediaType } from '../../base/texts/headers.js'
import { HangUp } from '../../base/time/hang-up.js'
import { backoff, pause } from '../../base/time/pause.js'
import { Deadline, within } from '../../base/time/time.js'
import type { Account } from '../../mcp/protocol/account.js'
import type { ServerSession } from '../../mcp/protocol/upstream.js'
import type { Lanes } from '../lanes.js'
import { OneWayMemory } from '../one-way.js'
import { AcceptedCalls } from './accepted-calls.js'
import {
  type BodyKind,
  bodyKindOf,
  lengthError,
  type OriginAnswer,
  type ResponseHeaders,
  refused,
  textIn,
} from './answers.js'
import {
  type Channel,
  ChannelError,
  type Heard,
  type HttpHead,
  type MessageLengths,
  type OpeningStream,
  type OutgoingMessage,
  type Receiver,
  type Transport,
} from './channel.js'
import { Cookies } from './cookies.js'
import { type HttpRequest, Origin, type OriginHeaders, type OriginOptions, type Reader } from './origin.js'

/** Milliseconds to wait before a stream is resumed: the default, and the bounds for a server's value. */
const RETRY = { usual: 1_000, least: 100, most: 30_000 }
/** Milliseconds that a server may keep a stream open after the answer. */
const AFTER_ANSWER = 1_000
/** Milliseconds for the DELETE that ends a session. */
const GOODBYE = 5_000
/** Milliseconds for the GET of `wantsSession`. */
const WANTS_WITHIN = 2_000
/** Number of failed attempts in a row after which a stream is not resumed. */
const MAX_FAILURES = 3
/** Number of attempts in a row after which a server counts as having no second stream. */
const MAX_CONFLICTS = 30
/** Visible ASCII, as a session id has to be (MCP 2025-11-25, basic/transports, session management). */
const SESSION_ID = /^[\x21-\x7e]{1,1024}$/

type OpenOptions = NonNullable<Parameters<Transport['open']>[0]>

export class HttpTransport implements Transport {
  readonly kind = 'http'
  readonly target: string
  readonly origin: Origin

  constructor(options: OriginOptions) {
    this.origin = new Origin(options)
    this.target = options.target ?? options.url.origin + options.url.pathname
  }

  async open({ stateless = false, session }: OpenOptions = {}): Promise<Channel> {
    const channel = new HttpChannel(this.origin, stateless)
    if (session) await channel.resume(session)
    return channel
  }

  limit(lengths: MessageLengths): void {
    this.origin.limit(lengths)
  }

  close(hurry = false): Promise<void> {
    return this.origin.close(hurry)
  }
}

class HttpChannel implements Channel {
  readonly transport = 'http'
  readonly shared = false
  readonly stateless: boolean
  readonly memory: Memory
  readonly lanes: Lanes | undefined
  readonly #origin: Origin
  /** Open requests, by exchange. Those without an exchange have negative numbers. */
  readonly #readings = new Map<number, Reading>()
  readonly #closing = new AbortController()
  readonly #oneWay: OneWayMemory
  #withoutExchange = 0
  /** Calls that wait for their answer. */
  #calls = 0
  /** Whether the stream for the server's own messages is open, or may be. */
  #listens = false
  readonly #accepted = new AcceptedCalls()
  /** Reads that stream. */
  #listening: Reading | undefined
  /** The session goes on elsewhere. */
  #isLeft = false
  /** The path and query of the session. Redirects of other sessions do not change it. */
  #path: string | undefined
  #receiver: Receiver | undefined
  #sessionId: string | undefined
  /**
   * Headers of the last message, for the DELETE: credentials and revision are the same in all messages of a session.
   */
  #own: OriginHeaders = NONE
  #account: Account | undefined
  /** The cookies of the session. Undefined without a session, because several principals may use the channel. */
  readonly #cookies: Cookies | undefined
  #postHeaders = new WeakMap<OriginHeaders, OriginHeaders>()

  constructor(origin: Origin, stateless: boolean) {
    this.#origin = origin
    this.memory = origin.memory
    this.lanes = origin.lanes
    this.#oneWay = new OneWayMemory(origin.memory)
    this.stateless = stateless
    if (!stateless) this.#cookies = new Cookies(origin.url)
  }

  get alive(): boolean {
    return !this.#closing.signal.aborted
  }

  get hasSession(): boolean {
    return this.#sessionId !== undefined
  }

  get session(): ServerSession {
    const { address } = this.#origin
    return {
      session: this.#sessionId,
      path: this.#path,
      cookies: this.#cookies?.text,
      ...(address !== undefined && { address }),
    }
  }

  leave(): void {
    this.#isLeft = true
    if (this.#calls === 0) this.#listening?.abort()
  }

  /** Goes on with the session of another channel. */
  async resume({ session, path, cookies }: ServerSession): Promise<void> {
    this.#sessionId = session
    this.#path = path
    if (cookies !== undefined) await this.#cookies?.adopt(cookies)
  }

  attach(receiver: Receiver): void {
    this.#receiver = receiver
  }

  async sendMessage(message: OutgoingMessage): Promise<void> {
    const { text, bytes, exchange, principal, headers = NONE, forwarded, account, heard, passesEvents } = message
    if (!this.alive) throw new ChannelError('The channel is closed', { delivered: 'no' })
    const version = forwarded?.[VERSION]
    this.#own = version === undefined ? headers : { ...headers, [VERSION]: version }
    this.#account = account
    const mayOpen = this.#sessionId === undefined && !this.stateless
    const reading = new Reading(this.#receiver, exchange, mayOpen ? this.#adoptSession : undefined)
    reading.principal = principal ?? NOBODY
    reading.startsAnyway = exchange === undefined && account === undefined
    if (heard) reading.hears(heard)
    reading.keepsRaw = passesEvents === true
    const posted = this.#headersToPost(headers, forwarded)
    const request = { method: 'POST', headers: posted, body: bytes ?? text, principal } as const
    const sent = exchange === undefined ? this.#oneWay.hold(message) : undefined
    if (exchange !== undefined) this.#calls++
    try {
      const answer = await this.#askFollowing(request, reading, account)
      if (answer.status >= 300) throw refused(answer)
      if (answer.kind === 'whole') heard?.hear(answer.body, answer)
      if (exchange === undefined) return
      if (answer.kind === 'whole') this.#receiver?.receive(answer.body, exchange, answer)
      if (!this.#receiver?.isWaiting(exchange)) return
      const resumes = passesEvents && answer.kind === 'events' && reading.lastId !== undefined
      if (resumes) return this.#receiver.left?.(exchange, answer.status)
      if (answer.kind === 'events') return await this.#resume(headers, reading, account)
      if (isAcceptance(answer) && (this.#listens || passesEvents))
        return await this.#accepted.wait(exchange, this.#receiver)
      throw noMessage(answer)
    } finally {
      sent?.()
      // Until then, the server may have asked the client on the stream.
      if (exchange !== undefined && --this.#calls === 0 && this.#isLeft) this.#listening?.abort()
    }
  }

  abandon(exchange: number): void {
    this.#readings.get(exchange)?.abort()
    this.#accepted.forget(exchange)
  }

  /**
   * A server that supports sessions answers a GET without a session with 400 (MCP 2025-11-25, basic/transports, session
   * management). A server that supports only 2026-07-28 answers every GET with 405.
   */
  async wantsSession(headers: OriginHeaders, account?: Account): Promise<boolean> {
    const reading = new Reading(undefined, undefined, () => reading.abort())
    const late = new Deadline(WANTS_WITHIN, () => reading.abort())
    try {
      const { status } = await this.#get(headers, reading, account)
      return status === 400
    } catch {
      return false
    } finally {
      late.clear()
    }
  }

  /** Opens the GET stream and keeps it open. Resolves to false if the server has none. */
  listen(headers: OriginHeaders, account?: Account, tried = nothing): Promise<boolean> {
    this.#listens = true
    return new Promise((resolve) => {
      this.#listen(headers, account, { opened: resolve, tried })
        .catch(() => {})
        .finally(() => {
          this.#listens = false
          this.#listening = undefined
          this.#accepted.fail(new ChannelError('The stream on which the server was to answer has ended'))
          resolve(false)
        })
    })
  }

  async pass(stream: PassedStream, opening: OpeningStream): Promise<void> {
    const own = this.#listening
    // Some servers have only one such stream in a session.
    if (own && !own.stream && opening.lastEventId === undefined) {
      opening.signal.addEventListener('abort', () => own.takeBack(), { once: true })
      return own.give(stream)
    }
    try {
      await this.#pass(stream, opening)
    } catch (error) {
      const isTaken = error instanceof ChannelError && error.refusal?.status === 409
      if (!isTaken || !own || own.stream) throw error
      own.abort()
      // Until the server notices.
      await this.#pause(RETRY.least)
      await this.#pass(stream, opening)
    }
  }

  async #pass(stream: PassedStream, opening: OpeningStream): Promise<void> {
    const { headers = NONE, forwarded, account, principal = NOBODY, lastEventId, signal } = opening
    const began = new Promise<void>((resolve, reject) => {
      const reading = new Reading(this.#receiver, undefined, (_headers, kind) => {
        if (kind === 'events') resolve()
        else {
          reject(new ChannelError('The server has no stream', { protocol: true }))
          reading.abort()
        }
      })
      Object.assign(reading, { principal, stream, keepsRaw: true })
      signal.addEventListener('abort', () => reading.abort(), { once: true })
      const after = lastEventId === undefined ? NONE : { 'last-event-id': lastEventId }
      const sent = { accept: 'text/event-stream', ...forwarded, ...this.#headers(headers), ...after }
      this.#askFollowing({ method: 'GET', headers: sent, principal }, reading, account)
        .then((answer) => {
          if (answer.kind === 'events') stream.end()
          else reject(refused(answer))
        })
        .catch((error: unknown) => {
          reject(error)
          stream.end()
        })
    })
    await began
  }

  async close(): Promise<number | undefined> {
    if (!this.alive) return undefined
    this.#closing.abort()
    for (const reading of this.#readings.values()) reading.abort()
    if (this.#sessionId === undefined || this.#isLeft) return undefined
    // A server may refuse the DELETE; then its session has to expire by itself.
    const path = this.#path ?? this.#origin.redirects.pathFor(NOBODY)
    const headers = this.#headers(this.#own)
    const request = { method: 'DELETE' as const, path, headers, cookies: this.#cookies }
    const account = this.#account
    let abort = () => {}
    const reader = {
      onStart: (end: () => void) => {
        abort = end
      },
      onHead: () => 'nothing' as const,
    }
    const leaving = this.#origin.askOrigin(request, reader, account, AbortSignal.timeout(GOODBYE)).then(
      ({ status }) => status,
      () => undefined,
    )
    return within(leaving, GOODBYE, () => {
      abort()
      return undefined
    })
  }

  /**
   * Resumes a stream that ended before the answer, because the server wants to be polled (SEP-1699) or the connection
   * broke. Rejects with a ChannelError if the stream cannot be resumed, for example if it had no event id.
   */
  async #resume(headers: OriginHeaders, reading: Reading, account: Account | undefined): Promise<void> {
    let failures = 0
    while (reading.waited) {
      if (reading.lastId === undefined || this.stateless)
        throw new ChannelError('The server closed the stream without an answer')
      await this.#pause(reading.retry)
      try {
        const { kind } = await this.#get(headers, reading, account)
        if (kind !== 'events') throw new ChannelError('The server did not resume the stream')
        failures = 0
      } catch (error) {
        if (++failures >= MAX_FAILURES || !(error instanceof ChannelError) || error.delivered !== 'maybe') throw error
      }
    }
  }

  /** Resolves when the server has no stream, or no longer has one. */
  async #listen(
    headers: OriginHeaders,
    account: Account | undefined,
    { opened, tried }: { opened: (open: boolean) => void; tried: () => void },
  ): Promise<void> {
    let failures = 0
    let conflicts = 0
    let heard = false
    let hasNone = false
    let openedAt = 0
    const reading = new Reading(this.#receiver, undefined, (_headers, kind) => {
      hasNone = kind !== 'events'
      // The body of another kind is not read, because it may have no end.
      if (hasNone) return reading.abort()
      openedAt = performance.now()
      // A stream with event ids continues where it stopped; without them, messages may have been lost.
      if (heard && reading.lastId === undefined) this.#receiver?.missed()
      heard = true
      opened(true)
    })
    reading.keepsRaw = true
    this.#listening = reading
    while (this.alive && !this.#isLeft && !reading.aborted) {
      let isTaken = false
      try {
        const { status, kind } = await this.#get(headers, reading, this.#account ?? account)
        // If a server ends every stream at once, the pauses grow.
        if (kind === 'events')
          failures = performance.now() - openedAt < RETRY.usual && !reading.heard ? failures + 1 : 0
        // The server has not noticed yet that the last stream is broken, or another replica still has it.
        isTaken = status === 409 && ++conflicts < MAX_CONFLICTS
        if (status < 300) conflicts = 0
        else hasNone ||= !isTaken
      } catch (error) {
        hasNone ||= error instanceof Fault
        if (!hasNone && !(error instanceof ChannelError)) throw error
        failures++
        tried()
      }
      // Its client resumes it.
      if (reading.stream) return reading.stream.end()
      if (this.#isLeft) return
      if (hasNone) {
        if (heard) this.#receiver?.streamLost()
        return
      }
      if (isTaken) await this.#pause(backoff(conflicts, { first: RETRY.least, most: RETRY.usual }))
      else await this.#pause(backoff(failures, { first: reading.retry, most: RETRY.most }))
    }
  }

  /** Rejects when the channel is closed. */
  async #pause(milliseconds: number): Promise<void> {
    const { signal } = this.#closing
    await pause(Math.min(Math.max(milliseconds, RETRY.least), RETRY.most), signal)
    signal.throwIfAborted()
  }

  #get(headers: OriginHeaders, reading: Reading, account: Account | undefined): Promise<OriginAnswer> {
    return this.#askFollowing({ method: 'GET', headers: this.#headersToListen(headers, reading) }, reading, account)
  }

  /** Sends a request to the path of the session, and follows redirects. */
  async #askFollowing(request: HttpRequest, reading: Reading, account: Account | undefined): Promise<OriginAnswer> {
    const key = reading.exchange ?? --this.#withoutExchange
    this.#readings.set(key, reading)
    const { principal } = reading
    if (!this.stateless) this.#path ??= this.#origin.redirects.pathFor(principal)
    const path = this.#path
    const to = { ...request, path, principal, cookies: this.#cookies, follows: true }
    try {
      return await this.#origin.askOrigin(to, reading, account, reading)
    } catch (error) {
      // A stream that broke after an event with an id can be resumed, so this is not a failure yet.
      if (!(error instanceof ChannelError) || reading.lastId === undefined || this.stateless || !this.alive) throw error
      return { status: 200, kind: 'events', headers: NONE, body: [] }
    } finally {
      // Another request may have been redirected in the meantime.
      if (!this.stateless && reading.path !== path) this.#path = reading.path
      reading.readingOver()
      this.#readings.delete(key)
    }
  }

  /**
   * Takes the session id from the headers before the body is read, because replies to messages in the body need it.
   */
  readonly #adoptSession = (headers: ResponseHeaders): void => {
    if (this.#sessionId !== undefined) return
    const id = headerOf(headers, 'mcp-session-id')
    if (id === undefined) return
    if (!SESSION_ID.test(id))
      throw new ChannelError('The server sent an invalid session id: it has to be 1 to 1024 visible ASCII characters', {
        protocol: true,
      })
    this.#sessionId = id
    this.#postHeaders = new WeakMap()
  }

  #headers(own: OriginHeaders): OriginHeaders {
    const session = this.#sessionId === undefined ? NONE : { 'mcp-session-id': this.#sessionId }
    return { ...this.#origin.headers, ...own, ...session }
  }

  #headersToListen(own: OriginHeaders, { lastId }: Reading): OriginHeaders {
    const from = lastId === undefined ? NONE : { 'last-event-id': lastId }
    return this.#headers({ accept: 'text/event-stream', ...own, ...from })
  }

  /** Built once for all messages with the same `own` object. */
  #headersToPost(own: OriginHeaders, carried?: OriginHeaders): OriginHeaders {
    if (carried) return { ...POSTED, ...carried, ...this.#headers(own) }
    let headers = this.#postHeaders.get(own)
    if (!headers) {
      headers = this.#headers({ ...POSTED, ...own })
      this.#postHeaders.set(own, headers)
    }
    return headers
  }
}

const NONE: OriginHeaders = {}
const VERSION = 'mcp-protocol-version'
const POSTED: OriginHeaders = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
const nothing = () => {}
/**
 * Reads the answer to one message, over several connections if its stream is resumed. `abort` ends all of them, and also
 * stops obtaining credentials for the message.
 */
class Reading extends HangUp implements Reader {
  readonly exchange: number | undefined
  principal = NOBODY
  /** The path to which the message was sent last. */
  path = ''
  /**
   * A message that gets no answer is sent even after an abort: it may be the cancellation of a call, sent because the
   * channel is being closed.
   */
  startsAnyway = false
  /** An event has arrived in the stream. */
  heard = false
  /** The events pass to a client as they come; on this stream, if it has opened one for them. */
  keepsRaw = false
  stream: PassedStream | undefined
  /** The client has got an event with an id, so it can resume the stream. */
  #isResumable = false
  /** The last event id, to resume the stream; and the milliseconds to wait before that. */
  lastId: string | undefined
  retry = RETRY.usual
  /** Ends the current request. */
  #end: () => void = nothing
  /** The head of the response that is being read. */
  #head: HttpHead | undefined
  readonly #receiver: Receiver | undefined
  readonly #onSuccess: ((headers: ResponseHeaders, kind: BodyKind) => void) | undefined
  #over: NodeJS.Timeout | undefined
  #heard: Heard | undefined
  /** The last event with an id. */
  #last: SseEvent | undefined
  #decoder: SseDecoder | undefined

  constructor(
    receiver: Receiver | undefined,
    exchange: number | undefined,
    onSuccess: ((headers: ResponseHeaders, kind: BodyKind) => void) | undefined,
  ) {
    super()
    this.#receiver = receiver
    this.exchange = exchange
    this.#onSuccess = onSuccess
  }

  /** Gives the events of the answer, while they are needed, to who has sent the message. */
  hears(heard: Heard): void {
    this.#heard = heard
    heard.signal.addEventListener('abort', () => this.abort(), { once: true })
  }

  /** Gives the stream to a client, which may resume it where it is. */
  give(stream: PassedStream): void {
    this.stream = stream
    const { id, retry, raw, data = [] } = this.#last ?? {}
    if (id !== undefined) stream.pass('', { id, retry, raw: data.length === 0 ? raw : undefined })?.catch(() => {})
    this.#isResumable ||= id !== undefined
    // Nothing would follow.
    if (this.#decoder?.isTooLong) setImmediate(() => this.abort())
  }

  /** The client's connection has ended. What the server says meanwhile waits for the next, unless the server itself keeps it. */
  takeBack(): void {
    this.stream = undefined
    if (this.#isResumable) this.abort()
  }

  /** Whether the answer is still expected. */
  get waited(): boolean {
    return this.exchange !== undefined && this.#receiver?.isWaiting(this.exchange) === true
  }

  get isShared(): boolean {
    return this.exchange === undefined && this.stream === undefined
  }

  onStart(abort: () => void): void {
    this.#end = abort
    if (this.aborted) abort()
  }

  /** Ends all requests for this answer, including one that has not started yet. */
  override abort(): void {
    if (!this.startsAnyway) super.abort(new ChannelError('The request was aborted'))
    this.#end()
  }

  onHead(status: number, headers: ResponseHeaders): BodyKind {
    if (status >= 300) return 'whole'
    const kind = bodyKindOf(headers) ?? (mediaType(headers).startsWith('text/') ? 'beginning' : 'nothing')
    if (kind === 'events') this.#head = { status, headers }
    this.heard = false
    this.#onSuccess?.(headers, kind)
    return kind
  }

  onEvent(event: SseEvent, decoder: SseDecoder): void {
    this.heard = true
    // An id that is too long for a header is ignored.
    if (event.id !== undefined) this.lastId = event.id.length <= MAX_NAME ? detach(event.id) : undefined
    this.retry = decoder.retry ?? this.retry
    const { raw, id, retry } = event
    const passes = this.keepsRaw && (this.exchange !== undefined || this.stream !== undefined)
    const passed: PassedEvent | undefined = passes ? { raw, id, retry, on: this.stream } : undefined
    if (id !== undefined) this.#last = event
    if (passed?.on && id !== undefined) this.#isResumable = true
    this.#decoder = decoder
    const isMessage = event.event === 'message' && event.data.length > 0
    if (event.dropped) this.#receiver?.dropped(event.dropped, this.exchange, lengthError(event))
    else if (isMessage && this.#heard) this.#heard.hear(event.data)
    else if (isMessage)
      this.#receiver?.receive(
        event.data,
        this.exchange,
        this.#head && passed ? { ...this.#head, event: passed } : this.#head,
      )
    else if (passed) this.#receiver?.passed?.(passed, this.exchange)
    if (this.exchange !== undefined && !this.waited) this.#over ??= setTimeout(() => this.#end(), AFTER_ANSWER)
  }

  onPart(bytes: number): void {
    if (this.exchange !== undefined) this.#receiver?.arriving?.(this.exchange, bytes)
  }

  readingOver(): void {
    clearTimeout(this.#over)
    // A deleted entry of a Map may be kept for long (see `OpenSet`): it must not keep the request.
    this.#end = nothing
    this.#head = undefined
  }
}

/** Whether an answer only confirms that the message has arrived. */
function isAcceptance({ status, headers }: OriginAnswer): boolean {
  return status === 202 || status === 204 || headerOf(headers, 'content-type') === undefined
}

/** The failure of a request whose answer is not a message. */
function noMessage(answer: OriginAnswer): ChannelError {
  const { status, kind, headers } = answer
  const options = { protocol: true, said: textIn(answer) }
  if (kind === 'whole')
    return new ChannelError('The body of the answer is not a JSON-RPC response to the request', options)
  const type = headerOf(headers, 'content-type') ?? 'no content type'
  return new ChannelError(`The server answered with HTTP ${status} and ${type} instead of a message`, options)
}
