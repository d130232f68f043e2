/** One relayed request, from its headers to the end of its answer. */

import type { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { HangUp, type Signal } from '../../hang-up.js'
import type { Account, AccountRefusal } from '../../protocol/account.js'
import type { Final, Relayed, UpstreamSpan } from '../../protocol/call.js'
import type { Era } from '../../protocol/eras.js'
import { Fault } from '../../protocol/fault.js'
import { type Refusal, refusalOf } from '../../protocol/refusal.js'
import type { Id } from '../../rpc/message.js'
import { EMPTY } from '../../rpc/splice.js'
import type { CallLogEntry } from '../call-log.js'
import { replyIn } from '../outcome.js'
import { idIn } from '../read-message.js'
import { type Headers, headerOf, isEvents, mediaType, sentOn } from './relay-headers.js'
import { isMessage, READ_FIRST, readBeginning, responseIn } from './relayed-answer.js'
import { RelayedCredential } from './relayed-credential.js'
import { RelayedEnding } from './relayed-ending.js'
import type { RelayedMessages } from './relayed-messages.js'
import type { RelayedSessions } from './relayed-sessions.js'
import { RelayedStream } from './relayed-stream.js'
import { type ErrorRendering, refuse } from './replies.js'

/** What is known about a request without parsing its body again. */
export interface RelayedRequestOptions {
  era: Era
  method: string
  name?: string | undefined
  id?: Id | undefined
  /** The answer is a stream without an end of its own. */
  endless: boolean
  /** The request is `initialize`: the answer brings the id of a session. */
  opens: boolean
  /** It continues a call in progress: the client answers a request of the server. */
  goesOn?: boolean
  /** The id of the request of the server that it answers. */
  answers?: Id | undefined
}

/** An answer of the server: its headers, and its body as a stream. */
export interface Response {
  statusCode: number
  headers: Headers
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
  /** Tells the inspector the messages; undefined without one. */
  messages: RelayedMessages | undefined
  relayed: Relayed
  sessions: RelayedSessions
}

/** Statuses that say nothing about the server's era when it refuses `initialize` with them. */
const NOT_ABOUT_ERA: ReadonlySet<number> = new Set([401, 403, 407, 408, 429])
const OK: Final = { kind: 'result', result: EMPTY }

/** A relayed request. */
export class RelayedRequest {
  readonly passing: RelayedRequestOptions
  readonly #parts: Parts
  readonly #span: UpstreamSpan
  readonly #hangUp = new HangUp()
  readonly #onOver: () => void
  #over = false
  /** How the call ended, as far as the server's answer shows. */
  #ending = OK
  /** Why the server's answer is missing. */
  #fault: Fault | undefined
  /** The event stream from the server. */
  #stream: RelayedStream | undefined
  #draining = false
  /** The credential of the account that the request is sent for. */
  #credential: RelayedCredential | undefined
  #send: () => void = () => {}

  constructor(parts: Parts, onOver: () => void) {
    this.passing = parts.passing
    this.#parts = parts
    this.#span = parts.record.handedOver()
    this.#onOver = onOver
  }

  /** Tells the inspector the messages; undefined without one. */
  get messages(): RelayedMessages | undefined {
    return this.#parts.messages
  }

  /** Aborts when the client has disconnected or the request is cut. */
  get signal(): Signal {
    return this.#hangUp
  }

  /** The headers to send to the server. */
  headersSentOn(headers: Headers): Headers {
    const { request, relayed, sessions } = this.#parts
    const { era, opens } = this.passing
    // `initialize` opens a session. A session id sent with it could give the client a session of somebody else.
    const sent = sentOn(headers, era === 'legacy' && !opens)
    const session = headerOf(sent, 'mcp-session-id')
    if (session !== undefined && sessions.isOurs(session)) delete sent['mcp-session-id']
    const credential = this.#credential?.value ?? request.credential
    if (credential !== undefined) sent['authorization'] = credential
    if (this.#span.trace) Object.assign(sent, { tracestate: undefined, ...this.#span.trace })
    return { ...sent, 'accept-encoding': 'identity', ...relayed.headers }
  }

  /** Sends it with the credential of an account, as soon as the account has one. */
  sendAs(account: Account, send: () => void): void {
    this.#credential = new RelayedCredential(account, this.signal)
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

  /** Sends it again with another credential, if there is one. The server has not acted on the first attempt. */
  #sendAgain(credential: RelayedCredential, refusal: AccountRefusal): void {
    const { reply, fallback } = this.#parts
    // Modern requests go back to the policies, where `sign-in` can answer for the server.
    if (fallback && this.passing.era === 'modern') return this.#handBack(fallback)
    clearHeaders(reply)
    this.#sendAfter(credential.replace(refusal, !this.passing.endless))
  }

  /** Ends a stream without an end of its own: now, or when it has begun. */
  drain(): void {
    if (!this.passing.endless) return
    this.#draining = true
    this.#stream?.drain()
  }

  /** Ends the request with an error, unless a part of the answer was sent that no error can follow. */
  cut(fault: Fault): void {
    this.#fault ??= fault
    if (this.#stream) this.#stream.finish()
    else this.#hangUp.abort()
  }

  /** Handles the server's answer, once its headers have come. */
  answered({ statusCode, headers, stream }: Response): void {
    const refusal = this.#credential?.refusedBy(statusCode, headers['www-authenticate'])
    if (this.#credential && refusal) {
      stream.on('error', () => {}).resume()
      return this.#sendAgain(this.#credential, refusal)
    }
    if (statusCode < 300 && this.passing.era === 'legacy') this.#noteSession(headers)
    if (statusCode < 300 && isEvents(headers)) return this.#sendEvents(stream)
    readBeginning(stream, READ_FIRST, (error, bytes, whole) => {
      if (error) return this.failed(error)
      if (statusCode >= 300) {
        // The unread body emits an error when it is destroyed, which must not be thrown.
        if (!whole) stream.on('error', () => {}).destroy()
        this.#refused(
          refusalOf(statusCode, (name) => headerOf(headers, name), bytes.toString('utf8')),
          bytes,
        )
      } else if (whole) this.#sendWhole(statusCode, headers, bytes)
      else this.#sendLarge(stream, statusCode)
    })
  }

  /** Handles a connection that failed before or during the answer. */
  failed(error: Error): void {
    const { reply } = this.#parts
    if (reply.raw.destroyed) {
      reply.hijack()
      return
    }
    const fault = this.#lose(error)
    // Without an id there is no call whose outcome could be unknown.
    this.#refuse(fault, this.#id === undefined ? 502 : fault.status)
  }

  #sendWhole(status: number, headers: Headers, bytes: Buffer): void {
    const { request, reply } = this.#parts
    if (bytes.length === 0) {
      reply.send()
      return
    }
    const strange = request.method === 'GET' || (mediaType(headers) !== 'application/json' && !isMessage(bytes))
    if (strange && (request.method === 'GET' || this.#id !== undefined)) {
      const type = mediaType(headers) || 'no content type'
      const message = `The server answered with HTTP ${status} and ${type} instead of a message`
      this.#fault = new Fault('upstreamProtocol', message)
      return this.#refuse(this.#fault, this.#id === undefined ? 502 : this.#fault.status)
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
    reply.send(bytes)
  }

  /** Sends an answer on as it comes, and reads how the call ended. */
  #sendLarge(stream: Readable, status: number): void {
    const { messages } = this.#parts
    const ending = new RelayedEnding()
    stream.on('data', (chunk: Buffer) => {
      ending.push(chunk)
      messages?.part(chunk)
    })
    stream.on('error', (broken) => this.#lose(broken))
    stream.once('end', () => {
      this.#ending = ending.final ?? OK
      this.#span.over(this.#ending)
      messages?.partsEnded(status, this.#ending.kind === 'error' ? 'error' : 'result')
    })
    this.#parts.reply.send(stream)
  }

  /** Handles a status of 300 or more: passes it on, unless the server has changed its era. */
  #refused(refusal: Refusal, bytes: Buffer): void {
    const { reply, request, relayed } = this.#parts
    const { era, opens } = this.passing
    const { status } = refusal
    const refusesToOpen = opens && status >= 400 && status < 500 && !NOT_ABOUT_ERA.has(status)
    if (!refusesToOpen && !relayed.contradicts(refusal, era)) return this.#passRefusal(refusal, bytes)
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
   * The server has changed its era and has not acted on the request. The endpoint answers it, or its session is lost.
   */
  #changeEra(refusal: Refusal, bytes: Buffer): void {
    const { fallback } = this.#parts
    if (fallback) this.#handBack(fallback)
    else if (this.#inSession) this.#sessionGone(this.#inSession)
    else this.#passRefusal(refusal, bytes)
  }

  #passRefusal(refusal: Refusal, bytes: Buffer): void {
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
    // The server's status is passed on. But a 5xx would invite a retry, so not if the outcome is unknown.
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
    const { reply, messages, refusing } = this.#parts
    const { era, endless } = this.passing
    const stream = new RelayedStream(source, reply, {
      era,
      endless,
      draftErrorCodes: refusing.draftErrorCodes,
      id: () => this.#id,
      onChunk: messages && ((chunk) => messages.chunk(chunk)),
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
   * Remembers the owner of a new session. If the server opened none, the bridge creates an id, by which it knows the
   * client.
   */
  #noteSession(headers: Headers): void {
    const { request, reply, sessions, record } = this.#parts
    if (!this.passing.opens) {
      if (request.method === 'DELETE' && this.#session !== undefined) sessions.forget(this.#session)
      return
    }
    const given = headerOf(headers, 'mcp-session-id')
    const id = given ?? crypto.randomUUID()
    if (given === undefined) reply.header('mcp-session-id', id)
    record.watched?.opened(id)
    sessions.opened(id, { principal: request.principal, ours: given === undefined })
  }

  get #session(): string | undefined {
    return headerOf(this.#parts.request.headers, 'mcp-session-id')
  }

  /** The session that the message belongs to; undefined for `initialize` and for modern requests. */
  get #inSession(): string | undefined {
    return this.passing.era === 'legacy' && !this.passing.opens ? this.#session : undefined
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
    this.#parts.messages?.close()
    this.#span.over(last)
    this.#onOver()
  }
}

/** The end of a request that was refused by status alone. */
function errorOf(status: number): Final {
  return { kind: 'error', error: { code: status, message: `HTTP ${status}` } }
}

/** Removes the server's headers, because they belong to a body that is not sent. `Allow` stays. */
function clearHeaders(reply: FastifyReply): void {
  for (const name of Object.keys(reply.getHeaders())) if (name !== 'allow') reply.removeHeader(name)
}
