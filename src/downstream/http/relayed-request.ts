/** One relayed request, from its headers to the end of its answer. */

import type { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type AccountRefusal, Fault } from '../../fault/fault.js'
import type { RelayedRecorder } from '../../ports/recorder.js'
import type { Account } from '../../protocol/account.js'
import type { Final, UpstreamSpan } from '../../protocol/call.js'
import { idIn } from '../../protocol/classify.js'
import type { Era } from '../../protocol/eras.js'
import { type HttpRefusal, refusalOf } from '../../protocol/refusal.js'
import type { Relayed, SessionCookies } from '../../protocol/upstream.js'
import type { Id } from '../../rpc/message.js'
import { MARK_LENGTH, startsWithMark } from '../../rpc/source.js'
import { EMPTY } from '../../rpc/splice.js'
import { headerOf, mediaType } from '../../texts/headers.js'
import { HangUp, type Signal } from '../../time/hang-up.js'
import type { CallLogEntry } from '../call-log.js'
import { replyIn } from '../outcome.js'
import { isEvents, type RelayedHeaders, sentOn } from './relay-headers.js'
import { awaitMessage, beginsMessage, isMessage, READ_FIRST, readBeginning, responseIn } from './relayed-answer.js'
import { RelayedCredential } from './relayed-credential.js'
import { RelayedEnding } from './relayed-ending.js'
import type { RelayedList } from './relayed-list.js'
import type { RelayedSessions } from './relayed-sessions.js'
import { RelayedStream } from './relayed-stream.js'
import { type ErrorRendering, refuse, sendWhole } from './replies.js'

/** What is known about a request without parsing its body again. */
export interface RelayedRequestOptions {
  era: Era
  method: string
  name?: string | undefined
  id?: Id | undefined
  /** The answer is an endless stream. */
  endless: boolean
  /** Set for a batch, which has no `id`: whether none of its messages needs an answer. */
  silent?: boolean | undefined
  /** The request is `initialize`, whose answer has the id of a session. */
  opens: boolean
  /** It continues a call in progress: the client answers a request of the server. */
  goesOn?: boolean
  /** The id of the request of the server that it answers. */
  answers?: Id | undefined
}

/** An answer of the server: its headers, and its body as a stream. */
export interface RelayedResponse {
  statusCode: number
  headers: RelayedHeaders
  stream: Readable
}

interface Parts {
  request: FastifyRequest
  reply: FastifyReply
  passing: RelayedRequestOptions
  refusing: ErrorRendering
  /** Answers the request without the relay, if the server has changed its era. */
  fallback: (() => void) | undefined
  record: CallLogEntry
  /** Records the messages; undefined if they are not recorded. */
  messages: RelayedRecorder | undefined
  /** Reads the requested list; undefined if its names are not needed. */
  list: RelayedList | undefined
  relayed: Relayed
  sessions: RelayedSessions
}

/** Statuses that say nothing about the server's era when it refuses `initialize` with them. */
const NOT_ABOUT_ERA: ReadonlySet<number> = new Set([401, 403, 407, 408, 429])
/** Headers that belong to one message. */
const OF_MESSAGE = ['content-encoding', 'last-event-id']
const BOTH = 'application/json, text/event-stream'
const OK: Final = { kind: 'result', result: EMPTY }

/** A relayed request. */
export class RelayedRequest {
  readonly passing: RelayedRequestOptions
  readonly #parts: Parts
  readonly #span: UpstreamSpan
  readonly #hangUp = new HangUp()
  readonly #onOver: () => void
  readonly #leaveSession: () => void
  #over = false
  /** How the call ended, according to the server's answer. */
  #ending = OK
  /** Why the server's answer is missing. */
  #fault: Fault | undefined
  /** The event stream from the server. */
  #stream: RelayedStream | undefined
  #draining = false
  /** The account's credential for the request. */
  #credential: RelayedCredential | undefined
  #send: () => void = () => {}
  /** The cookies of the session; undefined in the modern era, which has none. */
  readonly #cookies: SessionCookies | undefined

  constructor(parts: Parts, onOver: () => void) {
    this.passing = parts.passing
    this.#parts = parts
    this.#span = parts.record.handedOver()
    this.#onOver = onOver
    const { relayed, sessions } = parts
    const session = this.#inSession
    this.#leaveSession = session === undefined ? () => {} : sessions.begin(session)
    if (this.passing.era === 'legacy')
      this.#cookies = session === undefined ? relayed.cookies() : sessions.cookiesOf(session)
  }

