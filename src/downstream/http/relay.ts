/**
 * The relay: passes HTTP messages unchanged between a client and a server of the same era (@fastify/reply-from). The
 * server validates them. The bridge checks who owns a session, filters headers, and writes the log.
 */
import type { FastifyReplyFromOptions } from '@fastify/reply-from'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Signal } from '../../hang-up.js'
import { OpenSet } from '../../open-set.js'
import type { Account } from '../../protocol/account.js'
import type { Relayed } from '../../protocol/call.js'
import { isModern, legacyRevision } from '../../protocol/eras.js'
import { Fault } from '../../protocol/fault.js'
import { decodeValue, type HeaderLookup, single, versionHeader } from '../../protocol/headers.js'
import { MAX_SUBSCRIPTION } from '../../protocol/lengths.js'
import { callerOf } from '../../protocol/listed.js'
import type { Memory } from '../../protocol/memory.js'
import { methodTraits } from '../../protocol/methods.js'
import { idValue } from '../../rpc/message.js'
import { CallLogEntry, namedSubject } from '../call-log.js'
import { type Logger, tell } from '../logger.js'
import { WatchedQuestions } from '../watched-questions.js'
import { traceHeaders } from './headers.js'
import { headerOf, type RelayedHeaders, sentBack } from './relay-headers.js'
import { answersIn, clientIn } from './relayed-bodies.js'
import { RelayedList } from './relayed-list.js'
import { questionKey, RelayedMessages } from './relayed-messages.js'
import { RelayedRequest, type RelayedRequestOptions, type RelayedResponse } from './relayed-request.js'
import { RelayedSessions, type RelayedSessionsOptions } from './relayed-sessions.js'
import { type ErrorRendering, whenOver } from './replies.js'

export type { RelayedRequestOptions as Passing } from './relayed-request.js'

declare module 'fastify' {
  interface FastifyRequest {
    /** Set while the request is relayed. */
    relayed: RelayedRequest | undefined
  }
}

/** Options of the relay of one server. */
export interface RelayOptions {
  relayed: Relayed
  /** The account of a principal, if the bridge signs in to the server. */
  accountOf?: ((principal: string) => Account | undefined) | undefined
  log: Logger
  /** Admits a request, or throws a Fault. Returns the function that releases its place. */
  gate: { enter(entering: { principal: string; endless: boolean; goesOn?: boolean | undefined }): () => void }
  sessions: Omit<RelayedSessionsOptions, 'report' | 'cookies'>
  memory: Memory
  /** Whether a modern method is not relayed, because the bridge caches its results. */
  keeps?: ((method: string) => boolean) | undefined
  /** Whether a modern request is for the bridge itself, by its `Mcp-Name` and its body. */
  isOurs?: ((name: string | undefined, body: Uint8Array | undefined) => boolean) | undefined
}

/** What an endpoint needs of the relay. */
export type RelayAt = Pick<Relay, 'register' | 'takesModern' | 'modern' | 'takesSession' | 'endOurs'>

/** Relays a request. `fallback` answers it without the relay, if the server turns out to have changed its era. */
export type Pass = (passing: RelayedRequestOptions, fallback?: () => void) => void

/** An answer, as undici gives it. */
interface Answered {
  statusCode: number
  headers: RelayedHeaders
  body: { dump(): Promise<void> }
}

interface Sending {
  principal: string
  signal: Signal
  method: string
}

type Done = (error: Error | null, response?: Answered) => void

interface Requestable {
  request(options: object, done: Done): void
}

/** The relay of one server. */
export class Relay {
  readonly #options: RelayOptions
  /** Requests whose answers are not complete. See `OpenSet` for why this is no Set. */
  readonly #open = new OpenSet<RelayedRequest>()
  /** For the inspector. */
  readonly #questions: WatchedQuestions
  /** The owners of relayed sessions. */
  readonly sessions: RelayedSessions
  /** The request that is being handed to undici at this moment. */
  #sending: Sending | undefined

  constructor(options: RelayOptions) {
    this.#options = options
    this.#questions = new WatchedQuestions(options.log)
    this.sessions = new RelayedSessions({
      ...options.sessions,
      cookies: () => options.relayed.cookies(),
      report: (what, session, principal) =>
        tell(options.log, { kind: 'session', side: 'client', what, session, principal }),
    })
  }

