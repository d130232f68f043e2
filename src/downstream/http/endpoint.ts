/** The MCP endpoint over Streamable HTTP: both eras at one address. The era is determined for each message. */

import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { HangUp } from '../../hang-up.js'
import { OwnedByReplica, type Replicas } from '../../ports/replicas.js'
import type { Upstream } from '../../protocol/call.js'
import { type Compat, classify, type SessionState } from '../../protocol/classify.js'
import { type LegacyRevision, legacyRevision, looksModern, traits } from '../../protocol/eras.js'
import { Fault } from '../../protocol/fault.js'
import { checkHeaders, type HeaderLookup, single, versionHeader } from '../../protocol/headers.js'
import type { Memory } from '../../protocol/memory.js'
import { methodTraits } from '../../protocol/methods.js'
import type { Id, Message, Request } from '../../rpc/message.js'
import { own } from '../../rpc/own.js'
import type { Wire } from '../../rpc/source.js'
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
import { type ErrorRendering, explainInBand, refuse, sendJson, whenOver } from './replies.js'
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

type Posted = FastifyRequest<{ Body: Buffer }>

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

  const handle = (request: FastifyRequest, reply: FastifyReply, pass?: Pass) => served.handle(request, reply, pass)
  if (relay) await relay.register(app, { path, refusing: options.refusing }, handle)
  else app.route({ method: ['GET', 'POST', 'DELETE'], url: path, handler: (request, reply) => handle(request, reply) })
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

  async handle(request: FastifyRequest, reply: FastifyReply, pass: Pass | undefined): Promise<FastifyReply> {
    lendUntilClosed(request, reply)
    try {
      if (request.method === 'POST') return await this.#post(request as Posted, reply, pass)
      return await this.#useSession(request, reply, pass)
    } catch (error) {
      await forward(error, request, reply, this.#options)
      return reply
    }
  }

  /** Answers a request that the relay has handed back, because the server has changed its era. */
  #answerHere(request: FastifyRequest, reply: FastifyReply, pass?: Pass): void {
    this.handle(request, reply, pass).catch((error: unknown) => this.#refuse(reply, Fault.from(error), undefined))
  }

  /** Answers GET (opens a stream of a session) and DELETE (ends a session). */
  async #useSession(request: FastifyRequest, reply: FastifyReply, pass: Pass | undefined): Promise<FastifyReply> {
    const { lookup } = readHeaders(request.raw.rawHeaders)
    checkNotModern(lookup, reply)
    const id = single(lookup, 'mcp-session-id')
    const { sessions, relay } = this.#options
    const session = id === undefined ? undefined : sessions.find(id, request.principal)
    if (id !== undefined && !session && pass && relay && (await relay.takesSession(id, request.principal))) {
      if (request.method === 'DELETE' && relay.endOurs(id)) return reply.code(200).send()
      pass({ era: 'legacy', method: request.method, endless: request.method === 'GET', opens: false })
      return reply
    }
    if (request.method === 'GET') checkTakesEvents(request)
    if (id === undefined) throw new Fault('invalidRequest', 'Session required: call initialize first')
    if (!session) throw new Fault('sessionNotFound', 'Session not found: call initialize to open one')
    if (request.method === 'GET') {
      session.listen(reply, single(lookup, 'last-event-id'))
      return reply
    }
    sessions.end(id)
    return reply.code(200).send()
  }

  async #post(request: Posted, reply: FastifyReply, pass: Pass | undefined): Promise<FastifyReply> {
    let message: Message | undefined
    try {
      const headers = readHeaders(request.raw.rawHeaders)
      const { relay } = this.#options
      if (pass && relay?.takesModern(headers.lookup, request.body)) {
        pass(relay.modern(headers.lookup), () => this.#answerHere(request, reply))
        return reply
      }
      message = bodyOf(request)
      await this.#take(message, headers, request, reply, pass)
    } catch (error) {
      if (error instanceof OwnedByReplica) throw error
      const fault = Fault.from(error, message !== undefined)
      if (message?.kind === 'notification' && fault.status === 200) this.#refuseSilently(reply, fault)
      // The body may be readable even if the headers are invalid: then the error has the id of the request.
      else this.#refuse(reply, fault, message ? idToAnswer(message) : idIn(request.body))
    }
    return reply
  }

  #refuse(reply: FastifyReply, fault: Fault, id: Id | undefined): void {
    this.#note(reply, fault)
    refuse(reply, fault, { ...this.#options.refusing, id })
  }

  /** Refuses a notification. It gets no JSON-RPC error, only an HTTP status (MCP 2026-07-28, streamable-http). */
  #refuseSilently(reply: FastifyReply, fault: Fault): void {
    this.#note(reply, fault)
    reply.code(400).send()
  }

  #note({ request }: FastifyReply, fault: Fault): void {
    const { refusals, log } = this.#options
    refusals.note(fault, { ...refusedOf(request), server: log.telemetry?.server })
  }

  async #take(
    message: Message,
    headers: RequestHeaders,
    request: Posted,
    reply: FastifyReply,
    pass: Pass | undefined,
  ): Promise<void> {
    const { lookup } = headers
    const { sessions, relay, compat } = this.#options
    const id = single(lookup, 'mcp-session-id')
    const session = id === undefined ? undefined : sessions.find(id, request.principal)
    const version = versionHeader(lookup)
    const modern = version !== undefined && looksModern(version)
    const opens = message.kind === 'request' && message.method === 'initialize'
    const known = id === undefined || session !== undefined
    if (!known && !modern && !opens && pass && (await relay?.takesSession(id, request.principal))) {
      if (message.kind === 'batch') classify(message, version, { revision: assumedRevision(version) }, compat)
      return pass(passingOf(message))
    }
    const state: SessionState = session ? { revision: session.client.revision } : id === undefined ? 'none' : 'gone'
    const verdict = classify(message, version, state, compat)
    if (verdict.era === 'modern') return this.#takeModern(message, 'bare' in verdict, headers, request, reply)
    if (verdict.as === 'initialize') return this.#open(message as Request, request, reply, pass)
    if (session) return this.#takeLegacy(message, session, request, reply)
    throw new Fault('sessionNotFound', 'Session not found: call initialize to open one')
  }

  async #takeModern(
    message: Message,
    bare: boolean,
    { lookup, params }: RequestHeaders,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<void> {
    const { principal, credential } = request
    const { log } = this.#options
    if (message.kind === 'notification') {
      this.#modern.notify(message, { principal, credential, log })
      reply.code(202).send()
      return
    }
    if (message.kind !== 'request')
      throw new Fault('invalidRequest', 'Unexpected JSON-RPC response: send only requests and notifications')
    if (!bare) checkHeaders(message, lookup)
    const abort = whileConnected(reply)
    const trace = traceHeaders(request)
    const arrived = { principal, credential, abort, log, transport: 'http', paramHeaders: params, bare, trace } as const
    const { endless } = methodTraits(message.method)
    const answer = new EventAnswer(reply, endless ? own(message.id) : message.id, abort, this.#options)
    try {
      const answered = this.#modern.answer(message, arrived, (frame) => answer.send(frame))
      if (!endless) return await answered
      // An endless call keeps a copy of what it needs. The rest is forgotten as soon as nobody can answer instead.
      await Promise.race([answered, answer.begun()])
      forget(request)
    } catch (error) {
      answer.leave()
      throw error
    }
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

  async #open(message: Request, request: FastifyRequest, reply: FastifyReply, pass: Pass | undefined): Promise<void> {
    const { upstream, sessions, log, memory, settings, commitAfter, refusing } = this.#options
    const { passthrough } = refusing
    const { principal, credential } = request
    const caller = { revision: '', capabilities: '{}' }
    const route = await upstream
      .legacyRoute({ caller, principal, credential })
      .catch((error: unknown) => Fault.from(error))
    if (pass && !(route instanceof Fault) && route !== 'translate' && route.transport === 'http')
      return pass({ ...passingOf(message), opens: true }, () =>
        this.#answerHere(request, reply, (passing) => pass(passing)),
      )
    sessions.makeRoom(principal)
    const streams = new Streams(principal, this.#options.events)
    let opened: string | undefined
    const outlet = {
      deliver: (text: Wire, key?: string) => streams.deliver(text, key),
      isIdle: () => !streams.connected,
      ended: () => opened !== undefined && sessions.end(opened),
    }
    const options = {
      upstream,
      sender: { principal, credential },
      outlet,
      transport: 'http',
      log,
      memory,
      settings,
      trace: traceHeaders(request),
    } as const
    const { text, session, fault } = await openSession(message, options, route)
    if (session) {
      const { resumable, priming } = traits[session.revision]
      streams.options = { resumable, priming }
      const make = () => new HttpSession(principal, session, streams, { commitAfter, passthrough, memory })
      try {
        opened = sessions.add(principal, make).id
      } catch (error) {
        // Another client may have taken the last free place in the meantime.
        session.close()
        throw error
      }
      reply.header('mcp-session-id', opened)
    }
    if (fault) explainInBand(reply, fault, passthrough)
    sendJson(reply, text)
  }
}

function bodyOf({ body }: Posted): Message {
  return readMessage(body ? [body] : [])
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

/**
 * Aborts when the client disconnects before its answer is complete. The event is taken from the response, because the
 * request emits 'close' as soon as its body has been read.
 */
function whileConnected(reply: FastifyReply): HangUp {
  const controller = new HangUp()
  whenOver(reply, () => {
    if (!reply.raw.writableFinished) controller.abort()
  })
  return controller
}
