/** Answers the requests of legacy clients at the endpoint: to open, use and end a session. */

import type { FastifyReply, FastifyRequest } from 'fastify'
import { Fault } from '../../base/fault/fault.js'
import type { Message, Notification, Request, Response } from '../../base/rpc/message.js'
import { join, wireOf } from '../../base/rpc/source.js'
import { HangUp } from '../../base/time/hang-up.js'
import { ANOTHER, OwnedByReplica } from '../../mcp/ports/replicas.js'
import { textWithoutAbsent } from '../../mcp/protocol/absent.js'
import { NAMELESS } from '../../mcp/protocol/account.js'
import type { ReceivedOneWay } from '../../mcp/protocol/call.js'
import { type Era, legacyRevision, looksModern, traits } from '../../mcp/protocol/eras.js'
import { type ReceivedHeaders, single, versionHeader } from '../../mcp/protocol/headers.js'
import type { DirectSession } from '../../mcp/protocol/upstream.js'
import { answerLost } from '../frames.js'
import { readBatch, type SortedBatch } from '../legacy/batch.js'
import { DirectClientSession } from '../legacy/direct-session.js'
import { TranslatedSession } from '../legacy/half.js'
import { openSession } from '../legacy/open-session.js'
import type { ClientSession, OpenOptions, SessionRecord } from '../legacy/session.js'
import { type AnswerOptions, answerOneWay } from './answer.js'
import { takeOver } from './body.js'
import { checkTakesEvents } from './content-type.js'
import type { EventStore } from './event-store.js'
import { forwardedHeadersIn } from './forwarded-headers.js'
import type { HandedSessions } from './handed-sessions.js'
import { readHeaders, traceHeaders } from './headers.js'
import { type ErrorRendering, notAllowed, sendAnswer, whenOver } from './replies.js'
import type { ServedOptions } from './served.js'
import { forwardedOf, HttpSession, ofNoCall } from './session.js'
import type { SessionStore } from './sessions.js'
import { Streams } from './streams.js'

export interface SessionRequestsOptions extends ServedOptions, AnswerOptions {
  sessions: SessionStore<HttpSession>
  /** Sessions that another replica has left; undefined if there are no other replicas. */
  handed?: HandedSessions | undefined
  /** The era of a server that is reached over Streamable HTTP; undefined if it is not, or if its era is not known yet. */
  speaks?: (() => Era | undefined) | undefined
  refusing: ErrorRendering
  /** Stored events, for legacy clients that resume a stream. */
  events: EventStore
}

/** What a message that gets no answer has in common with others of its request. */
type Heard = Omit<ReceivedOneWay, 'bytes' | 'batch'>

/** The events of a session of the server itself are the server's. */
const PASSED = { resumable: false, priming: false, passes: true }
/** The bridge itself, before it was started again, in place of the replica that had a session. */
const BEFORE = ''

export class SessionRequests {
  readonly #options: SessionRequestsOptions
  /** Sessions of other replicas that are about to continue here, by id. */
  readonly #continuing = new Map<string, Promise<void>>()

  constructor(options: SessionRequestsOptions) {
    this.#options = options
  }

