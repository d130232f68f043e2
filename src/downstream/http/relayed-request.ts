/** One relayed request, from its headers to the end of its answer. */

import type { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Fault } from '../../fault/fault.js'
import type { Reservation } from '../../limits/memory.js'
import type { Final, UpstreamSpan } from '../../protocol/call.js'
import { idIn, isSilent, messageIn } from '../../protocol/classify.js'
import { type HttpRefusal, refusalOf } from '../../protocol/refusal.js'
import type { TraceContext } from '../../protocol/trace.js'
import type { DoubtfulAnswer, RelayedAnswer, RelayedAsked, SessionCookies } from '../../protocol/upstream.js'
import { Ending } from '../../rpc/ending.js'
import type { Id, Response } from '../../rpc/message.js'
import { MARK_LENGTH, startsWithMark } from '../../rpc/source.js'
import { EMPTY } from '../../rpc/splice.js'
import { headerOf, mediaType } from '../../texts/headers.js'
import { HangUp, type Signal } from '../../time/hang-up.js'
import type { CallLogEntry } from '../call-log.js'
import { replyIn, replyOf } from '../outcome.js'
import { isEvents, type RelayedHeaders, sentBack } from './relay-headers.js'
import {
  awaitFirst,
  awaitMessage,
  beginsMessage,
  doubtfulIn,
  isMessage,
  READ_FIRST,
  readBeginning,
  responseIn,
} from './relayed-answer.js'
import type { RelayedList } from './relayed-list.js'
import { REVISED_COPIES, revisedBody, revisedEvents } from './relayed-revision.js'
import { discard, type Passing, type RelayedSender, RelayedSending, type SendingParts } from './relayed-sending.js'
import type { RelayedSessions } from './relayed-sessions.js'
import { RelayedStream, type StreamOwner } from './relayed-stream.js'
import { type ErrorRendering, refuse, sendWhole, whenOver } from './replies.js'

/** A request that is relayed. */
export interface Relaying {
  request: FastifyRequest
  reply: FastifyReply
  passing: Passing
  refusing: ErrorRendering
  /** Answers the request without the relay, if the server turns out to have changed its era. */
  fallback?: (() => void) | undefined
}

interface Parts extends Relaying, SendingParts {
  record: CallLogEntry
  /** Reads the requested list; undefined if its names are not needed. */
  list: RelayedList | undefined
  /** Milliseconds between keep-alive comments on a stream. */
  keepAlive: number
  /** Reserves memory for an answer that is revised. */
  reserve(): Reservation
  sessions: RelayedSessions
}

/** Statuses that say nothing about the server's era when it refuses `initialize` with them. */
const NOT_ABOUT_ERA: ReadonlySet<number> = new Set([401, 403, 407, 408, 429])
/** Headers that belong to one message. */
const OF_MESSAGE = ['content-encoding', 'last-event-id']
const BOTH = 'application/json, text/event-stream'
const OK: Final = { kind: 'result', result: EMPTY }

/** A relayed request. */
export class RelayedRequest implements RelayedSender, StreamOwner {
  readonly passing: Passing
  /** The cookies of the session. */
  readonly cookies: SessionCookies | undefined
  readonly #parts: Parts
  readonly #sending: RelayedSending
  readonly #span: UpstreamSpan
  readonly #hangUp = new HangUp()
  readonly #onOver: () => void
  readonly #leaveSession: () => void
  /** It waits for its turn. */
  #waits = false
  #leaveLane: ((bytes: number | undefined) => void) | undefined
  #over = false
  /** How the call ended, according to the server's answer. */
  #ending = OK
  /** Why the server's answer is missing. */
  #fault: Fault | undefined
  /** The event stream from the server. */
  #stream: RelayedStream | undefined
  #draining = false
  /** It is known whether its answer means that the session is lost. */
  #isJudged = false

