/**
 * The MCP endpoint over Streamable HTTP, both eras at one address: checks each request, and gives it to the half of its
 * era. The era is determined for each message.
 */

import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Fault } from '../../base/fault/fault.js'
import type { Message, Notification, Request } from '../../base/rpc/message.js'
import { detach } from '../../base/rpc/source.js'
import type { Payload } from '../../base/rpc/splice.js'
import { OwnedByReplica } from '../../mcp/ports/replicas.js'
import type { Handler } from '../../mcp/protocol/call.js'
import {
  type Classification,
  type Compat,
  classify,
  idIn,
  idToAnswer,
  readMessage,
  type SessionState,
} from '../../mcp/protocol/classify.js'
import { looksModern } from '../../mcp/protocol/eras.js'
import { checkHeaders, single, versionHeader } from '../../mcp/protocol/headers.js'
import { methodTraits } from '../../mcp/protocol/methods.js'
import { ModernDownstream } from '../modern/half.js'
import { Answer, answerOneWay } from './answer.js'
import { forget, readBodies, reserveUntilClosed } from './body.js'
import { checkMedia } from './content-type.js'
import { forward, reportLost } from './forward.js'
import type { HandedSessions } from './handed-sessions.js'
import { type RequestHeaders, readHeaders, traceHeaders } from './headers.js'
import { ofServer, refusedOf } from './refusals.js'
import { notAllowed, refuse, sendEvents } from './replies.js'
import type { HttpSession } from './session.js'
import { SessionRequests, type SessionRequestsOptions } from './session-requests.js'

export interface EndpointOptions extends SessionRequestsOptions {
  path: string
  compat: Compat
  /** Handles the subscriptions of modern clients, in place of `upstream`. */
  subscribe?: Handler | undefined
  /** Writes the audit log of a refused request; undefined without one. */
  audit?: ((fault: Fault, request: FastifyRequest) => void) | undefined
}

/** Most replicas that are asked for one session. */
const MAX_OWNERS = 3

interface Asked {
  reply: FastifyReply
  /** The posted message, after it has been read. */
  message?: Message
  /** The answer, if the message is a modern request. */
  answer?: Answer
  /** The message belongs to a call in the replica that had the session before. */
  isStray?: boolean
  /** How often the request has looked for a replica that has the session. */
  attempts?: number
}

/** Serves the endpoint. A Fastify plugin with its own context, so that its body parser applies to no other route. */
export async function endpoint(app: FastifyInstance, options: EndpointOptions): Promise<void> {
  const { path } = options
  const served = new Endpoint(options)

  // The bridge decodes and parses bodies itself, because the errors must be JSON-RPC.
  readBodies(app, options.memory)
  if (options.arrived) app.addHook('onRequest', options.arrived)
  // Before the body is read. Without a preflight, a page of another origin can send only the content types of forms.
  app.addHook('onRequest', checkMedia)

  const { handle: handler } = served
  const config = ofServer(options.log)
  app.route({ method: ['GET', 'POST', 'DELETE'], url: path, exposeHeadRoute: false, config, handler })
  app.route({
    method: ['HEAD', 'PUT', 'PATCH', 'OPTIONS'],
    url: path,
    config,
    handler: async (_request, reply) => notAllowed(reply, 'GET, POST, DELETE'),
  })
}

class Endpoint {
  readonly #options: EndpointOptions
  readonly #modern: ModernDownstream
  readonly #legacy: SessionRequests

  constructor(options: EndpointOptions) {
    this.#options = options
    this.#legacy = new SessionRequests(options)
    this.#modern = new ModernDownstream(options)
  }

  /** Answers a request, also if it fails. */
  readonly handle = (request: FastifyRequest, reply: FastifyReply): void => {
    if (request.reservation) reserveUntilClosed(request, reply)
    const asked: Asked = { reply }
    try {
      const answering = request.method === 'POST' ? this.#post(asked) : this.#legacy.use(reply)
      answering?.catch((error: unknown) => this.#failed(error, asked))
    } catch (error) {
      this.#failed(error, asked)
    }
  }

  #failed(error: unknown, asked: Asked): void {
    const { reply, message } = asked
    const { request } = reply
    asked.answer?.leave()
    if (error instanceof OwnedByReplica && this.#options.replicas) {
      this.#forward(error, asked).catch((broken: unknown) => this.#failed(broken, asked))
      return
    }
    const fault = this.#named(Fault.from(error, message !== undefined), request)
    if (request.method !== 'POST') {
      reply.send(fault.fault === 'foreignSession' ? fault : error)
      return
    }
    const { refusals, refusing, audit } = this.#options
    if (fault.fault === 'foreignSession') audit?.(fault, request)
    refusals.note(fault, refusedOf(request))
    // A refused notification gets no JSON-RPC error, only an HTTP status (MCP 2026-07-28, streamable-http).
    if (message?.kind === 'notification' && fault.status === 200) reply.code(400).send()
    // The body may be readable even if the headers are invalid: then the error has the id of the request.
    else refuse(reply, fault, { ...refusing, id: message ? idToAnswer(message) : idIn(request.body) })
  }

