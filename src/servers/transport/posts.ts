/**
 * Sends the messages of a session to a server over Streamable HTTP: one POST per message, answers as JSON or events, broken streams
 * resumed.
 */

import { type Memory, NOBODY } from '../../base/limits/memory.js'
import { headerOf } from '../../base/texts/headers.js'
import { pause } from '../../base/time/pause.js'
import type { Account } from '../../mcp/protocol/account.js'
import type { Lanes } from '../lanes.js'
import { OneWayMemory } from '../one-way.js'
import { AcceptedCalls } from './accepted-calls.js'
import { type OriginAnswer, type ResponseHeaders, refused, textIn } from './answers.js'
import { ChannelError, type OutgoingMessage, type Receiver } from './channel.js'
import { Cookies } from './cookies.js'
import type { HttpRequest, Origin, OriginHeaders } from './origin.js'
import { RETRY, Reading } from './reading.js'

/** Number of failed attempts in a row after which a stream is not resumed. */
const MAX_FAILURES = 3
/** Visible ASCII, as a session id has to be (MCP 2025-11-25, basic/transports, session management). */
const SESSION_ID = /^[\x21-\x7e]{1,1024}$/
export const NONE: OriginHeaders = {}
const VERSION = 'mcp-protocol-version'
const POSTED: OriginHeaders = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }

export class Posts {
  readonly stateless: boolean
  readonly memory: Memory
  readonly lanes: Lanes | undefined
  protected readonly origin: Origin
  /** Open requests, by exchange. Those without an exchange have negative numbers. */
  protected readonly readings = new Map<number, Reading>()
  protected readonly closing = new AbortController()
  readonly #oneWay: OneWayMemory
  #withoutExchange = 0
  protected calls = 0
  /** Whether the stream for the server's own messages is open, or may be. */
  protected listens = false
  protected readonly accepted = new AcceptedCalls()
  /** Reads that stream. */
  protected listening: Reading | undefined
  /** The session goes on elsewhere. */
  protected isLeft = false
  /** The path and query of the session. Redirects of other sessions do not change it. */
  protected path: string | undefined
  protected receiver: Receiver | undefined
  protected sessionId: string | undefined
  /**
   * Headers of the last message, for the DELETE: credentials and revision are the same in all messages of a session.
   */
  protected own: OriginHeaders = NONE
  protected account: Account | undefined
  /** The cookies of the session. Undefined without a session, because several principals may use the channel. */
  protected readonly cookies: Cookies | undefined
  #postHeaders = new WeakMap<OriginHeaders, OriginHeaders>()

  constructor(origin: Origin, stateless: boolean) {
    this.origin = origin
    this.memory = origin.memory
    this.lanes = origin.lanes
    this.#oneWay = new OneWayMemory(origin.memory)
    this.stateless = stateless
    if (!stateless) this.cookies = new Cookies(origin.url)
  }

  get alive(): boolean {
    return !this.closing.signal.aborted
  }

  attach(receiver: Receiver): void {
    this.receiver = receiver
  }

  async sendMessage(message: OutgoingMessage): Promise<void> {
    const { text, bytes, exchange, principal, headers = NONE, forwarded, account, heard, passesEvents } = message
    if (this.closing.signal.aborted) throw new ChannelError('The channel is closed', { delivered: 'no' })
    const version = forwarded?.[VERSION]
    this.own = version === undefined ? headers : { ...headers, [VERSION]: version }
    this.account = account
    const mayOpen = this.sessionId === undefined && !this.stateless
    const reading = new Reading(this.receiver, exchange, mayOpen ? this.#adoptSession : undefined)
    reading.principal = principal ?? NOBODY
    reading.startsAnyway = exchange === undefined && account === undefined
    if (heard) reading.hears(heard)
    reading.keepsRaw = passesEvents === true
    const posted = this.#headersToPost(headers, forwarded)
    const request = { method: 'POST', headers: posted, body: bytes ?? text, principal } as const
    const sent = exchange === undefined ? this.#oneWay.hold(message) : undefined
    if (exchange !== undefined) this.calls++
    try {
      const answer = await this.askFollowing(request, reading, account)
      if (answer.status >= 300) throw refused(answer)
      if (answer.kind === 'whole') heard?.hear(answer.body, answer)
      if (exchange === undefined) return
      if (answer.kind === 'whole') this.receiver?.receive(answer.body, exchange, answer)
      if (!this.receiver?.isWaiting(exchange)) return
      const resumes = passesEvents && answer.kind === 'events' && reading.lastId !== undefined
      if (resumes) return this.receiver.left?.(exchange, answer.status)
      if (answer.kind === 'events') return await this.#resume(headers, reading, account)
      if (isAcceptance(answer) && (this.listens || passesEvents))
        return await this.accepted.wait(exchange, this.receiver)
      throw noMessage(answer)
    } finally {
      sent?.()
      // Until then, the server may have asked the client on the stream.
      if (exchange !== undefined && --this.calls === 0 && this.isLeft) this.listening?.abort()
    }
  }

  abandon(exchange: number): void {
    this.readings.get(exchange)?.abort()
    this.accepted.forget(exchange)
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
      await this.pause(reading.retry)
      try {
        const { kind } = await this.get(headers, reading, account)
        if (kind !== 'events') throw new ChannelError('The server did not resume the stream')
        failures = 0
      } catch (error) {
        if (++failures >= MAX_FAILURES || !(error instanceof ChannelError) || error.delivered !== 'maybe') throw error
      }
    }
  }

