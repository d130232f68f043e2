/**
 * Passes HTTP messages on to an HTTP server of the same era as they are (@fastify/http-proxy). The server validates for
 * itself; what is ours is whose a session is, what may not cross a proxy, and what is told of it in the log.
 */
import { PassThrough, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import proxy from '@fastify/http-proxy'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { HandOver, Relayed, Reply } from '../../protocol/call.js'
import { type Era, isModern } from '../../protocol/eras.js'
import { Fault } from '../../protocol/fault.js'
import { type HeaderLookup, single, versionHeader } from '../../protocol/headers.js'
import { MAX_SUBSCRIPTION } from '../../protocol/lengths.js'
import type { Memory } from '../../protocol/memory.js'
import { methodTraits } from '../../protocol/methods.js'
import { encodeReply } from '../../protocol/modern-client.js'
import type { Id } from '../../rpc/message.js'
import { EMPTY } from '../../rpc/splice.js'
import { encodeEvent, FieldFilter } from '../../rpc/sse.js'
import { idIn } from '../inbound.js'
import { CallRecord, type Logger, tell } from '../record.js'
import { traceHeaders } from './headers.js'
import { RelayedSessions, type RelayedSessionsOptions } from './relayed-sessions.js'
import { type Refusing, refuse } from './replies.js'

export interface RelayOptions {
  relayed: Relayed
  log: Logger
  /** Lets a request in, or throws a Fault; gives a way out. */
  gate: { enter(entering: { principal: string; endless: boolean; goesOn?: boolean | undefined }): () => void }
  sessions: Omit<RelayedSessionsOptions, 'told'>
  memory: Memory
  /** Methods of modern requests that are not to go as they are, because results are kept here. */
  keeps?: ((method: string) => boolean) | undefined
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

/** A request on its way. */
interface Underway extends Passing {
  refusing: Refusing
  record: CallRecord
  handOver: HandOver
  /** Why it cannot be answered by the server. */
  fault?: Fault
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
  readonly #passing = new WeakMap<FastifyRequest, Underway>()
  /** Sessions of the server's own. */
  readonly sessions: RelayedSessions
  /** Streams that stay open for ever: ends one, gently. */
  readonly #endless = new Set<() => void>()
  /** Ends the request that is being handed over, when its client goes. */
  #signal: AbortSignal | undefined

  constructor(options: RelayOptions) {
    this.#options = options
    const told = (what: 'opened' | 'ended') => tell(options.log, { kind: 'session', side: 'client', what })
    this.sessions = new RelayedSessions({ ...options.sessions, told })
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
    const method = single(lookup, 'mcp-method') ?? ''
    // What the server offers may have to be told otherwise.
    return method !== 'server/discover' && !this.#options.keeps?.(method)
  }

  /** What is to be told of a modern request. */
  modern(lookup: HeaderLookup): Passing {
    const method = single(lookup, 'mcp-method') ?? 'unknown'
    const { endless = false } = methodTraits(method)
    return { era: 'modern', method, name: single(lookup, 'mcp-name'), endless, opens: false }
  }

  /** Whether a session is the server's own: then its messages go as they are. Throws a Fault where it is somebody else's. */
  async takesSession(id: string, principal: string): Promise<boolean> {
    // Where anybody may call, one who knows a session of the server may use it, as if the bridge were not there.
    const open = principal === 'local' || principal === 'anon'
    if (await this.sessions.isOf(principal, id, open)) return true
    return open && this.#options.relayed.speaks() === 'legacy'
  }

  /** Ends what would stay open for ever. */
  drain(): void {
    for (const end of [...this.#endless]) end()
  }

  /** Ends a session of which the server knows nothing. */
  endOurs(id: string): boolean {
    if (!this.sessions.isOurs(id)) return false
    this.sessions.forget(id)
    return true
  }

  #pass(
    request: FastifyRequest,
    reply: FastifyReply,
    passing: Passing & { refusing: Refusing },
    { source, hooks }: { source: string; hooks: object },
  ): void {
    const { era, method, name } = passing
    const sent = request.body instanceof Uint8Array ? request.body : undefined
    const record = new CallRecord(this.#options.log, {
      clientEra: era,
      serverEra: era,
      clientTransport: 'http',
      relayed: true,
      method,
      ...(name !== undefined && { name: name.slice(0, 120) }),
    })
    record.follow(EMPTY, traceHeaders(request))
    const leave = this.#enter(request.principal, passing, record, sent?.length ?? 0)
    const underway: Underway = { ...passing, record, handOver: record.handedOver() }
    this.#passing.set(request, underway)
    const controller = new AbortController()
    reply.raw.once('close', () => {
      leave()
      underway.handOver.over(underway.fault)
      if (!reply.raw.writableFinished) controller.abort()
      if (underway.fault) record.failed(underway.fault)
      else if (reply.statusCode < 400 && reply.raw.writableFinished) record.answered('ok')
      else if (controller.signal.aborted) record.cancelled()
      else record.answered('error', reply.statusCode)
    })
    const contentType = request.headers['content-type'] ?? 'application/json'
    this.#signal = controller.signal
    reply.from(source, { ...hooks, ...(sent && { body: sent, contentType }) } as Parameters<FastifyReply['from']>[1])
    this.#signal = undefined
  }

  #enter(principal: string, passing: Passing, record: CallRecord, bytes: number): () => void {
    const { gate, memory } = this.#options
    try {
      if (!passing.endless) return gate.enter({ ...passing, principal })
      if (bytes > MAX_SUBSCRIPTION)
        throw new Fault('invalidParams', `A request that stays open may have ${MAX_SUBSCRIPTION / 1024} KiB`)
      // It is kept for as long as it stays open.
      const loan = memory.lend(principal, bytes)
      try {
        const leave = gate.enter({ ...passing, principal })
        return () => {
          leave()
          loan.end()
        }
      } catch (error) {
        loan.end()
        throw error
      }
    } catch (error) {
      record.failed(Fault.from(error))
      throw error
    }
  }

  #requestHeaders(request: FastifyRequest, headers: Headers): Headers {
    const sent = { ...headers }
    const underway = this.#passing.get(request)
    const modern = underway?.era === 'modern'
    for (const name of [...NOT_SENT_ON, ...(modern ? OF_SESSIONS : [])]) delete sent[name]
    for (const name of Object.keys(sent)) if (NOT_SENT_ON_LIKE.test(name)) delete sent[name]
    const session = sent['mcp-session-id']
    if (typeof session === 'string' && this.sessions.isOurs(session)) delete sent['mcp-session-id']
    if (request.credential !== undefined) sent['authorization'] = request.credential
    if (underway?.handOver.trace) Object.assign(sent, { tracestate: undefined, ...underway.handOver.trace })
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
      const said = `The server wants other credentials (HTTP ${statusCode})`
      this.#refuse(reply, new Fault('upstreamAuthRequired', said, { refused }))
      return
    }
    stream.once('end', () => passing?.handOver.over(endOf(statusCode)))
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
    if (passing?.endless) {
      reply.send(this.#endlessly(stream, passing.era, this.#idOf(request)))
    } else if (passing?.era === 'modern') {
      const filtered = withoutFields(FOREIGN_FIELDS)
      pipeline(stream, filtered).catch(() => {})
      reply.send(filtered)
    } else {
      reply.send(stream)
    }
    // A stream may have nothing to say for long: that it is there, its client has to know at once.
    reply.raw.flushHeaders()
  }

  /** The stream, which can be ended: that of a modern client with the result of its subscription. */
  #endlessly(stream: Response['stream'], era: Era, id: Id | undefined): Transform {
    const passed = era === 'modern' ? withoutFields(FOREIGN_FIELDS) : new PassThrough()
    let last: Uint8Array | undefined
    stream.on('data', (chunk: Uint8Array) => {
      last = chunk
    })
    const end = () => {
      stream.unpipe(passed)
      // In the middle of an event, another would be taken for a part of it.
      const whole = last === undefined || /\n\r?\n$/.test(Buffer.from(last.subarray(-3)).toString('latin1'))
      const result = era === 'modern' && id !== undefined && whole ? encodeEvent(ended(id)) : ''
      passed.end(result)
    }
    this.#endless.add(end)
    passed.once('close', () => {
      this.#endless.delete(end)
      stream.destroy()
    })
    stream.on('error', (error: Error) => passed.destroy(error))
    return stream.pipe(passed)
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
      if (over && typeof asked === 'string') this.sessions.forget(asked)
      return
    }
    if (statusCode >= 400) return this.#options.relayed.doubt()
    const given = headers['mcp-session-id']
    const id = typeof given === 'string' ? given : crypto.randomUUID()
    if (given === undefined) reply.header('mcp-session-id', id)
    this.sessions.opened(id, { principal: request.principal, ours: given === undefined })
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
    this.#refuse(reply, fault)
  }

  #refuse(reply: FastifyReply, fault: Fault): void {
    const underway = this.#passing.get(reply.request)
    if (underway) underway.fault = fault
    refuse(reply, fault, { ...underway?.refusing, id: this.#idOf(reply.request) })
  }
}

/** The result of a subscription that has come to its end. */
function ended(id: Id): string {
  const listen = { method: 'subscriptions/listen', progressToken: undefined }
  return encodeReply({ kind: 'result', result: EMPTY }, id, listen) as string
}

/** What is known of an answer that nobody has read. */
function endOf(status: number): Reply {
  return status < 400
    ? { kind: 'result', result: EMPTY }
    : { kind: 'error', error: { code: status, message: `HTTP ${status}` } }
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