  /** The fault, with its own name if the session belongs to another principal. */
  #named(fault: Fault, { raw, principal }: FastifyRequest): Fault {
    if (fault.fault !== 'sessionNotFound') return fault
    const id = raw.headers['mcp-session-id']
    return typeof id === 'string' && this.#options.sessions.isForeign(id, principal)
      ? new Fault('foreignSession', fault.message)
      : fault
  }

  async #forward(owned: OwnedByReplica, asked: Asked): Promise<void> {
    const { reply } = asked
    const { request } = reply
    const { handed, sessions, replicas } = this.#options
    const isOfClient = !replicas?.isForwarded(request.raw)
    // The client comes back, and would find nobody who listens.
    if (sessions.cut && isOfClient && wantsAnswer(asked))
      throw new Fault('draining', 'The bridge is shutting down', { retryAfter: 1 })
    // What the replica that goes on with the session sends on a stream that ends here would be lost.
    if (sessions.draining && isOfClient && request.method === 'GET') return sendEvents(reply, Readable.from([]))
    const instead =
      owned.what === 'session' && handed ? (owner: string) => this.#continue(owner, handed, asked) : undefined
    if (instead && !asked.isStray && handed?.hasLeft(owned.owner)) return instead(owned.owner)
    return forward(owned, reply, { ...this.#options, instead })
  }

  /**
   * Continues a session that its replica has left: in this replica, or by forwarding to the one that has taken it over.
   * `without`: a replica that does not have the session.
   */
  async #continue(without: string, handed: HandedSessions, asked: Asked): Promise<void> {
    const { reply } = asked
    const { request } = reply
    const { sessions, replicas } = this.#options
    // The call that the message belongs to is gone with its replica, so the message is accepted and dropped.
    if (asked.isStray) return void reply.code(202).send()
    const id = single(readHeaders(request.raw).received, 'mcp-session-id')
    const isForwarded = replicas?.isForwarded(request.raw) ?? false
    asked.attempts = (asked.attempts ?? 0) + 1
    const isLeft = sessions.draining && isForwarded
    if (isLeft) await handed.left
    const may = id !== undefined && !isLeft && asked.attempts <= MAX_OWNERS
    const taken = may
      ? await handed.take(id, { principal: request.principal, without, mayTake: !sessions.draining })
      : undefined
    if (taken && 'record' in taken) {
      await this.#legacy.continue(id as string, taken, request)
      this.handle(request, reply)
      return
    }
    const owner = taken && !isForwarded ? (taken.owner ?? (await replicas?.another())) : undefined
    if (owner === undefined) {
      const lost = new Fault('sessionNotFound', 'Session not found: call initialize to open one')
      if (!isForwarded) reportLost(new OwnedByReplica(without, 'session'), lost, this.#options.log)
      throw lost
    }
    await this.#forward(new OwnedByReplica(owner, 'session'), asked)
  }

  /**
   * Answers a posted message. Undefined if that is done. Throws or rejects with the failure. `isResumed`: the bridge has tried to go on
   * with its session, which only the server may know.
   */
  #post(asked: Asked, isResumed = false): Promise<void> | undefined {
    const { reply } = asked
    const { request } = reply
    const { sessions, compat } = this.#options
    const headers = readHeaders(request.raw)
    const { received } = headers
    const body = request.body as Buffer | undefined
    const id = single(received, 'mcp-session-id')
    // Throws if another replica owns the session. That replica reads the message.
    const session = id === undefined ? undefined : sessions.find(id, request.principal)
    const read = readMessage(body ? [body] : [])
    // In a session of the server itself, ids are between it and its client.
    const message = (read.kind === 'invalid' && session?.client.direct?.keepsIds && read.read) || read
    asked.message = message
    if (session?.from !== undefined && isStray(message, session)) {
      asked.isStray = true
      throw new OwnedByReplica(session.from, 'session')
    }
    const version = versionHeader(received)
    if (id !== undefined && !session && !isResumed && mayGoOn(message, version))
      return this.#legacy.resumeUnknown(id, request).then(() => this.#post(asked, true))
    const state: SessionState = session ? { revision: session.client.revision } : id === undefined ? 'none' : 'gone'
    const verdict = classify(message, version, state, compat)
    if (verdict.era === 'modern') return this.#takeModern(message, verdict, headers, asked)
    if (verdict.as === 'initialize') return this.#legacy.open(message as Request, reply)
    if (session) return this.#legacy.takeMessage(message, session, reply)
    throw new Fault('sessionNotFound', 'Session not found: call initialize to open one')
  }

  #takeModern(
    message: Message,
    verdict: Extract<Classification, { era: 'modern' }>,
    { received, params, forwarded }: RequestHeaders,
    asked: Asked,
  ): Promise<void> | undefined {
    const { reply } = asked
    const { request } = reply
    const { principal, credential, grant, ends } = request
    const { log } = this.#options
    if (message.kind === 'notification') return this.#notify(message, forwarded, reply)
    if (message.kind !== 'request')
      throw new Fault('invalidRequest', 'Unexpected JSON-RPC response: send only requests and notifications')
    const envelope = 'bare' in verdict ? undefined : verdict.envelope
    if (envelope) checkHeaders(message, received)
    // Not if something has been left out of it (`withoutAbsent`), or if a server might take it for another one.
    const { endless } = methodTraits(message.method)
    const isWhole = envelope && !endless && !message.hasLookalikes && (message.params as Payload).edits === undefined
    const answer = new Answer(reply, endless ? detach(message.id) : message.id, this.#options)
    asked.answer = answer
    const { abort } = answer
    const trace = log.telemetry?.tracer && traceHeaders(request)
    const transport = 'http'
    const headers = log.telemetry?.recorder && request.headers
    const arrived = {
      principal,
      credential,
      grant,
      ends,
      abort,
      log,
      transport,
      paramHeaders: params,
      trace,
      headers,
      bytes: isWhole ? (request.body as Uint8Array) : undefined,
      source: isWhole ? message.source : undefined,
      nameHeader: single(received, 'mcp-name'),
      forwarded,
    } as const
    const answered = this.#modern.answerRequest(message, envelope, arrived, answer.sendFrame)
    return endless ? untilBegun(answered, answer, asked) : answered
  }

  /** Forwards a notification. Its client gets 202, or what the server answers. */
  #notify(
    message: Notification,
    forwarded: RequestHeaders['forwarded'],
    reply: FastifyReply,
  ): Promise<void> | undefined {
    const { principal, credential, body } = reply.request
    const { log } = this.#options
    return answerOneWay(reply, { ...this.#options, commitAfter: undefined }, (heard) =>
      this.#modern.notify(message, { principal, credential, log }, { ...heard, body: body as Uint8Array, forwarded }),
    )
  }
}

/**
 * Waits until an endless call has ended or its event stream has begun, and then drops the request's body: the call has a
 * copy of what it needs, and no other replica can answer instead any more.
 */
async function untilBegun(answered: Promise<void>, answer: Answer, asked: Asked): Promise<void> {
  await Promise.race([answered, answer.begun()])
  forget(asked.reply.request)
}

/** Whether a message may belong to a session that is not the bridge's own. */
function mayGoOn(message: Message, version: string | undefined): boolean {
  const opens = message.kind === 'request' && message.method === 'initialize'
  return !opens && !(version !== undefined && looksModern(version))
}

/** Whether a message answers or cancels something that is not in this replica. */
function isStray(message: Message, { client }: HttpSession): boolean {
  return (message.kind === 'response' || message.kind === 'notification') && client.isFor?.(message) === false
}

/** Whether the client waits for more than 202. Answers to questions are still taken: their calls go on. */
function wantsAnswer({ reply: { request }, message }: Asked): boolean {
  const { method, body } = request
  if (method !== 'POST') return method === 'GET'
  const { kind } = message ?? readMessage(body ? [body as Buffer] : [])
  return kind !== 'response' && kind !== 'notification'
}
