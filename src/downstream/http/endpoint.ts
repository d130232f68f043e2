/** The MCP endpoint over Streamable HTTP: both eras at one address. The era is determined for each message. */

import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { OwnedByReplica, type Replicas } from '../../ports/replicas.js'
import type { Upstream } from '../../protocol/call.js'
import { type Compat, classify, type SessionState } from '../../protocol/classify.js'
import { type LegacyRevision, legacyRevision, looksModern, traits } from '../../protocol/eras.js'
import { Fault } from '../../protocol/fault.js'
import { checkHeaders, type HeaderLookup, single, versionHeader } from '../../protocol/headers.js'
import type { Memory } from '../../protocol/memory.js'
import { methodTraits } from '../../protocol/methods.js'
import type { Message, Request } from '../../rpc/message.js'
import { own } from '../../rpc/own.js'
import { EMPTY } from '../../rpc/splice.js'
import { subject } from '../call-log.js'
import { readBatch } from '../legacy/batch.js'
import { openSession } from '../legacy/open-session.js'
import type { SessionSettings } from '../legacy/session.js'
import type { Logger } from '../logger.js'
import { ModernDownstream } from '../modern.js'
import { idIn, idToAnswer, readMessage } from '../read-message.js'
import { forget, lendUntilClosed, readBodies, takeOver } from './body.js'
import { checkMedia, checkTakesEvents } from './content-type.js'
import { EventAnswer } from './event-answer.js'
import type { EventStore } from './event-store.js'
import { forward } from './forward.js'
import { type RequestHeaders, readHeaders, traceHeaders } from './headers.js'
import { type Refusals, refusedOf } from './refusals.js'
import type { Pass, Passing, Relay } from './relay.js'
import { type ErrorRendering, explainInBand, refuse, sendJson } from './replies.js'
import { HttpSession } from './session.js'
import type { Sessions } from './sessions.js'
import { Streams } from './streams.js'

/** Options of the endpoint. */
export interface EndpointOptions {
  path: string
  upstream: Upstream
  compat: Compat
  log: Logger
  sessions: Sessions<HttpSession>
  /** Passes on messages that need no translation; undefined if no message of this server may be relayed. */
  relay: Relay | undefined
  refusing: ErrorRendering
  /** Counts and logs requests that are refused before they become calls. */
  refusals: Refusals
  /** The other replicas, if there are several. */
  replicas: Replicas | undefined
  /** Milliseconds between keep-alive comments on a stream. */
  keepAlive: number
  /**
   * Milliseconds of silence after which an answer becomes an event stream, whose keep-alives keep the connection open.
   */
  commitAfter: number
  settings: SessionSettings
  memory: Memory
  /** Events kept for legacy clients that resume a stream. */
  events: EventStore
}

/** A request at the endpoint. */
interface Asked {
  request: FastifyRequest
  reply: FastifyReply
  /** Passes it to the server; undefined if it may not be relayed. */
  pass: Pass | undefined
  /** The message that it has posted, when it has been read. */
  message?: Message
  /** The answer, if the message is a modern request. */
  answer?: EventAnswer
}

/** Serves the endpoint. A Fastify plugin with its own context, so that its body parser applies to no other route. */
export async function endpoint(app: FastifyInstance, options: EndpointOptions): Promise<void> {
  const { path, relay } = options
  const served = new Endpoint(options)

  // The bridge decodes and parses bodies itself, because the errors must be JSON-RPC.
  readBodies(app, options.memory)
  // Before the body is read. Without a preflight, a page of another origin can send only the content types of forms.
  app.addHook('onRequest', (request, _reply, done) => {
    if (request.method === 'POST') checkMedia(request)
    done()
  })

  const { handle } = served
  if (relay) await relay.register(app, { path, refusing: options.refusing }, handle)
  else app.route({ method: ['GET', 'POST', 'DELETE'], url: path, handler: handle })
  app.route({
    method: ['HEAD', 'PUT', 'PATCH', 'OPTIONS'],
    url: path,
    handler: async (_request, reply) => notAllowed(reply, 'GET, POST, DELETE'),
  })
}

class Endpoint {
  readonly #options: EndpointOptions
  readonly #modern: ModernDownstream

  constructor(options: EndpointOptions) {
    this.#options = options
    this.#modern = new ModernDownstream(options.upstream, options.compat, options.memory)
  }

