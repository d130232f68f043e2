/**
 * Passes HTTP messages on to an HTTP server of the same era as they are (@fastify/http-proxy). The server validates for
 * itself; what is ours is whose a session is, what may not cross a proxy, and what is told of it in the log.
 */
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import proxy from '@fastify/http-proxy'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Relayed } from '../../protocol/call.js'
import { type Era, isModern } from '../../protocol/eras.js'
import { Fault } from '../../protocol/fault.js'
import { type HeaderLookup, single, versionHeader } from '../../protocol/headers.js'
import { methodTraits } from '../../protocol/methods.js'
import type { Id } from '../../rpc/message.js'
import { FieldFilter } from '../../rpc/sse.js'
import { idIn } from '../inbound.js'
import { CallRecord, type Logger } from '../record.js'
import { type Refusing, refuse } from './replies.js'

export interface RelayOptions {
  relayed: Relayed
  log: Logger
  /** Lets a request in, or throws a Fault; gives a way out. */
  gate: { enter(entering: { endless: boolean; goesOn?: boolean | undefined }): () => void }
  /** Sessions that may be remembered. */
  maxSessions: number
}

/** What is to be told of a request, as far as it is known without reading it twice. */
export interface Passing {
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

interface Session {
  principal: string
  /** The server keeps none: the id is ours, and it never hears of it. */
  ours: boolean
}

/** Headers of a request that are about this connection, or that are for us. Names beginning like the second kind, too. */
const NOT_SENT_ON = [
  'origin',
  'cookie',
  'keep-alive',
  'te',
  'trailer',
  'upgrade',
  'expect',
  'forwarded',
  'authorization',
]
const NOT_SENT_ON_LIKE = /^(?:proxy-|x-forwarded-|sec-)/
const OF_SESSIONS = ['mcp-session-id', 'last-event-id']
/** Headers of an answer that are about the other connection, or about another origin. */
const NOT_SENT_BACK = ['connection', 'keep-alive', 'proxy-authenticate', 'trailer', 'upgrade', 'set-cookie', 'alt-svc']
/** Fields of events that the modern era does not have, and that its clients stumble over. */
const FOREIGN_FIELDS = ['id', 'retry']

type Headers = Record<string, string | string[] | undefined>
interface Requestable {
  request(options: object, done: (error: Error | null, response: unknown) => void): void
}
interface Response {
  statusCode: number
  headers: Headers
  stream: NodeJS.ReadableStream & { destroy(): void }
}

export class Relay {
  readonly #options: RelayOptions
  readonly #passing = new WeakMap<FastifyRequest, Passing & { refusing: Refusing; record: CallRecord }>()
  readonly #sessions = new Map<string, Session>()
  /** Ends the request that is being handed over, when its client goes. */
  #signal: AbortSignal | undefined

  constructor(options: RelayOptions) {
    this.#options = options
  }