  /** Registers the relay at a path. `handle` gets every request there, and may `pass` it to the server. */
  async register(
    app: FastifyInstance,
    { path, refusing }: { path: string; refusing: ErrorRendering },
    handle: (request: FastifyRequest, reply: FastifyReply, pass: Pass) => void,
  ): Promise<void> {
    const { url } = this.#options.relayed
    const { default: replyFrom } = await import('@fastify/reply-from')
    const dispatcher = (await this.#options.relayed.dispatcher) as Requestable
    const undici: Requestable = { request: (options, done) => this.#request(dispatcher, options, done) }
    const options = { base: url.origin, undici, retryMethods: [], disableRequestLogging: true }
    const hooks = {
      rewriteRequestHeaders: (request: FastifyRequest, headers: RelayedHeaders) =>
        this.#of(request).headersSentOn(headers),
      rewriteHeaders: (headers: RelayedHeaders, request: FastifyRequest) =>
        sentBack(headers, this.#of(request).passing.era === 'legacy'),
      onResponse: (request: FastifyRequest, _reply: FastifyReply, response: RelayedResponse) =>
        this.#of(request).answered(response),
      onError: ({ request }: FastifyReply, { error }: { error: Error }) =>
        this.#of(request).failed(error.cause instanceof Error ? error.cause : error),
    }
    const handler = (request: FastifyRequest, reply: FastifyReply) =>
      handle(request, reply, (passing, fallback) => {
        const relayed = this.#begin(request, reply, { passing, refusing, fallback })
        const send = () => this.#send(relayed, request, reply, { source: url.pathname, hooks })
        const account = this.#options.accountOf?.(request.principal)
        if (account) relayed.sendAs(account, send)
        else send()
      })
    await app.register(
      async (scope) => {
        scope.decorateRequest('relayed', undefined)
        // What may be repeated is decided in `#request`, by the method of the message.
        await scope.register(replyFrom, options as unknown as FastifyReplyFromOptions)
        scope.route({ method: ['GET', 'POST', 'DELETE'], url: '/', handler })
      },
      { prefix: path },
    )
  }

  /** Whether a modern request is relayed. Its headers contain everything that decides this. */
  takesModern(lookup: HeaderLookup, body: Uint8Array | undefined): boolean {
    if (!isModern(versionHeader(lookup)) || this.#options.relayed.speaks() !== 'modern') return false
    const method = single(lookup, 'mcp-method') ?? ''
    // The bridge may have to change the server's answer to `server/discover`.
    if (method === 'server/discover' || this.#options.keeps?.(method)) return false
    return !this.#options.isOurs?.(single(lookup, 'mcp-name'), body)
  }

  /** What the relay needs to know about a modern request. */
  modern(lookup: HeaderLookup): RelayedRequestOptions {
    const method = single(lookup, 'mcp-method') ?? 'unknown'
    const { endless = false } = methodTraits(method)
    const name = single(lookup, 'mcp-name')
    return { era: 'modern', method, ...(name && namedSubject(method, decoded(name))), endless, opens: false }
  }

  /** Whether the messages of a session are relayed. Throws a Fault if the session belongs to another principal. */
  async takesSession(id: string, principal: string): Promise<boolean> {
    // Without authentication, anybody who knows the id of a session may use it, as at the server itself.
    const open = principal === 'local' || principal === 'anon'
    if (await this.sessions.isOf(principal, id, open)) return true
    return open && this.#options.relayed.speaks() === 'legacy'
  }

  /** The relay at an endpoint that is no longer its own: sessions that it knows go on, and nothing else is relayed. */
  get forSessions(): RelayAt {
    return {
      register: (app, at, handle) => this.register(app, at, handle),
      takesModern: () => false,
      modern: (lookup) => this.modern(lookup),
      // A session that is not known may be one of the endpoint itself, which has ended.
      takesSession: (id, principal) => this.sessions.isOf(principal, id, true),
      endOurs: (id) => this.endOurs(id),
    }
  }

  /** Ends the streams that have no end of their own. */
  drain(): void {
    for (const one of [...this.#open]) one.drain()
  }

  /** Ends the subscriptions of modern clients. They belong to no session. */
  endSubscriptions(): void {
    for (const one of [...this.#open]) if (one.passing.era === 'modern') one.drain()
  }

  /** Ends all unanswered requests with an error, as far as an error can still be sent. */
  cut(): void {
    const message = 'The bridge was shut down; whether the server acted on the call is unknown'
    for (const one of [...this.#open]) one.cut(new Fault('interrupted', message))
  }

  /** Ends a session whose id the bridge created. Returns false if it is another session. */
  endOurs(id: string): boolean {
    if (!this.sessions.isOurs(id)) return false
    this.sessions.forget(id)
    return true
  }

  #of(request: FastifyRequest): RelayedRequest {
    return request.relayed as RelayedRequest
  }

  #begin(
    request: FastifyRequest,
    reply: FastifyReply,
    {
      passing,
      refusing,
      fallback,
    }: { passing: RelayedRequestOptions; refusing: ErrorRendering; fallback: (() => void) | undefined },
  ): RelayedRequest {
    const { principal, body } = request
    const { record, messages } = this.#record(request, passing)
    const list = this.#listOf(principal, passing, record)
    let leave = () => {}
    try {
      leave = this.#enter(principal, passing, body instanceof Uint8Array ? body.length : 0)
    } catch (error) {
      list?.close()
      record.failed(Fault.from(error))
      throw error
    }
    const { relayed } = this.#options
    const parts = {
      request,
      reply,
      passing,
      refusing,
      fallback,
      record,
      messages,
      list,
      relayed,
      sessions: this.sessions,
    }
    const relayedRequest = new RelayedRequest(parts, () => {
      leave()
      this.#open.delete(place)
    })
    request.relayed = relayedRequest
    const place = this.#open.add(relayedRequest)
    whenOver(reply, () => relayedRequest.over())
    return relayedRequest
  }

  /** Begins the log of a request. `messages` tells the inspector what passes; undefined if it is not told. */
  #record(
    request: FastifyRequest,
    { era, method, name, opens, answers }: RelayedRequestOptions,
  ): { record: CallLogEntry; messages: RelayedMessages | undefined } {
    const { log } = this.#options
    const { principal, body, headers } = request
    const watch = log.telemetry?.watch
    const revision = era === 'legacy' && legacyRevision(headerOf(headers, 'mcp-protocol-version'))
    const session = watch && headerOf(headers, 'mcp-session-id')
    const isAnswer = session !== undefined && answers !== undefined
    const partOf = isAnswer ? this.#questions.answered(questionKey(session, idValue(answers))) : undefined
    const fields = {
      clientEra: era,
      serverEra: era,
      clientTransport: 'http',
      relayed: true,
      method,
      ...(revision && { clientRevision: revision }),
      ...(name !== undefined && { name }),
    } as const
    const record = new CallLogEntry(log, fields, { principal, session, partOf })
    record.begin(undefined, traceHeaders(request))
    const sent = body instanceof Uint8Array ? body : undefined
    // In legacy revisions, no request brings answers.
    const brought = watch?.hasAsked && sent && era === 'modern' ? answersIn(sent) : undefined
    if (brought) record.continues(brought)
    const { watched } = record
    const call = watched?.number ?? partOf
    watched?.begunBy(opens && watch && sent ? clientIn(watch, sent) : undefined, brought)
    if (!call) return { record, messages: undefined }
    const listed = method === 'tools/list' ? this.#options.memory.borrow(principal) : undefined
    const messages = new RelayedMessages(log, { call, session, questions: this.#questions, opens, listed })
    // The other requests of a session have the same headers.
    if (sent) messages.received(sent, opens ? headers : undefined)
    return { record, messages }
  }

  /** Reads the list that a request asks for; undefined if it asks for another thing, or nobody needs the names. */
  #listOf(principal: string, { method }: RelayedRequestOptions, record: CallLogEntry): RelayedList | undefined {
    const { log, memory } = this.#options
    if (!log.telemetry?.names || callerOf(method) === undefined) return undefined
    return new RelayedList(record, memory.borrow(principal))
  }

  /**
   * Admits a request, or throws a Fault. Returns the function that releases its place. Endless requests borrow memory
   * for their body.
   */
  #enter(principal: string, passing: RelayedRequestOptions, bytes: number): () => void {
    const { gate, memory } = this.#options
    if (!passing.endless) return gate.enter({ ...passing, principal })
    if (bytes > MAX_SUBSCRIPTION)
      throw new Fault(
        'invalidParams',
        `The request is too large: a request that stays open may have ${MAX_SUBSCRIPTION / 1024} KiB`,
      )
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

  /**
   * Sends a request, and sends it again where the server redirects it. Once more after a failed connection, if the server does
   * nothing twice then: it may have closed one that was kept open for the next request.
   */
  #request(dispatcher: Requestable, options: object, done: Done): void {
    const { principal, signal, method } = this.#sending as Sending
    const { relayed } = this.#options
    const { redirects } = relayed
    const ask = (path: string, times: number, again = false): void =>
      dispatcher.request({ ...options, path, signal }, (error, response) => {
        if (error && !again && !signal.aborted && relayed.mayRepeat(error, method)) return ask(path, times, true)
        if (error || !response) return done(error, response)
        const { statusCode: status, headers, body } = response
        const next = redirects.next(principal, path, { status, headers }, times)
        if (next === undefined) return done(null, response)
        body.dump().catch(() => {})
        ask(next, times + 1, again)
      })
    ask(redirects.pathFor(principal), 0)
  }

  #send(
    { signal, messages, passing: { method } }: RelayedRequest,
    { body, headers, principal }: FastifyRequest,
    reply: FastifyReply,
    { source, hooks }: { source: string; hooks: object },
  ): void {
    const contentType = headers['content-type'] ?? 'application/json'
    const sent = body instanceof Uint8Array ? { ...hooks, body, contentType } : hooks
    messages?.sent()
    this.#sending = { principal, signal, method }
    reply.from(source, sent as Parameters<FastifyReply['from']>[1])
    this.#sending = undefined
  }
}

/** The value of a header; as it is if it is not valid, because the server refuses it. */
function decoded(value: string): string {
  try {
    return decodeValue(value, 'Mcp-Name')
  } catch {
    return value
  }
}