  /** Rejects when the channel is closed. */
  protected async pause(milliseconds: number): Promise<void> {
    const { signal } = this.closing
    await pause(Math.min(Math.max(milliseconds, RETRY.least), RETRY.most), signal)
    signal.throwIfAborted()
  }

  protected get(headers: OriginHeaders, reading: Reading, account: Account | undefined): Promise<OriginAnswer> {
    return this.askFollowing({ method: 'GET', headers: this.#headersToListen(headers, reading) }, reading, account)
  }

  /** Sends a request to the path of the session, and follows redirects. */
  protected async askFollowing(
    request: HttpRequest,
    reading: Reading,
    account: Account | undefined,
  ): Promise<OriginAnswer> {
    const key = reading.exchange ?? --this.#withoutExchange
    this.readings.set(key, reading)
    const { principal } = reading
    if (!this.stateless) this.path ??= this.origin.redirects.pathFor(principal)
    const path = this.path
    const to = { ...request, path, principal, cookies: this.cookies, follows: true }
    try {
      return await this.origin.askOrigin(to, reading, account, reading)
    } catch (error) {
      // A stream that broke after an event with an id can be resumed, so this is not a failure yet.
      if (!(error instanceof ChannelError) || reading.lastId === undefined || this.stateless || !this.alive) throw error
      return { status: 200, kind: 'events', headers: NONE, body: [] }
    } finally {
      // Another request may have been redirected in the meantime.
      if (!this.stateless && reading.path !== path) this.path = reading.path
      reading.readingOver()
      this.readings.delete(key)
    }
  }

  /**
   * Takes the session id from the headers before the body is read, because replies to messages in the body need it.
   */
  readonly #adoptSession = (headers: ResponseHeaders): void => {
    if (this.sessionId !== undefined) return
    const id = headerOf(headers, 'mcp-session-id')
    if (id === undefined) return
    if (!SESSION_ID.test(id))
      throw new ChannelError('The server sent an invalid session id: it has to be 1 to 1024 visible ASCII characters', {
        protocol: true,
      })
    this.sessionId = id
    this.#postHeaders = new WeakMap()
  }

  protected headers(own: OriginHeaders): OriginHeaders {
    const session = this.sessionId === undefined ? NONE : { 'mcp-session-id': this.sessionId }
    return { ...this.origin.headers, ...own, ...session }
  }

  #headersToListen(own: OriginHeaders, { lastId }: Reading): OriginHeaders {
    const from = lastId === undefined ? NONE : { 'last-event-id': lastId }
    return this.headers({ accept: 'text/event-stream', ...own, ...from })
  }

  /** Built once for all messages with the same `own` object. */
  #headersToPost(own: OriginHeaders, carried?: OriginHeaders): OriginHeaders {
    if (carried) return { ...POSTED, ...carried, ...this.headers(own) }
    let headers = this.#postHeaders.get(own)
    if (!headers) {
      headers = this.headers({ ...POSTED, ...own })
      this.#postHeaders.set(own, headers)
    }
    return headers
  }
}

/** Whether an answer only confirms that the message has arrived. */
function isAcceptance({ status, headers }: OriginAnswer): boolean {
  return status === 202 || status === 204 || headerOf(headers, 'content-type') === undefined
}

function noMessage(answer: OriginAnswer): ChannelError {
  const { status, kind, headers } = answer
  const options = { protocol: true, said: textIn(answer) }
  if (kind === 'whole')
    return new ChannelError('The body of the answer is not a JSON-RPC response to the request', options)
  const type = headerOf(headers, 'content-type') ?? 'no content type'
  return new ChannelError(`The server answered with HTTP ${status} and ${type} instead of a message`, options)
}