  /** Records the messages; undefined if they are not recorded. */
  get messages(): RelayedRecorder | undefined {
    return this.#parts.messages
  }

  /** Aborts when the client has disconnected or the request is cut. */
  get signal(): Signal {
    return this.#hangUp
  }

  /** The headers to send to the server. */
  headersSentOn(headers: RelayedHeaders): RelayedHeaders {
    const { request, relayed, sessions } = this.#parts
    const { era, opens } = this.passing
    // `initialize` opens a session. A session id in it could give the client somebody else's session.
    const sent = sentOn(headers, era === 'legacy' && !opens)
    const session = headerOf(sent, 'mcp-session-id')
    if (session !== undefined && sessions.isOurs(session)) delete sent['mcp-session-id']
    const credential = this.#credential?.value ?? request.credential
    if (credential !== undefined) sent['authorization'] = credential
    if (this.#credential?.proof !== undefined) sent['dpop'] = this.#credential.proof
    if (this.#span.trace) Object.assign(sent, { tracestate: undefined, ...this.#span.trace })
    const all = { ...sent, 'accept-encoding': 'identity', ...relayed.headers }
    return this.#cookies?.addTo(this.#path, all) ?? all
  }

  /** Sends the request with the credential of an account, after that has been obtained. */
  sendAs(account: Account, send: () => void): void {
    this.#credential = new RelayedCredential(account, this.signal, {
      method: this.#parts.request.method,
      url: this.#parts.relayed.url.origin + this.#path,
    })
    this.#send = send
    try {
      const obtaining = this.#credential.obtain()
      if (obtaining) this.#sendAfter(obtaining)
      else send()
    } catch (error) {
      this.#cannotSend(error)
    }
  }

  #sendAfter(obtaining: Promise<void>): void {
    obtaining
      .then(() => {
        if (!this.#over) this.#send()
      })
      .catch((error: unknown) => this.#cannotSend(error))
  }

  /** Handles a missing credential. If the endpoint can answer the request instead, it can ask the client to sign in. */
  #cannotSend(error: unknown): void {
    if (this.#over) return
    const { fallback } = this.#parts
    if (fallback) return this.#handBack(fallback)
    this.#fault = Fault.from(error)
    this.#refuse(this.#fault, this.#id === undefined ? 502 : this.#fault.status)
  }

  /** Sends the request again with another credential. The server has not acted on the first attempt. */
  #sendAgain(credential: RelayedCredential, refusal: AccountRefusal): void {
    const { reply, fallback } = this.#parts
    // Modern requests go back to the endpoint, where the sign-in can answer for the server.
    if (fallback && this.passing.era === 'modern') return this.#handBack(fallback)
    clearHeaders(reply)
    this.#sendAfter(credential.replace(refusal, !this.passing.endless))
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
    else this.#hangUp.abort()
  }

  /** Handles the server's answer when its headers have arrived. */
  answered({ statusCode, headers, stream }: RelayedResponse): void {
    this.#cookies?.keepFrom(this.#path, headers)
    const refusal = this.#credential?.refusedBy(
      statusCode,
      headers['www-authenticate'],
      headerOf(headers, 'dpop-nonce'),
    )
    if (this.#credential && refusal) {
      stream.on('error', () => {}).resume()
      return this.#sendAgain(this.#credential, refusal)
    }
    const known = statusCode < 300 && this.passing.era === 'legacy' ? this.#noteSession(headers) : undefined
    const session = this.#inSession
    const kept = (session && this.#parts.sessions.cookiesTaken(session)) ?? this.#cookies?.settled
    if (!known && !kept) return this.#pass({ statusCode, headers, stream })
    // Once it has the answer, the client may send its next request to any replica, which must know the cookies.
    const noted = () => {}
    stream.on('error', noted)
    Promise.all([known, kept]).then(() => {
      stream.off('error', noted)
      if (stream.destroyed) this.failed(stream.errored ?? new Error('The connection was closed before the answer came'))
      else this.#pass({ statusCode, headers, stream })
    }, this.failed.bind(this))
  }

