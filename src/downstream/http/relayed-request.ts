/** One request that is passed on as it came, from its headers to the end of its answer. */

import type { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Account, type AccountRefusal, MAX_RETRIES, refusedCredential } from '../../protocol/account.js'
import type { Relayed, UpstreamSpan } from '../../protocol/call.js'
import type { Era } from '../../protocol/eras.js'
import { Fault, needsSignIn } from '../../protocol/fault.js'
import { encodeReply } from '../../protocol/modern-client.js'
import { type Refusal, refusalOf } from '../../protocol/refusal.js'
import { error as errorMessage, type Id } from '../../rpc/message.js'
import { EMPTY } from '../../rpc/splice.js'
import { type CallLogEntry, type Final, replyIn } from '../call-log.js'
import { idIn } from '../read-message.js'
import { type Headers, headerOf, isEvents, mediaType, sentOn } from './relay-headers.js'
import { isMessage, READ_FIRST, RelayedEvents, readBeginning, responseIn } from './relayed-answer.js'
import type { RelayedSessions } from './relayed-sessions.js'
import { type ErrorRendering, refuse } from './replies.js'

/** What is to be told of a request, as far as it is known without reading it twice. */
export interface RelayedRequestOptions {
  era: Era
  method: string
  name?: string | undefined
  id?: Id | undefined
  /** A stream that stays open until somebody ends it. */
  endless: boolean
  /** The request opens a session, whose id comes with the answer. */
  opens: boolean
  /** It is the client's answer in the middle of something else. */
  goesOn?: boolean
}

/** An answer of the server, of which only the headers have come. */
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
  /** Answers the request without the relay, where the server turns out to speak the other era. */
  otherwise: (() => void) | undefined
  record: CallLogEntry
  relayed: Relayed
  sessions: RelayedSessions
}

/** Statuses that `initialize` is refused with whatever the server speaks. */
const ABOUT_SOMETHING_ELSE: ReadonlySet<number> = new Set([401, 403, 407, 408, 429])
const OK: Final = { kind: 'result', result: EMPTY }

export class RelayedRequest {
  readonly passing: RelayedRequestOptions
  readonly #parts: Parts
  readonly #handOver: UpstreamSpan
  readonly #controller = new AbortController()
  readonly #onOver: () => void
  #over = false
  /** How the call has ended, as far as the server's answer shows. */
  #ending = OK
  /** Why there is no answer of the server. */
  #fault: Fault | undefined
  /** The stream that goes out, and the one that it comes from. */
  #events: RelayedEvents | undefined
  #source: Readable | undefined
  #draining = false
  /** In whose name it is sent, and what that is shown by. */
  #account: Account | undefined
  #credential: string | undefined
  #send: () => void = () => {}
  #retries = 0

  constructor(parts: Parts, onOver: () => void) {
    this.passing = parts.passing
    this.#parts = parts
    this.#handOver = parts.record.handedOver()
    this.#onOver = onOver
  }