  constructor(parts: Parts, onOver: () => void) {
    this.passing = parts.passing
    this.#parts = parts
    this.#span = parts.record.handedOver()
    this.#onOver = onOver
    const { relayed, sessions } = parts
    const session = this.inSession
    this.#leaveSession = session === undefined ? () => {} : sessions.begin(session)
    this.cookies = session === undefined ? relayed.cookies() : sessions.cookiesOf(session)
    this.#sending = new RelayedSending(parts, this)
  }

  /** Sends it, a call in its turn. */
  send(): void {
    const { endless, opens, goesOn, silent, method, name } = this.passing
    const { request, relayed } = this.#parts
    const isCall = request.method === 'POST' && !endless && !opens && !goesOn && !silent
    if (!isCall) return this.#sending.send()
    const client = this.#session ?? headerOf(request.headers, 'user-agent')
    const { principal } = request
    const call = { principal, method, name, client, another: () => this.#another() }
    this.#waits = true
    this.#leaveLane = relayed.takeTurn(call, () => {
      this.#waits = false
      this.#sending.send()
    })
    if (this.#over) this.#free(undefined)
  }

  /** The server has begun its answer, which has this many bytes; undefined if the request is over. */
  #free(bytes: number | undefined): void {
    this.#leaveLane?.(bytes)
    if (bytes === undefined) this.#leaveLane = undefined
  }

  /** Aborts when the client has disconnected or the request is cut. */
  get signal(): Signal {
    return this.#hangUp
  }

  get trace(): TraceContext | undefined {
    return this.#span.trace
  }

  get isOver(): boolean {
    return this.#over
  }

  /** Handles a missing credential. If the endpoint can answer the request instead, it can ask the client to sign in. */
  cannotSend(error: unknown): void {
    if (this.#over) return
    const { fallback } = this.#parts
    if (fallback) this.#handBack(fallback)
    else this.#fail(Fault.from(error))
  }

  /** Ends an endless stream: now, or as soon as it has begun. */
  drain(): void {
    if (!this.passing.endless) return
    this.#draining = true
    this.#stream?.drain()
  }

  /** Ends the request: with an error, unless a sent part of the answer makes that impossible. */
  cut(fault: Fault): void {
    this.#fault ??= fault
    if (this.#stream) this.#stream.finish()
    else if (this.#waits) this.#fail(this.#fault)
    else this.#hangUp.abort()
  }

  /** Handles the server's answer when its headers have arrived. */
  answered(answer: RelayedAnswer<Readable>): void {
    const { reply } = this.#parts
    const { status, headers, path, stream } = answer
    reply.code(status).headers(sentBack(headers))
    this.cookies?.keepFrom(path, headers)
    const known = status < 300 ? this.#noteSession(headers) : undefined
    const session = this.inSession
    const kept = (session && this.#parts.sessions.cookiesTaken(session)) ?? this.cookies?.settled
    if (!known && !kept) return this.#pass(answer)
    // Once it has the answer, the client may send its next request to any replica, which must know the cookies.
    const noted = () => {}
    stream?.on('error', noted)
    Promise.all([known, kept]).then(() => {
      stream?.off('error', noted)
      if (stream?.destroyed)
        this.failed(stream.errored ?? new Error('The connection was closed before the answer came'))
      else this.#pass(answer)
    }, this.failed.bind(this))
  }

  #pass({ status, headers, stream, beginning: body }: RelayedAnswer<Readable>): void {
    if (!stream) {
      const bytes = this.#withoutMark(body, false)
      const refusal = refusalOf(status, (name) => headerOf(headers, name), bytes.toString('utf8'))
      return this.#refused(refusal, bytes)
    }
    const { relayed, request, reply } = this.#parts
    if (isEvents(headers)) {
      const unusable = relayed.unusable(headers, 0)
      if (unusable) return this.#drop(stream, unusable)
      if (this.#isSilent) return this.#sendEventsIfAny(stream)
      return this.#mayLoseSession ? this.#sendEventsUnlessLost(stream) : this.#sendEvents(stream)
    }
    if (request.method === 'GET') return this.#sayNoStream(stream)
    const { revise } = this.passing
    if (revise) this.#reserveFor(stream)
    readBeginning(stream, revise ? relayed.bodyLimit : READ_FIRST, (error, beginning, whole) => {
      if (error) return this.failed(error)
      const length = Math.max(beginning.length, Number(headerOf(headers, 'content-length') ?? 0))
      const unusable = this.#hasCalls && length > 0 && relayed.unusable(headers, length)
      if (unusable) return this.#drop(stream, unusable)
      const bytes = this.#withoutMark(beginning, !whole && stream)
      if (whole && revise)
        revisedBody(bytes, revise).then(
          (revised) => (reply.raw.destroyed ? reply.hijack() : this.#sendWhole(status, headers, revised)),
          this.failed.bind(this),
        )
      else if (whole) this.#sendWhole(status, headers, bytes)
      else if (this.#isSilent && !beginsMessage(bytes)) {
        discard(stream)
        this.#accept()
      } else this.#sendLarge(stream, status, headers)
    })
  }

  /** Reserves memory for an answer that is read as a whole. Ends the answer if there is none. */
  #reserveFor(stream: Readable): void {
    const reservation = this.#parts.reserve()
    whenOver(this.#parts.reply, () => reservation.end())
    let length = 0
    stream.on('data', (chunk: Buffer) => {
      length += chunk.length
      try {
        reservation.mustResize(length * REVISED_COPIES)
      } catch (error) {
        this.#fault ??= Fault.from(error)
        stream.destroy(this.#fault)
      }
    })
  }

  /** Removes a byte order mark, which not all clients ignore, from the beginning of a body, and from its stream. */
  #withoutMark(beginning: Buffer, stream: Readable | false): Buffer {
    if (!startsWithMark(beginning)) return beginning
    if (stream) stream.read(MARK_LENGTH)
    this.#parts.reply.removeHeader('content-length')
    return beginning.subarray(MARK_LENGTH)
  }

  /** Handles a connection that failed before or during the answer. */
  failed(error: Error): void {
    const { reply } = this.#parts
    if (reply.sent) return
    if (reply.raw.destroyed) reply.hijack()
    else this.#fail(this.lose(error))
  }

  #fail(fault: Fault): void {
    // A request that was cut while it waited for a credential fails for that reason.
    this.#fault ??= fault
    // Without an id, there is no call with an unknown outcome.
    this.#refuse(this.#fault, this.#hasCalls ? this.#fault.status : 502)
  }

  #sendWhole(status: number, headers: RelayedHeaders, bytes: Buffer): void {
    const { reply } = this.#parts
    this.#free(bytes.length)
    if (this.#isSilent && !isMessage(bytes)) return this.#accept()
    if (bytes.length === 0) {
      reply.send()
      return
    }
    const doubtful = this.#mayLoseSession && !this.#isJudged ? doubtfulIn(bytes, mediaType(headers)) : undefined
    if (doubtful) return this.#sendUnlessLost(doubtful, () => this.#sendWhole(status, headers, bytes))
    const strange = mediaType(headers) !== 'application/json' && !isMessage(bytes)
    if (strange && this.#parts.request.method === 'POST') {
      const type = mediaType(headers) || 'no content type'
      const message = `The server answered with HTTP ${status} and ${type} instead of a message`
      this.#fault = new Fault('upstreamProtocol', message)
      return this.#refuse(this.#fault, this.#fault.status)
    }
    if (strange) {
      clearHeaders(reply)
      reply.send()
      return
    }
    const response = responseIn(bytes)
    if (response) this.#ending = replyIn(response)
    this.#span.over(this.#ending)
    this.#parts.messages?.answer(bytes, status)
    this.#parts.list?.answer(bytes)
    sendWhole(reply, bytes)
  }

  /** Whether an error that answers the request can mean that the server has lost the session. */
  get #mayLoseSession(): boolean {
    return this.inSession !== undefined && this.id !== undefined
  }

  /** Sends what is no result, unless it means that it has lost the session: then the client is told. */
  #sendUnlessLost(answer: DoubtfulAnswer, send: () => void, drop = () => {}): void {
    const session = this.inSession as string
    this.#isJudged = true
    const { reply } = this.#parts
    this.#lossBehind(answer)
      .then((loss) => {
        if (loss === 'later') this.#parts.sessions.lose(session)
        if (loss === 'lost' || reply.raw.destroyed) drop()
        if (reply.raw.destroyed) reply.hijack()
        else if (loss === 'lost') this.#sessionGone(session)
        else send()
      })
      .catch((error: Error) => this.failed(error))
  }

  /** The client has got an error on a stream that had begun: if the session is lost, its next request learns it. */
  #loseIfLost(answer: Response): void {
    const session = this.inSession as string
    const { sessions } = this.#parts
    this.#lossBehind(answer).then(
      (loss) => loss && sessions.lose(session),
      () => {},
    )
  }

  #lossBehind(answer: DoubtfulAnswer): Promise<'lost' | 'later' | undefined> {
    return this.#parts.relayed.hasLostSession(answer, this.passing.method, () => this.#another())
  }

  /** Whether the request needs no answer: a notification, the answer to a question of the server, or a batch of such. */
  get #isSilent(): boolean {
    const { request } = this.#parts
    return request.method === 'POST' && (this.passing.silent ?? isSilent(messageIn(request.body)))
  }

  /**
   * Answers a request that needs no answer with 202. Some servers answer it with `null`, an object or a page, which clients
   * would mistake for a message.
   */
  #accept(): void {
    const { reply } = this.#parts
    clearHeaders(reply)
    reply.code(202).send()
  }

  /** Passes on an event stream for a request that needs no answer, if the stream has any message. */
  #sendEventsIfAny(stream: Readable): void {
    awaitMessage(stream, (error, ended) => {
      if (error) return this.failed(error)
      if (ended) return this.#accept()
      this.#sendEvents(stream)
      stream.resume()
    })
  }

  /** Passes on an event stream, unless it begins with an error that means that the server has lost the session. */
  #sendEventsUnlessLost(stream: Readable): void {
    awaitFirst(stream, (error, answer, events) => {
      if (error) return this.failed(error)
      const send = () => {
        this.#sendEvents(events)
        events.resume()
      }
      if (answer?.outcome.kind === 'error') this.#sendUnlessLost(answer, send, () => discard(events))
      else send()
    })
  }

  /**
   * Answers a GET with 405, because the server has answered it with something other than a stream. The status tells clients
   * that there is no stream, so that they do not retry.
   */
  #sayNoStream(body: Readable): void {
    discard(body)
    this.#ending = errorOf(405)
    this.#parts.reply.header('allow', 'POST, DELETE')
    this.#refuse(new Fault('methodNotAllowed', 'The server has no stream for its own messages'), 405)
  }

  /** Answers with a fault in place of an answer that cannot be passed on. */
  #drop(stream: Readable, fault: Fault): void {
    discard(stream)
    this.#fail(fault)
  }

  /**
   * Passes on an answer while it arrives, and reads how the call ended. If it turns out to be too large, the answer breaks
   * off, because its beginning has been sent.
   */
  #sendLarge(stream: Readable, status: number, headers: RelayedHeaders): void {
    const { messages, list, relayed } = this.#parts
    this.#free(Number(headerOf(headers, 'content-length') ?? relayed.bodyLimit))
    const ending = new Ending()
    let length = 0
    stream.on('data', (chunk: Buffer) => {
      length += chunk.length
      if (length > relayed.bodyLimit) {
        this.#fault ??= relayed.unusable(headers, length)
        stream.destroy(this.#fault)
        return
      }
      ending.push(chunk)
      messages?.part(chunk)
      list?.part(chunk)
    })
    stream.on('error', (broken) => this.lose(broken))
    stream.once('end', () => {
      this.#ending = ending.ended ? replyOf(ending.ended) : OK
      this.#span.over(this.#ending)
      messages?.partsEnded(status, this.#ending.kind === 'error' ? 'error' : 'result')
      list?.partsEnded()
    })
    this.#parts.reply.send(stream)
  }

  /** Handles a status of 300 or more: passes it on, unless it means something else. */
  #refused(refusal: HttpRefusal, bytes: Buffer): void {
    const { reply } = this.#parts
    this.#free(bytes.length)
    this.#meaningOf(refusal)
      .then((meaning) => {
        if (reply.raw.destroyed) reply.hijack()
        else if (meaning === 'turned') this.#changeEra(refusal, bytes)
        else if (meaning === 'lost' && this.inSession) this.#sessionGone(this.inSession)
        else this.#passRefusal(refusal, bytes)
      })
      .catch((error: Error) => this.failed(error))
  }

  /** Whether a refusal means that the server has changed its era, or that it has lost the session. */
  async #meaningOf(refusal: HttpRefusal): Promise<'turned' | 'lost' | undefined> {
    const { request, relayed } = this.#parts
    const { opens } = this.passing
    const { principal, credential } = request
    const { status } = refusal
    const refusesToOpen = opens && status >= 400 && status < 500 && !NOT_ABOUT_ERA.has(status)
    if (refusesToOpen || relayed.contradicts(refusal)) {
      const sender = { principal, credential, caller: { revision: '', capabilities: '{}' } }
      return (await relayed.turned(sender)) ? 'turned' : undefined
    }
    if (this.inSession === undefined || request.method !== 'POST' || status === 404 || status < 400) return undefined
    return (await this.#lossBehind(refusal)) && 'lost'
  }

  /**
   * Handles a request whose server has changed its era, and so has not acted on it. The endpoint answers it, or the session
   * is lost.
   */
  #changeEra(refusal: HttpRefusal, bytes: Buffer): void {
    const { fallback } = this.#parts
    if (fallback) this.#handBack(fallback)
    else if (this.inSession) this.#sessionGone(this.inSession)
    else this.#passRefusal(refusal, bytes)
  }

  /** Another request of the client, in its session. */
  #another(): RelayedAsked {
    const { request, account } = this.#parts
    const headers: RelayedHeaders = { ...this.#sending.headers, 'content-type': 'application/json', accept: BOTH }
    for (const name of OF_MESSAGE) delete headers[name]
    return { principal: request.principal, account, cookies: this.cookies, headers }
  }

  #passRefusal(refusal: HttpRefusal, bytes: Buffer): void {
    const { reply, relayed, sessions } = this.#parts
    const { status } = refusal
    const fault = relayed.refused(refusal)
    if (!fault) {
      if (status === 404 && this.inSession) sessions.forget(this.inSession)
      const response = responseIn(bytes)
      this.#ending = response ? replyIn(response) : errorOf(status)
      this.#parts.messages?.answer(bytes, status)
      reply.send(bytes)
      return
    }
    this.#parts.messages?.refused(bytes, status)
    if (status === 404 && this.inSession) return this.#sessionGone(this.inSession)
    const answers = this.#hasCalls
    if (answers || status < 400 || status >= 500) this.#fault = fault
    else this.#ending = errorOf(status)
    // The server's status is passed on, but not if the outcome is unknown: a 5xx would invite a retry.
    const own = status < 400 || (answers && fault.row.outcome === 'unknown') ? fault.status : status
    this.#refuse(fault, fault.refused ? undefined : own)
  }

  #sessionGone(session: string): void {
    this.#parts.sessions.forget(session)
    this.#ending = errorOf(404)
    this.#refuse(new Fault('sessionNotFound', 'Session not found: call initialize to open one'), 404)
  }

  /** Lets the endpoint answer the request. */
  #handBack(fallback: () => void): void {
    const { reply, record } = this.#parts
    this.#settle()
    record.moved()
    clearHeaders(reply)
    reply.code(200)
    fallback()
  }

  #sendEvents(source: Readable): void {
    const { messages, list } = this.#parts
    if (messages || list)
      source.on('data', (chunk: Buffer) => {
        messages?.chunk(chunk)
        list?.chunk(chunk)
      })
    const { relayed, reserve } = this.#parts
    const { revise } = this.passing
    const passed = revise ? revisedEvents(source, { revise, limit: relayed.bodyLimit, reservation: reserve() }) : source
    const stream = new RelayedStream(passed, this.#parts, this)
    this.#stream = stream
    if (this.#draining) stream.drain()
    else if (this.#fault) stream.finish()
  }

  ended(final: Final, bytes: number, answer: Response | undefined): void {
    this.#free(bytes)
    this.#ending = final
    if (answer?.outcome.kind === 'error' && this.#mayLoseSession && !this.#isJudged) this.#loseIfLost(answer)
    this.#fault = undefined
    this.#span.over(final)
  }

  /** Remembers why the answer is lost. */
  lose(error: Error): Fault {
    this.#fault ??= this.#parts.relayed.failed(error)
    return this.#fault
  }

  #refuse(fault: Fault, status: number | undefined): void {
    const { reply, refusing, messages } = this.#parts
    clearHeaders(reply)
    const text = refuse(reply, fault, { ...refusing, id: this.id, ids: this.ids, status })
    messages?.own(text, reply.statusCode)
  }

  /**
   * Remembers the owner of a new session. If the server opened none, the bridge creates an id, by which it recognizes the
   * client. Resolves when all replicas know it; returns undefined if there is nothing to wait for.
   */
  #noteSession(headers: RelayedHeaders): Promise<void> | undefined {
    const { request, reply, sessions, record } = this.#parts
    if (!this.passing.opens) {
      if (request.method === 'DELETE' && this.#session !== undefined) sessions.forget(this.#session)
      return undefined
    }
    const given = headerOf(headers, 'mcp-session-id')
    const id = given ?? crypto.randomUUID()
    if (given === undefined) reply.header('mcp-session-id', id)
    record.recorder?.opened(id)
    return sessions.opened(id, { principal: request.principal, ours: given === undefined, cookies: this.cookies })
  }

  get #session(): string | undefined {
    return headerOf(this.#parts.request.headers, 'mcp-session-id')
  }

  /** The session that the message belongs to; undefined for `initialize`. */
  get inSession(): string | undefined {
    return this.passing.opens ? undefined : this.#session
  }

  get id(): Id | undefined {
    return this.passing.id ?? idIn(this.#parts.request.body)
  }

  get ids(): readonly Id[] | undefined {
    return this.passing.ids
  }

  /** Whether it has a request that must be answered. */
  get #hasCalls(): boolean {
    return this.id !== undefined || (this.ids !== undefined && this.ids.length > 0)
  }

  /** Handles the end of the reply: it was sent completely, or the client has disconnected. */
  over(): void {
    const { reply, record, messages } = this.#parts
    if (this.#over) return
    const complete = reply.raw.writableFinished
    if (!complete) this.#hangUp.abort()
    this.#settle(this.#fault ?? (complete ? this.#ending : undefined))
    const { revision } = messages ?? {}
    if (revision !== undefined) record.note({ clientRevision: revision })
    if (this.#fault) record.failed({ fault: this.#fault })
    else if (complete) record.ended(this.#ending)
    else record.cancelled('disconnected')
  }

  #settle(last?: Final | Fault): void {
    this.#over = true
    this.#free(undefined)
    this.#leaveSession()
    this.#parts.messages?.close()
    this.#parts.list?.close()
    this.#span.over(last)
    this.#onOver()
  }
}

/** The end of a request that was refused by status alone. */
function errorOf(status: number): Final {
  return { kind: 'error', error: { code: status, message: `HTTP ${status}` } }
}

/** Removes the server's headers, because they belong to a body that is not sent. Keeps `Allow`. */
function clearHeaders(reply: FastifyReply): void {
  for (const name of Object.keys(reply.getHeaders())) if (name !== 'allow') reply.removeHeader(name)
}