  /** Answers GET (opens a stream of a session) and DELETE (ends a session). */
  async use(reply: FastifyReply): Promise<void> {
    const { request } = reply
    const { received } = readHeaders(request.raw)
    checkNotModern(received, reply)
    const id = single(received, 'mcp-session-id')
    const { sessions } = this.#options
    const { method } = request
    let session = id === undefined ? undefined : sessions.find(id, request.principal)
    if (id !== undefined && !session) {
      await this.resumeUnknown(id, request)
      session = sessions.find(id, request.principal)
    }
    if (session && sessions.draining && (method === 'GET' || this.#continues(session))) this.#refuseOrLeave(session)
    if (method === 'GET' && sessions.draining)
      throw new Fault('draining', 'The bridge is shutting down', { retryAfter: 1 })
    if (method === 'GET') checkTakesEvents(request)
    if (id === undefined) throw new Fault('invalidRequest', 'Session required: call initialize first')
    if (!session) throw new Fault('sessionNotFound', 'Session not found: call initialize to open one')
    if (method === 'GET') return session.listen(reply, single(received, 'last-event-id'))
    sessions.end(id)
    const status = (await session.client.direct?.closed) ?? 200
    // A server may not let clients end sessions, or may have forgotten this one.
    reply.code(status < 300 || status === 404 || status === 405 ? status : 200).send()
  }

  /** Whether another replica can continue the session. */
  #continues({ client }: HttpSession): boolean {
    return this.#options.handed !== undefined && client.record !== undefined
  }

  /** To be called while the bridge shuts down: throws OwnedByReplica if another replica continues the session, else a Fault. */
  #refuseOrLeave(session: HttpSession): never {
    if (this.#continues(session)) throw new OwnedByReplica(ANOTHER, 'session')
    if (session.outlives) throw new Fault('draining', 'The bridge is shutting down', { retryAfter: 1 })
    throw new Fault('sessionNotFound', 'Session not found: the bridge is shutting down; call initialize again')
  }

  /** Takes a message in a session. The promise resolves when it has been answered. */
  takeMessage(message: Message, session: HttpSession, reply: FastifyReply): Promise<void> | undefined {
    const { request } = reply
    const { handed } = this.#options
    if (handed && session.client.direct?.keepsIds) whenOver(reply, () => void handed.note(session).catch(() => {}))
    const batch = message.kind === 'batch' ? readBatch(message) : undefined
    if (message.kind === 'request' || batch) {
      // The session ends with the bridge. With this error, the client opens another one, which a load balancer sends to
      // another replica.
      if (this.#options.sessions.draining && batch?.requests.length !== 0) this.#refuseOrLeave(session)
      const answering = batch ? this.#takeAll(batch, session, reply) : session.answerPost(message as Request, reply)
      // A disconnected client has not cancelled its calls, so they keep their memory until they are answered.
      const reservation = request.reservation && takeOver(request)
      return reservation ? answering?.finally(() => reservation.end()) : answering
    }
    if (message.kind === 'notification' || message.kind === 'response') return this.#takeOneWay(message, session, reply)
    reply.code(202).send()
    return undefined
  }

  /** Takes the messages of a batch, which go on in one array if the server may have that. */
  #takeAll(batch: SortedBatch, session: HttpSession, reply: FastifyReply): Promise<void> | undefined {
    const { requests, others, errors } = batch
    const { client } = session
    const sent = client.batchOf?.(batch, reply.request.body as Uint8Array)
    const takeOthers = (received?: Heard) => {
      const taken = others.map((other, index) => {
        // All of them get the same answer.
        const hear = index === 0 && received ? received.hear : () => {}
        return client.take(other, received && { ...received, hear, bytes: bytesOf(other), batch: sent })
      })
      sent?.decided()
      return Promise.all(taken)
    }
    if (requests.length === 0 && errors.length === 0 && sent)
      return this.#hear(reply, client, (received) => takeOthers(received).then(() => {}))
    takeOthers(sent && ({ hear: () => {}, signal: new HangUp(), ...forwardedOf(reply.request) } as Heard)).catch(
      () => {},
    )
    return session.answerAll(batch, reply, sent)
  }

  /** Takes a message that gets no answer. */
  #takeOneWay(
    message: Notification | Response,
    { client }: HttpSession,
    reply: FastifyReply,
  ): Promise<void> | undefined {
    const text = textWithoutAbsent(message)
    const bytes = text === undefined ? (reply.request.body as Uint8Array) : Buffer.from(text)
    return this.#hear(reply, client, (received) => client.take(message, { ...received, bytes }))
  }

