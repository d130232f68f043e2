/**
 * Serves HTTP+SSE of 2024-11-05 (basic/transports): one stream to the client, whose first event names the address for POST.
 */

import type { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Fault } from '../../base/fault/fault.js'
import { SMALL } from '../../base/limits/memory.js'
import { error as errorMessage, type Id, type Message } from '../../base/rpc/message.js'
import type { Wire } from '../../base/rpc/source.js'
import { encodeEvent } from '../../base/rpc/sse.js'
import { idToAnswer, readMessage } from '../../mcp/protocol/classify.js'
import { traits } from '../../mcp/protocol/eras.js'
import { readBatch } from '../legacy/batch.js'
import { Conversation } from '../legacy/conversation.js'
import { readBodies, reserveUntilClosed, takeOver } from './body.js'
import { EventConnection } from './connection.js'
import { checkBody, checkTakesEvents } from './content-type.js'
import { forward } from './forward.js'
import { readHeaders, traceHeaders } from './headers.js'
import { ofServer, refusedOf } from './refusals.js'
import { refuse, sendEvents } from './replies.js'
import type { ServedOptions } from './served.js'
import type { KeptSession, SessionStore } from './sessions.js'

export interface SseOptions extends ServedOptions {
  /** The paths of the stream and of posted messages. */
  paths: { stream: string; messages: string }
  /** The prefix that clients put before these paths and a proxy removes, for example `/tools`; or empty. */
  publicPrefix(request: FastifyRequest): string
  sessions: SessionStore<SseSession>
}

/** Serves HTTP+SSE. A Fastify plugin. */
export async function sse(app: FastifyInstance, options: SseOptions): Promise<void> {
  const { paths, publicPrefix, sessions } = options
  readBodies(app, options.memory)
  if (options.arrived) app.addHook('onRequest', options.arrived)

  const config = ofServer(options.log)
  app.get(paths.stream, { exposeHeadRoute: false, config }, async (request, reply) => {
    readHeaders(request.raw)
    checkTakesEvents(request)
    const session = new SseSession(request, options)
    const id = sessions.add(session)
    session.onClose = () => sessions.end(id)
    // An absolute path, because the Java SDK resolves a relative one against the root, not against the stream.
    sendEvents(reply, session.open(`${publicPrefix(request)}${paths.messages}?sessionId=${id}`))
    return reply
  })
  app.route({
    method: ['POST', 'PUT', 'DELETE', 'HEAD', 'PATCH', 'OPTIONS'],
    url: paths.stream,
    config,
    handler: async (_request, reply) => {
      // Newer clients try POST first, and GET after a 405 (MCP 2025-11-25, basic/transports, backwards compatibility).
      reply.header('allow', 'GET')
      throw new Fault('methodNotAllowed', 'Method not allowed: open the HTTP+SSE stream with GET')
    },
  })
  app.post<{ Body: Buffer; Querystring: { sessionId?: string } }>(paths.messages, {
    config,
    onRequest: (request, _reply, done) => {
      checkBody(request.headers)
      done()
    },
    handler: async (request, reply) => {
      if (request.reservation) reserveUntilClosed(request, reply)
      const id = String(request.query.sessionId)
      try {
        const session = sessions.find(id, request.principal)
        const fault = sessions.isForeign(id, request.principal) ? 'foreignSession' : 'sessionNotFound'
        if (!session) throw new Fault(fault, 'Session not found: open another stream')
        await session.post(request, reply)
      } catch (error) {
        await forward(error, reply, options)
      }
      return reply
    },
  })
}

/** One stream, which is also one session: they begin and end together. */
export class SseSession implements KeptSession {
  readonly principal: string
  onClose: () => void = () => {}
  readonly #options: SseOptions
  readonly #conversation: Conversation
  #connection: EventConnection | undefined
  /** The bridge is shutting down. */
  #isDraining = false