  /** Aborts when the client has gone, or the request is given up. */
  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** What goes on of the request's headers. */
  headersSentOn(headers: Headers): Headers {
    const { request, relayed, sessions } = this.#parts
    const { era, opens } = this.passing
    // A session that a client names with `initialize` is one that the server would give to whoever names it.
    const sent = sentOn(headers, era === 'legacy' && !opens)
    const session = headerOf(sent, 'mcp-session-id')
    if (session !== undefined && sessions.isOurs(session)) delete sent['mcp-session-id']
    const credential = this.#credential ?? request.credential
    if (credential !== undefined) sent['authorization'] = credential
    if (this.#handOver.trace) Object.assign(sent, { tracestate: undefined, ...this.#handOver.trace })
    return { ...sent, 'accept-encoding': 'identity', ...relayed.headers }
  }

  /** Sends it in the name of an account, as soon as it is known what that takes. */
  sendAs(account: Account, send: () => void): void {
    this.#account = account
    this.#send = send
    try {
      const credential = account.authorization(this.signal)
      if (typeof credential === 'object') this.#sendWith(credential)
      else {
        this.#credential = credential
        send()
      }
    } catch (error) {
      this.#cannotSend(error)
    }
  }

  #sendWith(coming: Promise<string | undefined>): void {
    coming
      .then((credential) => {
        if (this.#over) return
        this.#credential = credential
        this.#send()
      })
      .catch((error: unknown) => this.#cannotSend(error))
  }

  /** There is no credential. Whoever opens a session gets one of the bridge's own, in which that can be told. */
  #cannotSend(error: unknown): void {
    if (this.#over) return
    const { otherwise } = this.#parts
    if (otherwise) return this.#handBack(otherwise)
    this.#fault = Fault.from(error)
    this.#refuse(this.#fault, this.#id === undefined ? 502 : this.#fault.status)
  }

  /** Sends it again with another credential, if there is one: the server has not acted on it. */
  #sendAgain(account: Account, refusal: AccountRefusal): void {
    const { reply, otherwise } = this.#parts
    // The middle can do more for the client than wait.
    if (otherwise && this.passing.era === 'modern') return this.#handBack(otherwise)
    clearHeaders(reply)
    const { endless } = this.passing
    this.#sendWith(endless ? account.refused(refusal, this.signal) : anotherFor(account, refusal, this.signal))
  }

  /** Ends a stream that would stay open for ever, now or when it has begun. */
  drain(): void {
    if (!this.passing.endless) return
    this.#draining = true
    this.#finish()
  }

  /** Ends the request. Its client is told why, unless it has got a part of the answer that no error can follow. */
  cut(fault: Fault): void {
    this.#fault ??= fault
    if (this.#events) this.#finish()
    else this.#controller.abort()
  }

  answered({ statusCode, headers, stream }: Response): void {
    const { reply } = this.#parts
    const challenge = headers['www-authenticate']
    const refusal = this.#account && refusedCredential(statusCode, challenge, this.#credential)
    if (this.#account && refusal && this.#retries++ < MAX_RETRIES) {
      stream.on('error', () => {}).resume()
      return this.#sendAgain(this.#account, refusal)
    }
    if (statusCode < 300 && this.passing.era === 'legacy') this.#noteSession(headers)
    if (statusCode < 300 && isEvents(headers)) return this.#sendEvents(stream)
    readBeginning(stream, READ_FIRST, (error, bytes, whole) => {
      if (error) return this.failed(error)
      if (statusCode >= 300) {
        // What is not read any more may fail as it likes, and does so when it is destroyed.
        if (!whole) stream.on('error', () => {}).destroy()
        this.#refused(
          refusalOf(statusCode, (name) => headerOf(headers, name), bytes.toString('utf8')),
          bytes,
        )
      } else if (whole) this.#sendWhole(statusCode, headers, bytes)
      else {
        stream.on('error', (broken) => this.#lose(broken)).once('end', () => this.#handOver.over(this.#ending))
        reply.send(stream)
      }
    })
  }

  /** The connection has failed before the answer was there, or in the middle of it. */
  failed(error: Error): void {
    const { reply } = this.#parts
    if (reply.raw.destroyed) {
      reply.hijack()
      return
    }
    const fault = this.#lose(error)
    // Where nobody waits for an answer, there is no call whose outcome could be unknown.
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
      const message = `The server answered with ${status} and ${type} instead of a message`
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
    this.#handOver.over(this.#ending)
    reply.send(bytes)
  }

  /** What an HTTP status of 300 or more means here. */
  #refused(refusal: Refusal, bytes: Buffer): void {
    const { reply, request, relayed } = this.#parts
    const { era, opens } = this.passing
    const { status } = refusal
    const refusesToOpen = opens && status >= 400 && status < 500 && !ABOUT_SOMETHING_ELSE.has(status)
    if (!refusesToOpen && !relayed.contradicts(refusal, era)) return this.#passRefusal(refusal, bytes)
    const { principal, credential } = request
    const sender = { principal, credential, caller: { revision: '', capabilities: '{}' } }
    relayed
      .turned(era, sender)
      .then((turned) => {
        if (reply.raw.destroyed) reply.hijack()
        else if (turned) this.#leave(refusal, bytes)
        else this.#passRefusal(refusal, bytes)
      })
      .catch((error: Error) => this.failed(error))
  }

  /** The server speaks the other era by now. It has not acted on the request: the endpoint answers it, or its session is gone. */
  #leave(refusal: Refusal, bytes: Buffer): void {
    const { otherwise } = this.#parts
    if (otherwise) this.#handBack(otherwise)
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
      reply.send(bytes)
      return
    }
    if (status === 404 && this.#inSession) return this.#sessionGone(this.#inSession)
    const answers = this.#id !== undefined
    if (answers || status < 400 || status >= 500) this.#fault = fault
    else this.#ending = errorOf(status)
    // The client speaks to this server, so its status means something; but none above 499 where the outcome is unknown.
    const own = status < 400 || (answers && fault.row.outcome === 'unknown') ? fault.status : status
    this.#refuse(fault, fault.refused ? undefined : own)
  }