  /** Answers a request. Its failure is an answer, too. */
  readonly handle = (request: FastifyRequest, reply: FastifyReply, pass?: Pass): void => {
    if (request.loan) lendUntilClosed(request, reply)
    const asked: Asked = { request, reply, pass }
    const answering = request.method === 'POST' ? this.#post(asked) : this.#useSession(asked)
    answering.catch((error: unknown) => this.#failed(error, asked))
  }

  #failed(error: unknown, asked: Asked): void {
    const { request, reply, message } = asked
    asked.answer?.leave()
    if (error instanceof OwnedByReplica && this.#options.replicas) {
      forward(error, request, reply, this.#options).catch((broken: Error) => reply.send(broken))
      return
    }
    if (request.method !== 'POST') {
      reply.send(error)
      return
    }
    const fault = Fault.from(error, message !== undefined)
    const { refusals, log, refusing } = this.#options
    refusals.note(fault, { ...refusedOf(request), server: log.telemetry?.server })
    // A refused notification gets no JSON-RPC error, only an HTTP status (MCP 2026-07-28, streamable-http).
    if (message?.kind === 'notification' && fault.status === 200) reply.code(400).send()
    // The body may be readable even if the headers are invalid: then the error has the id of the request.
    else refuse(reply, fault, { ...refusing, id: message ? idToAnswer(message) : idIn(request.body) })
  }

  /** Answers GET (opens a stream of a session) and DELETE (ends a session). */
  async #useSession({ request, reply, pass }: Asked): Promise<void> {
    const { lookup } = readHeaders(request.raw)
    checkNotModern(lookup, reply)
    const id = single(lookup, 'mcp-session-id')
    const { sessions, relay } = this.#options
    const session = id === undefined ? undefined : sessions.find(id, request.principal)
    if (id !== undefined && !session && pass && relay && (await relay.takesSession(id, request.principal))) {
      if (request.method === 'DELETE' && relay.endOurs(id)) reply.code(200).send()
      else pass({ era: 'legacy', method: request.method, endless: request.method === 'GET', opens: false })
      return
    }
    if (request.method === 'GET') checkTakesEvents(request)
    if (id === undefined) throw new Fault('invalidRequest', 'Session required: call initialize first')
    if (!session) throw new Fault('sessionNotFound', 'Session not found: call initialize to open one')
    if (request.method === 'GET') return session.listen(reply, single(lookup, 'last-event-id'))
    sessions.end(id)
    reply.code(200).send()
  }