  constructor({ principal, credential, grant }: FastifyRequest, options: SseOptions) {
    this.principal = principal
    this.#options = options
    const { upstream, log, memory, settings } = options
    this.#conversation = new Conversation({
      upstream,
      sender: { principal, credential, grant },
      transport: 'sse',
      log,
      memory,
      settings,
      write: (text, instead) => this.#write(text, instead),
    })
  }

  get busy(): boolean {
    return this.#connection !== undefined
  }

  get unanswered(): number {
    return this.#conversation.open
  }

  keepAlive(): void {
    this.#connection?.keepAlive()
  }

  /** Opens the stream. Its first event names the address for POST. */
  open(endpoint: string): Readable {
    const connection = new EventConnection(this.#options.memory.reserve(this.principal, SMALL), () => {
      this.#connection = undefined
      // Without the stream no answer can be delivered.
      this.onClose()
    })
    connection.readable.push(`event: endpoint\ndata: ${endpoint}\n\n`)
    this.#connection = connection
    return connection.readable
  }

  /**
   * Handles a posted message. The answer to the POST refuses an invalid message; all other answers go to the stream. A
   * message that arrives during `initialize` waits until that has been answered. What is taken is answered, also while the
   * bridge shuts down; then only answers and notifications are taken.
   */
  async post(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const body = request.body instanceof Uint8Array ? [request.body] : []
    let id: Id | undefined
    try {
      const message = readMessage(body)
      id = idToAnswer(message)
      if (message.kind === 'invalid') throw new Fault('invalidRequest', message.why)
      const turn = this.#conversation.turn(message)
      if (turn) await turn
      this.#checkBatch(message)
      if (!this.#connection) throw new Fault('sessionNotFound', 'Session not found: open another stream')
      if (this.#isDraining && asks(message))
        throw new Fault('draining', 'The bridge is shutting down', { retryAfter: 1 })
      const reservation = takeOver(request)
      reply.code(202).send()
      this.#conversation
        .take(message, {
          trace: traceHeaders(request),
          headers: this.#options.log.telemetry?.recorder && request.headers,
          grant: request.grant && { ...request.grant, inBand: true },
          ends: request.ends,
        })
        .catch((error: unknown) => this.#refuse(error, id))
        .finally(() => {
          reservation?.end()
          if (this.#isDraining) this.drain()
        })
        .catch(() => {})
    } catch (error) {
      const fault = Fault.from(error)
      this.#options.refusals.note(fault, refusedOf(reply.request))
      refuse(reply, fault, { id })
    }
  }

  /** Ends the session as soon as nothing is in flight. */
  drain(): void {
    this.#isDraining = true
    if (this.#conversation.open === 0) this.onClose()
  }

  close(): void {
    this.#conversation.close()
    this.#connection?.end()
    this.#connection = undefined
  }

  #checkBatch(message: Message): void {
    if (message.kind !== 'batch') return
    const { revision } = this.#conversation
    if (!(revision && traits[revision].batches))
      throw new Fault('invalidRequest', 'This revision has no batches: send one message per request')
    // A batch that is invalid as a whole must be refused before it is accepted with 202.
    readBatch(message)
  }

  #refuse(error: unknown, id: Id | undefined): void {
    const fault = Fault.from(error, true)
    if (fault.fault === 'internalUnknown')
      this.#options.log.error({ event: 'message_failed', err: fault.cause }, 'handling a message failed')
    if (id !== undefined) this.#write(errorMessage(id, fault.toRpcError()))?.catch(() => {})
  }

  #write(message: Wire, instead?: () => Wire): Promise<void> | undefined {
    const connection = this.#connection
    if (!connection) return undefined
    return connection.write(encodeEvent(instead && !connection.admits(message) ? instead() : message))
  }
}

/** Whether a message has requests, which want an answer. */
function asks(message: Message): boolean {
  return message.kind === 'request' || (message.kind === 'batch' && readBatch(message).requests.length > 0)
}