  #sessionGone(session: string): void {
    this.#parts.sessions.forget(session)
    this.#ending = errorOf(404)
    this.#refuse(new Fault('sessionNotFound', 'Session not found: call initialize to open one'), 404)
  }

  #handBack(otherwise: () => void): void {
    const { reply, record } = this.#parts
    this.#settle()
    record.moved()
    clearHeaders(reply)
    reply.code(200)
    otherwise()
  }

  #sendEvents(stream: Readable): void {
    const { reply } = this.#parts
    const events = new RelayedEvents(this.passing.era === 'modern', (passed) => this.#lastWord(passed))
    this.#events = events
    this.#source = stream
    events.once('close', () => stream.destroy())
    stream.on('error', (error) => {
      if (events.writableEnded) return
      this.#lose(error)
      if (events.isWhole && this.#canBeTold(events)) this.#finish()
      else events.destroy(error)
    })
    reply.send(stream.pipe(events))
    // A stream may have nothing to say for long: that it is there, its client has to know at once.
    reply.raw.flushHeaders()
    if (this.#draining || this.#fault) this.#finish()
  }

  /** Ends the stream of events. */
  #finish(): void {
    const events = this.#events
    if (!events || events.writableEnded) return
    this.#source?.unpipe(events)
    events.end()
  }

  /** What a stream of events ends with, beside what the server has said; undefined for nothing. */
  #lastWord(events: RelayedEvents): string | undefined {
    const { era, endless } = this.passing
    if (endless && this.#draining)
      return era === 'modern' && this.#id !== undefined ? subscriptionEnded(this.#id) : undefined
    const { answer } = events
    if (answer && answer !== 'not seen') {
      this.#ending = replyIn(answer)
      this.#fault = undefined
      this.#handOver.over(this.#ending)
    }
    if (answer || endless || !this.#canBeTold(events)) return undefined
    const fault = this.#lose(new Error('The server closed the stream without an answer'))
    return errorMessage(this.#id, fault.toRpcError(this.#parts.refusing.draftErrorCodes))
  }

  /** Whether an error would end the call. A client that can come back for the rest of a stream may still get its answer. */
  #canBeTold(events: RelayedEvents): boolean {
    return this.#id !== undefined && (this.passing.era === 'modern' || !events.isResumable)
  }

  /** Notes that the answer cannot come. */
  #lose(error: Error): Fault {
    this.#fault ??= this.#parts.relayed.failed(error)
    return this.#fault
  }

  #refuse(fault: Fault, status: number | undefined): void {
    const { reply, refusing } = this.#parts
    clearHeaders(reply)
    refuse(reply, fault, { ...refusing, id: this.#id, status })
  }

  /** Notes whose a session is. Where the server opens none, the client gets an id all the same: it is how it is known here. */
  #noteSession(headers: Headers): void {
    const { request, reply, sessions } = this.#parts
    if (!this.passing.opens) {
      if (request.method === 'DELETE' && this.#session !== undefined) sessions.forget(this.#session)
      return
    }
    const given = headerOf(headers, 'mcp-session-id')
    const id = given ?? crypto.randomUUID()
    if (given === undefined) reply.header('mcp-session-id', id)
    sessions.opened(id, { principal: request.principal, ours: given === undefined })
  }

  get #session(): string | undefined {
    return headerOf(this.#parts.request.headers, 'mcp-session-id')
  }

  /** The session that the message belongs to. */
  get #inSession(): string | undefined {
    return this.passing.era === 'legacy' && !this.passing.opens ? this.#session : undefined
  }

  get #id(): Id | undefined {
    return this.passing.id ?? idIn(this.#parts.request.body)
  }

  /** The reply is over: sent whole, or left by its client. */
  over(): void {
    const { reply, record } = this.#parts
    if (this.#over) return
    const whole = reply.raw.writableFinished
    if (!whole) this.#controller.abort()
    this.#settle(this.#fault ?? (whole ? this.#ending : undefined))
    if (this.#fault) record.failed(this.#fault)
    else if (whole) record.ended(this.#ending)
    else record.cancelled()
  }

  #settle(last?: Final | Fault): void {
    this.#over = true
    this.#handOver.over(last)
    this.#onOver()
  }
}

/** How a message ends that was refused by status alone. */
function errorOf(status: number): Final {
  return { kind: 'error', error: { code: status, message: `HTTP ${status}` } }
}

/** The result of a subscription that has come to its end. */
function subscriptionEnded(id: Id): string {
  const listen = { method: 'subscriptions/listen', progressToken: undefined }
  return encodeReply({ kind: 'result', result: EMPTY }, id, listen) as string
}

/** Removes the headers of the server, which are about a body that is not sent. Which methods it allows still holds. */
function clearHeaders(reply: FastifyReply): void {
  for (const name of Object.keys(reply.getHeaders())) if (name !== 'allow') reply.removeHeader(name)
}

/**
 * Another `Authorization` after one was refused, for a request of a client: somebody may be asked to sign in for it. Rejects
 * with a Fault.
 */
async function anotherFor(account: Account, refusal: AccountRefusal, signal: AbortSignal): Promise<string> {
  try {
    return await account.refused(refusal, signal)
  } catch (error) {
    if (!needsSignIn(error) || !error.signInFor) throw error
    return account.signIn(error.signInFor, signal)
  }
}