  #pass({ statusCode, headers, stream }: RelayedResponse): void {
    const { relayed, request } = this.#parts
    if (statusCode < 300 && isEvents(headers)) {
      const unusable = relayed.unusable(headers, 0)
      if (unusable) return this.#drop(stream, unusable)
      return this.#isSilent ? this.#sendEventsIfAny(stream) : this.#sendEvents(stream)
    }
    if (statusCode < 300 && request.method === 'GET') return this.#sayNoStream(stream)
    readBeginning(stream, READ_FIRST, (error, beginning, whole) => {
      if (error) return this.failed(error)
      const length = Math.max(beginning.length, Number(headerOf(headers, 'content-length') ?? 0))
      const unusable = statusCode < 300 && this.#id !== undefined && length > 0 && relayed.unusable(headers, length)
      if (unusable) return this.#drop(stream, unusable)
      const bytes = this.#withoutMark(beginning, !whole && stream)
      if (statusCode >= 300) {
        // The unread body emits an error when it is destroyed, which must not be thrown.
        if (!whole) stream.on('error', () => {}).destroy()
        this.#refused(
          refusalOf(statusCode, (name) => headerOf(headers, name), bytes.toString('utf8')),
          bytes,
        )
      } else if (whole) this.#sendWhole(statusCode, headers, bytes)
      else if (this.#isSilent && !beginsMessage(bytes)) {
        stream.on('error', () => {}).destroy()
        this.#accept()
      } else this.#sendLarge(stream, statusCode, headers)
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
    if (reply.raw.destroyed) {
      reply.hijack()
      return
    }
    const fault = this.#lose(error)
    // Without an id, there is no call with an unknown outcome.
    this.#refuse(fault, this.#id === undefined ? 502 : fault.status)
  }