  /** Registers the proxy at a path. Everything that comes there meets `handle`, which may `pass` it on. */
  async register(
    app: FastifyInstance,
    { path, refusing }: { path: string; refusing: Refusing },
    handle: (request: FastifyRequest, reply: FastifyReply, pass: (passing: Passing) => void) => Promise<FastifyReply>,
  ): Promise<void> {
    const { url, dispatcher } = this.#options.relayed
    const query = url.search.slice(1)
    const undici: Requestable = {
      request: (options, done) => (dispatcher as Requestable).request({ ...options, signal: this.#signal }, done),
    }
    const options = {
      upstream: url.origin,
      prefix: path,
      rewritePrefix: url.pathname,
      routes: ['/'],
      httpMethods: ['GET', 'POST', 'DELETE'],
      // The body has been read: a message is one piece, and its size is checked.
      proxyPayloads: false,
      disableRequestLogging: true,
      undici,
      handler: (request: FastifyRequest, reply: FastifyReply, source: string, hooks: object) =>
        handle(request, reply, (passing) => this.#pass(request, reply, { ...passing, refusing }, { source, hooks })),
      replyOptions: {
        queryString: () => query,
        rewriteRequestHeaders: (request: FastifyRequest, headers: Headers) => this.#requestHeaders(request, headers),
        rewriteHeaders: (headers: Headers, request: FastifyRequest) => this.#answerHeaders(headers, request),
        onResponse: (request: FastifyRequest, reply: FastifyReply, response: Response) =>
          this.#answered(request, reply, response),
        onError: (reply: FastifyReply, { error }: { error: Error }) => this.#failed(reply, error),
      },
    }
    await app.register(proxy, options as unknown as Parameters<typeof proxy>[1])
  }

  /** Whether a request of the modern era can go as it is: its headers say all that has to be known. */
  takesModern(lookup: HeaderLookup): boolean {
    if (!isModern(versionHeader(lookup)) || this.#options.relayed.speaks() !== 'modern') return false
    // What the server offers may have to be told otherwise.
    return single(lookup, 'mcp-method') !== 'server/discover'
  }

  /** What is to be told of a modern request. */
  modern(lookup: HeaderLookup): Passing {
    const method = single(lookup, 'mcp-method') ?? 'unknown'
    const { endless = false } = methodTraits(method)
    return { era: 'modern', method, name: single(lookup, 'mcp-name'), endless, opens: false }
  }

  /** Whether a session is the server's own: then its messages go as they are. Throws a Fault where it is somebody else's. */
  takesSession(id: string, principal: string): boolean {
    const session = this.#sessions.get(id)
    if (session) {
      if (session.principal !== principal)
        throw new Fault('sessionNotFound', 'Session not found: call initialize to open one')
      // Those that have been used last stand last.
      this.#sessions.delete(id)
      this.#sessions.set(id, session)
      return true
    }
    // Where anybody may call, one who knows a session of the server may use it, as if the bridge were not there.
    const open = principal === 'local' || principal === 'anon'
    return open && this.#options.relayed.speaks() === 'legacy'
  }

  /** Ends a session of which the server knows nothing. */
  endOurs(id: string): boolean {
    if (!this.#sessions.get(id)?.ours) return false
    this.#sessions.delete(id)
    return true
  }

  #pass(
    request: FastifyRequest,
    reply: FastifyReply,
    passing: Passing & { refusing: Refusing },
    { source, hooks }: { source: string; hooks: object },
  ): void {
    const leave = this.#options.gate.enter(passing)
    const { era, method, name } = passing
    const record = new CallRecord(this.#options.log, {
      clientEra: era,
      serverEra: era,
      clientTransport: 'http',
      relayed: true,
      method,
      ...(name !== undefined && { name: name.slice(0, 120) }),
    })
    this.#passing.set(request, { ...passing, record })
    const controller = new AbortController()
    reply.raw.once('close', () => {
      leave()
      if (!reply.raw.writableFinished) controller.abort()
      if (reply.statusCode < 400 && reply.raw.writableFinished) record.answered('ok')
      else if (controller.signal.aborted) record.cancelled()
      else record.answered('error', reply.statusCode)
    })
    const body = request.body instanceof Uint8Array ? { body: request.body } : {}
    const contentType = request.headers['content-type'] ?? 'application/json'
    this.#signal = controller.signal
    reply.from(source, { ...hooks, ...(body.body && { ...body, contentType }) } as Parameters<FastifyReply['from']>[1])
    this.#signal = undefined
  }

  #requestHeaders(request: FastifyRequest, headers: Headers): Headers {
    const sent = { ...headers }
    const modern = this.#passing.get(request)?.era === 'modern'
    for (const name of [...NOT_SENT_ON, ...(modern ? OF_SESSIONS : [])]) delete sent[name]
    for (const name of Object.keys(sent)) if (NOT_SENT_ON_LIKE.test(name)) delete sent[name]
    const session = sent['mcp-session-id']
    if (typeof session === 'string' && this.#sessions.get(session)?.ours) delete sent['mcp-session-id']
    if (request.credential !== undefined) sent['authorization'] = request.credential
    return { ...sent, 'accept-encoding': 'identity', ...this.#options.relayed.headers }
  }

  #answerHeaders(headers: Headers, request: FastifyRequest): Headers {
    const sent = { ...headers }
    const passing = this.#passing.get(request)
    const modern = passing?.era === 'modern'
    for (const name of [...NOT_SENT_BACK, ...(modern ? OF_SESSIONS : [])]) delete sent[name]
    if (isEvents(headers)) Object.assign(sent, { 'cache-control': 'no-store', 'x-accel-buffering': 'no' })
    return sent
  }

  #answered(request: FastifyRequest, reply: FastifyReply, { statusCode, headers, stream }: Response): void {
    const passing = this.#passing.get(request)
    if (statusCode === 401 || statusCode === 403) {
      stream.destroy()
      const challenge = headers['www-authenticate']
      const refused = { status: statusCode, challenge: typeof challenge === 'string' ? challenge : undefined } as const
      for (const name of Object.keys(reply.getHeaders())) reply.removeHeader(name)
      refuse(
        reply,
        new Fault('upstreamAuthRequired', `The server wants other credentials (HTTP ${statusCode})`, { refused }),
        { ...passing?.refusing, id: this.#idOf(request) },
      )
      return
    }
    if (passing?.era === 'modern') {
      const strange = (statusCode === 404 || statusCode === 405) && !/json/.test(String(headers['content-type']))
      if (strange) this.#options.relayed.doubt()
    } else if (passing) {
      this.#noteSession(request, reply, passing, { statusCode, headers })
    }
    if (!isEvents(headers)) {
      reply.send(stream)
      return
    }
    if (passing?.era === 'modern') {
      const filtered = withoutFields(FOREIGN_FIELDS)
      pipeline(stream, filtered).catch(() => {})
      reply.send(filtered)
    } else {
      reply.send(stream)
    }
    // A stream may have nothing to say for long: that it is there, its client has to know at once.
    reply.raw.flushHeaders()
  }

  /** Notes whose a session is. Where the server opens none, the client gets an id all the same: it is how it is known here. */
  #noteSession(
    request: FastifyRequest,
    reply: FastifyReply,
    { opens }: Passing,
    { statusCode, headers }: Pick<Response, 'statusCode' | 'headers'>,
  ): void {
    const asked = request.headers['mcp-session-id']
    if (!opens) {
      const over = statusCode === 404 || (request.method === 'DELETE' && statusCode < 300)
      if (over && typeof asked === 'string') this.#sessions.delete(asked)
      return
    }
    if (statusCode >= 400) return this.#options.relayed.doubt()
    const given = headers['mcp-session-id']
    const id = typeof given === 'string' ? given : crypto.randomUUID()
    if (given === undefined) reply.header('mcp-session-id', id)
    const [oldest] = this.#sessions.keys()
    if (oldest !== undefined && this.#sessions.size >= this.#options.maxSessions) this.#sessions.delete(oldest)
    this.#sessions.set(id, { principal: request.principal, ours: given === undefined })
  }

  #idOf(request: FastifyRequest): Id | undefined {
    return this.#passing.get(request)?.id ?? idIn(request.body)
  }

  #failed(reply: FastifyReply, error: Error): void {
    const cause = error.cause instanceof Error ? error.cause : error
    if (reply.raw.destroyed) {
      reply.hijack()
      return
    }
    const refused = 'code' in cause && cause.code === 'ECONNREFUSED'
    const fault = new Fault(
      refused ? 'upstreamUnavailable' : 'upstreamClosed',
      refused ? 'The server is not available: connection refused' : 'The connection to the server was lost',
      { cause, status: 502 },
    )
    const { refusing } = this.#passing.get(reply.request) ?? {}
    refuse(reply, fault, { ...refusing, id: this.#idOf(reply.request) })
  }
}

function isEvents(headers: Headers): boolean {
  return String(headers['content-type'] ?? '').startsWith('text/event-stream')
}

function withoutFields(fields: readonly string[]): Transform {
  const filter = new FieldFilter(fields)
  return new Transform({
    transform(chunk: Uint8Array, _encoding, done) {
      for (const part of filter.push(chunk)) this.push(part)
      done()
    },
  })
}