  /** Answers what gets no answer: its client gets what the server says to it, or 202. */
  #hear(
    reply: FastifyReply,
    client: ClientSession,
    take: (received: Heard) => Promise<void> | undefined,
  ): Promise<void> | undefined {
    const about = client.direct?.keepsIds ? forwardedOf(reply.request) : { forwarded: undefined }
    return answerOneWay(reply, this.#options, (heard) => take({ ...heard, ...about }), ofNoCall)
  }

  /** Opens a session: one of the server itself, if the server is legacy and reached over HTTP, or else a translated one. */
  async open(message: Request, reply: FastifyReply): Promise<void> {
    const { request } = reply
    const { principal } = request
    this.#options.sessions.makeRoom(principal)
    const streams = new Streams(principal, this.#options.events)
    const options = this.#openOptions(request, streams)
    const { session, ...answer } = await openSession(message, options)
    if (session) {
      // Another client may have taken the last free place in the meantime.
      const kept = this.#keep(session, streams)
      reply.header('mcp-session-id', kept.id)
      await this.#options.handed?.note(kept)
    }
    sendAnswer(reply, answer, this.#options, () => answerLost(message.id), true)
  }

  /** Continues a session that another replica has left. Rejects with a Fault if there is no room for it. */
  continue(id: string, left: { record: SessionRecord; from: string }, request: FastifyRequest): Promise<void> {
    const begin = () => this.#continue(id, left, request).finally(() => this.#continuing.delete(id))
    const continuing = this.#continuing.get(id) ?? begin()
    this.#continuing.set(id, continuing)
    return continuing
  }

  /**
   * Goes on with a session that the server may know, from before the bridge was started again. Not with authentication: then
   * nobody knows whose it is.
   */
  resumeUnknown(id: string, request: FastifyRequest): Promise<void> {
    const { principal } = request
    const { sessions, speaks } = this.#options
    if (!NAMELESS.includes(principal) || sessions.draining || speaks?.() !== 'legacy') return Promise.resolve()
    const revision = legacyRevision(versionHeader(readHeaders(request.raw).received)) ?? '2025-03-26'
    const known = { revision, offered: '{}', ready: true }
    const record = { ...known, capabilities: '{}', wrapped: [], uris: [], asked: 0, direct: { ...known, session: id } }
    return this.continue(id, { record, from: BEFORE }, request)
  }

  /** The id for a session of the server itself: the server's own, which stays valid when the bridge is started again. */
  #idOf({ direct }: ClientSession): string | undefined {
    const { handed, sessions } = this.#options
    const id = direct?.left?.session
    return id === undefined || handed || sessions.has(id) ? undefined : id
  }

  async #continue(
    id: string,
    { record, from }: { record: SessionRecord; from: string },
    request: FastifyRequest,
  ): Promise<void> {
    const { principal } = request
    const { sessions, log } = this.#options
    if (sessions.has(id)) return
    sessions.makeRoom(principal)
    const streams = new Streams(principal, this.#options.events)
    const session = log.telemetry?.recorder && crypto.randomUUID()
    const options = { ...this.#openOptions(request, streams), session }
    const direct = await this.#resume(record, options)
    if (!direct && from === BEFORE) return
    const { revision, clientInfo, capabilities, reportsRoots } = record
    const opening = { clientInfo, capabilities, reportsRoots }
    const continued = direct
      ? new DirectClientSession(direct, revision, { ...options, opening, serverTransport: 'http' })
      : TranslatedSession.continue(record, options)
    this.#keep(continued, streams, { id, from })
    log.debug({ event: 'session_continued', replica: from }, 'session of another replica continues here')
  }

  /** Goes on with a session of the server itself. Undefined if it is none, or if the server is reached in another way now. */
  async #resume(
    { direct, capabilities }: SessionRecord,
    { upstream, sender }: OpenOptions,
  ): Promise<DirectSession | undefined> {
    if (!direct) return undefined
    const from = { ...sender, caller: { revision: '', capabilities: '{}' } }
    const route = await upstream.legacyRoute(from, direct.address)
    return route === 'translate' ? undefined : route.resume?.(direct, from, capabilities)
  }

  #openOptions(request: FastifyRequest, streams: Streams): OpenOptions {
    const { principal, credential, grant } = request
    const { upstream, log, memory, settings } = this.#options
    return {
      upstream,
      sender: { principal, credential, grant },
      outlet: streams,
      transport: 'http',
      log,
      memory,
      settings,
      trace: traceHeaders(request),
      forwarded: forwardedHeadersIn(request.headers),
      headers: log.telemetry?.recorder && request.headers,
    }
  }

  /** Stores a session until it ends. Without room, closes it and throws a Fault. */
  #keep(session: ClientSession, streams: Streams, known: { id?: string; from?: string } = {}): HttpSession {
    const { sessions } = this.#options
    streams.options = session.direct?.keepsIds ? PASSED : traits[session.revision]
    try {
      const kept = new HttpSession(session, streams, this.#options, known.from)
      const id = sessions.add(kept, known.id ?? this.#idOf(session))
      kept.id = id
      streams.onEnd = () => sessions.end(id)
      return kept
    } catch (error) {
      session.close()
      throw error
    }
  }
}

/** A message of a batch, as it is sent on. */
function bytesOf(message: Notification | Response): Uint8Array {
  const source = message.kind === 'response' ? message.outcome.source : message.source
  return Buffer.from(textWithoutAbsent(message) ?? (source && join(wireOf(source))) ?? '')
}

/**
 * Refuses GET and DELETE of modern clients: sessions and their streams exist only in the legacy era. Throws a Fault.
 */
function checkNotModern(received: ReceivedHeaders, reply: FastifyReply): void {
  const version = versionHeader(received)
  if (version !== undefined && looksModern(version)) notAllowed(reply, 'POST')
}
