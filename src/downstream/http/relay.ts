/**
 * Passes HTTP messages on to an HTTP server of the same era as they are (@fastify/http-proxy). The server validates for
 * itself; what is ours is whose a session is, what may not cross a proxy, and what is told of it in the log.
 */
import proxy from '@fastify/http-proxy'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Account } from '../../protocol/account.js'
import type { Relayed } from '../../protocol/call.js'
import { isModern } from '../../protocol/eras.js'
import { Fault } from '../../protocol/fault.js'
import { type HeaderLookup, single, versionHeader } from '../../protocol/headers.js'
import { MAX_SUBSCRIPTION } from '../../protocol/lengths.js'
import type { Memory } from '../../protocol/memory.js'
import { methodTraits } from '../../protocol/methods.js'
import { EMPTY } from '../../rpc/splice.js'
import { CallLogEntry, type Logger, tell } from '../call-log.js'
import { traceHeaders } from './headers.js'
import { type Headers, sentBack } from './relay-headers.js'
import { RelayedRequest, type RelayedRequestOptions, type Response } from './relayed-request.js'
import { RelayedSessions, type RelayedSessionsOptions } from './relayed-sessions.js'
import { type ErrorRendering, whenOver } from './replies.js'

export type { RelayedRequestOptions as Passing } from './relayed-request.js'

export interface RelayOptions {
  relayed: Relayed
  /** In whose name the requests of a principal are sent, where the bridge signs in to the server. */
  accountOf?: ((principal: string) => Account | undefined) | undefined
  log: Logger
  /** Lets a request in, or throws a Fault; gives a way out. */
  gate: { enter(entering: { principal: string; endless: boolean; goesOn?: boolean | undefined }): () => void }
  sessions: Omit<RelayedSessionsOptions, 'told'>
  memory: Memory
  /** Methods of modern requests that are not to go as they are, because results are kept here. */
  keeps?: ((method: string) => boolean) | undefined
  /** Modern requests that are meant for the bridge, by what they name and by their body. */
  isOurs?: ((name: string | undefined, body: Uint8Array | undefined) => boolean) | undefined
}

/** Passes a request on. `otherwise` answers it without the relay, should the server speak the other era by now. */
export type Pass = (passing: RelayedRequestOptions, otherwise?: () => void) => void

interface Requestable {
  request(options: object, done: (error: Error | null, response: unknown) => void): void
}

export class Relay {
  readonly #options: RelayOptions
  readonly #passing = new WeakMap<FastifyRequest, RelayedRequest>()
  /** Requests that have not been answered whole. */
  readonly #open = new Set<RelayedRequest>()
  /** Sessions of the server's own. */
  readonly sessions: RelayedSessions
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
    { path, refusing }: { path: string; refusing: ErrorRendering },
    handle: (request: FastifyRequest, reply: FastifyReply, pass: Pass) => Promise<FastifyReply>,
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
      // What the server has refused, its client may ask for again.
      retryMethods: [],
      disableRequestLogging: true,
      undici,
      handler: (request: FastifyRequest, reply: FastifyReply, source: string, hooks: object) =>
        handle(request, reply, (passing, otherwise) => {
          const underway = this.#begin(request, reply, { passing, refusing, otherwise })
          const send = () => this.#send(underway, request, reply, { source, hooks })
          const account = this.#options.accountOf?.(request.principal)
          if (account) underway.sendAs(account, send)
          else send()
        }),
      replyOptions: {
        queryString: () => query,
        rewriteRequestHeaders: (request: FastifyRequest, headers: Headers) => this.#of(request).headersSentOn(headers),
        rewriteHeaders: (headers: Headers, request: FastifyRequest) =>
          sentBack(headers, this.#of(request).passing.era === 'legacy'),
        onResponse: (request: FastifyRequest, _reply: FastifyReply, response: Response) =>
          this.#of(request).answered(response),
        onError: ({ request }: FastifyReply, { error }: { error: Error }) =>
          this.#of(request).failed(error.cause instanceof Error ? error.cause : error),
      },
    }
    await app.register(proxy, options as unknown as Parameters<typeof proxy>[1])
  }

  /** Whether a request of the modern era can go as it is: its headers say all that has to be known. */
  takesModern(lookup: HeaderLookup, body: Uint8Array | undefined): boolean {
    if (!isModern(versionHeader(lookup)) || this.#options.relayed.speaks() !== 'modern') return false
    const method = single(lookup, 'mcp-method') ?? ''
    // What the server offers may have to be told otherwise.
    if (method === 'server/discover' || this.#options.keeps?.(method)) return false
    return !this.#options.isOurs?.(single(lookup, 'mcp-name'), body)
  }

  /** What is to be told of a modern request. */
  modern(lookup: HeaderLookup): RelayedRequestOptions {
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
    for (const one of [...this.#open]) one.drain()
  }

  /** Tells the clients of what has not been answered that it will not be, as far as they can still be told. */
  cut(): void {
    const message = 'The bridge has been stopped; whether the server acted on the call is unknown'
    for (const one of [...this.#open]) one.cut(new Fault('interrupted', message))
  }

  /** Ends a session of which the server knows nothing. */
  endOurs(id: string): boolean {
    if (!this.sessions.isOurs(id)) return false
    this.sessions.forget(id)
    return true
  }

  #of(request: FastifyRequest): RelayedRequest {
    return this.#passing.get(request) as RelayedRequest
  }

  #begin(
    request: FastifyRequest,
    reply: FastifyReply,
    {
      passing,
      refusing,
      otherwise,
    }: { passing: RelayedRequestOptions; refusing: ErrorRendering; otherwise: (() => void) | undefined },
  ): RelayedRequest {
    const { era, method, name } = passing
    const { log, relayed } = this.#options
    const record = new CallLogEntry(log, {
      clientEra: era,
      serverEra: era,
      clientTransport: 'http',
      relayed: true,
      method,
      ...(name !== undefined && { name: name.slice(0, 120) }),
    })
    record.follow(EMPTY, traceHeaders(request))
    let leave = () => {}
    try {
      leave = this.#enter(request.principal, passing, request.body instanceof Uint8Array ? request.body.length : 0)
    } catch (error) {
      record.failed(Fault.from(error))
      throw error
    }
    const parts = { request, reply, passing, refusing, otherwise, record, relayed, sessions: this.sessions }
    const underway = new RelayedRequest(parts, () => {
      leave()
      this.#open.delete(underway)
    })
    this.#passing.set(request, underway)
    this.#open.add(underway)
    whenOver(reply, () => underway.over())
    return underway
  }

  /** Lets a request in, or throws a Fault; gives a way out. What stays open keeps its request, which is lent. */
  #enter(principal: string, passing: RelayedRequestOptions, bytes: number): () => void {
    const { gate, memory } = this.#options
    if (!passing.endless) return gate.enter({ ...passing, principal })
    if (bytes > MAX_SUBSCRIPTION)
      throw new Fault('invalidParams', `A request that stays open may have ${MAX_SUBSCRIPTION / 1024} KiB`)
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
  }

  #send(
    { signal }: RelayedRequest,
    { body, headers }: FastifyRequest,
    reply: FastifyReply,
    { source, hooks }: { source: string; hooks: object },
  ): void {
    const contentType = headers['content-type'] ?? 'application/json'
    const sent = body instanceof Uint8Array ? { ...hooks, body, contentType } : hooks
    this.#signal = signal
    reply.from(source, sent as Parameters<FastifyReply['from']>[1])
    this.#signal = undefined
  }
}