  async #post(asked: Asked): Promise<void> {
    const { request, reply, pass } = asked
    const { relay, sessions, compat } = this.#options
    const headers = readHeaders(request.raw)
    const { lookup } = headers
    const body = request.body as Buffer | undefined
    if (pass && relay?.takesModern(lookup, body)) return pass(relay.modern(lookup), () => this.handle(request, reply))
    const message = readMessage(body ? [body] : [])
    asked.message = message
    const id = single(lookup, 'mcp-session-id')
    const session = id === undefined ? undefined : sessions.find(id, request.principal)
    const version = versionHeader(lookup)
    if (id !== undefined && !session && pass && relay) {
      const opens = message.kind === 'request' && message.method === 'initialize'
      const elsewhere = !opens && !(version !== undefined && looksModern(version))
      if (elsewhere && (await relay.takesSession(id, request.principal))) {
        if (message.kind === 'batch') classify(message, version, { revision: assumedRevision(version) }, compat)
        return pass(passingOf(message))
      }
    }
    const state: SessionState = session ? { revision: session.client.revision } : id === undefined ? 'none' : 'gone'
    const verdict = classify(message, version, state, compat)
    if (verdict.era === 'modern') await this.#takeModern(message, 'bare' in verdict, headers, asked)
    else if (verdict.as === 'initialize') await this.#open(message as Request, asked)
    else if (session) await this.#takeLegacy(message, session, request, reply)
    else throw new Fault('sessionNotFound', 'Session not found: call initialize to open one')
  }

  #takeModern(
    message: Message,
    bare: boolean,
    { lookup, params }: RequestHeaders,
    asked: Asked,
  ): Promise<void> | undefined {
    const { request, reply } = asked
    const { principal, credential } = request
    const { log } = this.#options
    if (message.kind === 'notification') {
      this.#modern.notify(message, { principal, credential, log })
      reply.code(202).send()
      return undefined
    }
    if (message.kind !== 'request')
      throw new Fault('invalidRequest', 'Unexpected JSON-RPC response: send only requests and notifications')
    if (!bare) checkHeaders(message, lookup)
    const { endless } = methodTraits(message.method)
    const answer = new EventAnswer(reply, endless ? own(message.id) : message.id, this.#options)
    asked.answer = answer
    const { abort } = answer
    const trace = traceHeaders(request)
    const transport = 'http'
    const headers = log.telemetry?.watch && request.headers
    const arrived = {
      principal,
      credential,
      abort,
      log,
      transport,
      paramHeaders: params,
      bare,
      trace,
      headers,
    } as const
    const answered = this.#modern.answer(message, arrived, answer.send)
    return endless ? untilBegun(answered, answer, asked) : answered
  }

  async #takeLegacy(
    message: Message,
    session: HttpSession,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<void> {
    if (message.kind === 'request' || message.kind === 'batch') {
      // A disconnected client has not cancelled its calls. They and their memory stay until they are answered.
      const loan = takeOver(request)
      try {
        if (message.kind === 'request') return await session.answer(message, reply)
        const batch = readBatch(message)
        for (const other of batch.others) session.client.take(other)
        return await session.answerAll(batch, reply)
      } finally {
        loan?.end()
      }
    }
    if (message.kind !== 'invalid') session.client.take(message)
    reply.code(202).send()
  }

  async #open(message: Request, { request, reply, pass }: Asked): Promise<void> {
    const { upstream, sessions, log, memory, settings, commitAfter, refusing } = this.#options
    const { passthrough } = refusing
    const { principal, credential } = request
    const caller = { revision: '', capabilities: '{}' }
    const route = await upstream
      .legacyRoute({ caller, principal, credential })
      .catch((error: unknown) => Fault.from(error))
    if (pass && !(route instanceof Fault) && route !== 'translate' && route.transport === 'http')
      return pass({ ...passingOf(message), opens: true }, () => this.handle(request, reply, (passing) => pass(passing)))
    sessions.makeRoom(principal)
    const streams = new Streams(principal, this.#options.events)
    const options = {
      upstream,
      sender: { principal, credential },
      outlet: streams,
      transport: 'http',
      log,
      memory,
      settings,
      trace: traceHeaders(request),
    } as const
    const { text, session, fault } = await openSession(message, options, route)
    if (session) {
      streams.options = traits[session.revision]
      const kept = new HttpSession(principal, session, streams, { commitAfter, passthrough, memory })
      try {
        reply.header('mcp-session-id', kept.keepIn(sessions))
      } catch (error) {
        // Another client may have taken the last free place in the meantime.
        session.close()
        throw error
      }
    }
    if (fault) explainInBand(reply, fault, passthrough)
    sendJson(reply, text)
  }
}

/**
 * Waits until an endless call has ended, or its event stream begins. Such a call keeps a copy of what it needs. The rest
 * is forgotten as soon as nobody can answer instead.
 */
async function untilBegun(answered: Promise<void>, answer: EventAnswer, asked: Asked): Promise<void> {
  await Promise.race([answered, answer.begun()])
  forget(asked.request)
}

/** The revision of a relayed session, as its version header states it. Client and server negotiated it themselves. */
function assumedRevision(version: string | undefined): LegacyRevision {
  return legacyRevision(version) ?? '2025-03-26'
}

/** What the relay needs to know about a message of a relayed session. */
function passingOf(message: Message): Passing {
  const method = 'method' in message ? message.method : message.kind
  const params = 'params' in message && typeof message.params !== 'string' ? message.params : EMPTY
  return {
    era: 'legacy',
    method,
    ...subject(method, params),
    id: idToAnswer(message),
    endless: false,
    opens: false,
    goesOn: !('method' in message),
  }
}

/**
 * Refuses GET and DELETE of modern clients: sessions and their streams exist only in the legacy era. Throws a Fault.
 */
function checkNotModern(lookup: HeaderLookup, reply: FastifyReply): void {
  const version = versionHeader(lookup)
  if (version !== undefined && looksModern(version)) notAllowed(reply, 'POST')
}

function notAllowed(reply: FastifyReply, allow: string): never {
  reply.header('allow', allow)
  throw new Fault('methodNotAllowed', 'Method not allowed: send messages with POST')
}