  #sendWhole(status: number, headers: RelayedHeaders, bytes: Buffer): void {
    const { reply } = this.#parts
    if (this.#isSilent && !isMessage(bytes)) return this.#accept()
    if (bytes.length === 0) {
      reply.send()
      return
    }
    const strange = mediaType(headers) !== 'application/json' && !isMessage(bytes)
    if (strange && (this.#id !== undefined || this.passing.silent === false)) {
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

  /** Whether the request needs no answer: a notification, the answer to a question of the server, or a batch of such. */
  get #isSilent(): boolean {
    if (this.#parts.request.method !== 'POST') return false
    return this.passing.silent ?? this.#id === undefined
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

  /**
   * Answers a GET with 405, because the server has answered it with something other than a stream. The status tells clients
   * that there is no stream, so that they do not retry.
   */
  #sayNoStream(body: Readable): void {
    body.on('error', () => {}).destroy()
    this.#ending = errorOf(405)
    this.#parts.reply.header('allow', 'POST, DELETE')
    this.#refuse(new Fault('methodNotAllowed', 'The server has no stream for its own messages'), 405)
  }

  /** Answers with a fault in place of an answer that cannot be passed on. */
  #drop(stream: Readable, fault: Fault): void {
    // The unread body emits an error when it is destroyed, which must not be thrown.
    stream.on('error', () => {}).destroy()
    this.#fault = fault
    this.#refuse(fault, this.#id === undefined ? 502 : fault.status)
  }

  /**
   * Passes on an answer while it arrives, and reads how the call ended. If it turns out to be too large, the answer breaks
   * off, because its beginning has been sent.
   */
  #sendLarge(stream: Readable, status: number, headers: RelayedHeaders): void {
    const { messages, list, relayed } = this.#parts
    const ending = new RelayedEnding()
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
    stream.on('error', (broken) => this.#lose(broken))
    stream.once('end', () => {
      this.#ending = ending.final ?? OK
      this.#span.over(this.#ending)
      messages?.partsEnded(status, this.#ending.kind === 'error' ? 'error' : 'result')
      list?.partsEnded()
    })
    this.#parts.reply.send(stream)
  }

  /** Handles a status of 300 or more: passes it on, unless the server has changed its era. */
  #refused(refusal: HttpRefusal, bytes: Buffer): void {
    const { reply, request, relayed } = this.#parts
    const { era, opens } = this.passing
    const { status } = refusal
    const refusesToOpen = opens && status >= 400 && status < 500 && !NOT_ABOUT_ERA.has(status)
    if (!refusesToOpen && !relayed.contradicts(refusal, era)) return this.#unlessLost(refusal, bytes)
    const { principal, credential } = request
    const sender = { principal, credential, caller: { revision: '', capabilities: '{}' } }
    relayed
      .turned(era, sender)
      .then((turned) => {
        if (reply.raw.destroyed) reply.hijack()
        else if (turned) this.#changeEra(refusal, bytes)
        else this.#passRefusal(refusal, bytes)
      })
      .catch((error: Error) => this.failed(error))
  }

  /**
   * Handles a request whose server has changed its era, and so has not acted on it. The endpoint answers it, or the session
   * is lost.
   */
  #changeEra(refusal: HttpRefusal, bytes: Buffer): void {
    const { fallback } = this.#parts
    if (fallback) this.#handBack(fallback)
    else if (this.#inSession) this.#sessionGone(this.#inSession)
    else this.#passRefusal(refusal, bytes)
  }

  /** Passes on a refusal. If it means that the server has lost the session, sends 404, which every client understands. */
  #unlessLost(refusal: HttpRefusal, bytes: Buffer): void {
    const { reply, request, relayed } = this.#parts
    const session = this.#inSession
    if (session === undefined || request.method !== 'POST' || refusal.status === 404 || refusal.status < 400)
      return this.#passRefusal(refusal, bytes)
    relayed
      .hasLostSession(refusal, this.passing.method, { principal: request.principal, headers: this.#headersToLook() })
      .then((isLost) => {
        if (reply.raw.destroyed) reply.hijack()
        else if (isLost) this.#sessionGone(session)
        else this.#passRefusal(refusal, bytes)
      })
      .catch((error: Error) => this.failed(error))
  }

  /** The headers of another request in the session. */
  #headersToLook(): Readonly<Record<string, string>> {
    const sent = this.headersSentOn(this.#parts.request.headers)
    for (const name of OF_MESSAGE) delete sent[name]
    const others = Object.entries(sent).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]]))
    return { ...Object.fromEntries(others), 'content-type': 'application/json', accept: BOTH }
  }

  #passRefusal(refusal: HttpRefusal, bytes: Buffer): void {
    const { reply, relayed, sessions } = this.#parts
    const { status } = refusal
    const fault = relayed.refused(refusal)
    if (!fault) {
      if (status === 404 && this.#inSession) sessions.forget(this.#inSession)
      const response = responseIn(bytes)
      this.#ending = response ? replyIn(response) : errorOf(status)
      this.#parts.messages?.answer(bytes, status)
      reply.send(bytes)
      return
    }
    this.#parts.messages?.refused(bytes, status)
    if (status === 404 && this.#inSession) return this.#sessionGone(this.#inSession)
    const answers = this.#id !== undefined
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
    const { reply, messages, list, refusing, relayed } = this.#parts
    const { era, endless } = this.passing
    const stream = new RelayedStream(source, reply, {
      era,
      endless,
      draftErrorCodes: refusing.draftErrorCodes,
      limit: relayed.bodyLimit,
      id: () => this.#id,
      onChunk:
        (messages || list) &&
        ((chunk) => {
          messages?.chunk(chunk)
          list?.chunk(chunk)
        }),
      onOwn: messages && ((text) => messages.own(text, 200)),
      onAnswer: (final) => {
        this.#ending = final
        this.#fault = undefined
        this.#span.over(final)
      },
      onLoss: (error) => this.#lose(error),
    })
    this.#stream = stream
    if (this.#draining) stream.drain()
    else if (this.#fault) stream.finish()
  }

  /** Remembers why the answer is lost. */
  #lose(error: Error): Fault {
    this.#fault ??= this.#parts.relayed.failed(error)
    return this.#fault
  }

  #refuse(fault: Fault, status: number | undefined): void {
    const { reply, refusing, messages } = this.#parts
    clearHeaders(reply)
    const text = refuse(reply, fault, { ...refusing, id: this.#id, status })
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
    return sessions.opened(id, { principal: request.principal, ours: given === undefined, cookies: this.#cookies })
  }

  get #session(): string | undefined {
    return headerOf(this.#parts.request.headers, 'mcp-session-id')
  }

  /** The session that the message belongs to; undefined for `initialize` and for modern requests. */
  get #inSession(): string | undefined {
    return this.passing.era === 'legacy' && !this.passing.opens ? this.#session : undefined
  }

  /** The path of the request at the server. */
  get #path(): string {
    const { relayed, request } = this.#parts
    return relayed.redirects.pathFor(request.principal)
  }

  get #id(): Id | undefined {
    return this.passing.id ?? idIn(this.#parts.request.body)
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
    if (this.#fault) record.failed(this.#fault)
    else if (complete) record.ended(this.#ending)
    else record.cancelled('disconnected')
  }

  #settle(last?: Final | Fault): void {
    this.#over = true
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
