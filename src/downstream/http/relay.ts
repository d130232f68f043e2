/**
 * The relay: passes HTTP messages unchanged between a legacy client and a legacy server. The server validates the messages;
 * the bridge checks the owner of a session, filters headers and writes the log.
 */

import type { FastifyRequest } from 'fastify'
import { Fault } from '../../fault/fault.js'
import { MAX_SUBSCRIPTION } from '../../limits/constants.js'
import type { Memory } from '../../limits/memory.js'
import { OpenSet } from '../../limits/open-set.js'
import type { RelayedRecorder, RelayRecorder } from '../../ports/recorder.js'
import { type Account, NAMELESS, type Requester } from '../../protocol/account.js'
import { legacyRevision } from '../../protocol/eras.js'
import { callerOf } from '../../protocol/listed.js'
import { concernsTasks } from '../../protocol/owned-tasks.js'
import type { Relayed, Revise } from '../../protocol/upstream.js'
import type { Message } from '../../rpc/message.js'
import { headerOf } from '../../texts/headers.js'
import { CallLogEntry } from '../call-log.js'
import { readBatch } from '../legacy/batch.js'
import { type Logger, tell } from '../logger.js'
import { traceHeaders } from './headers.js'
import { RelayedList } from './relayed-list.js'
import { RelayedRequest, type Relaying } from './relayed-request.js'
import type { Passing } from './relayed-sending.js'
import { type RelayedBounds, RelayedSessions, type RelayedSessionsOptions } from './relayed-sessions.js'
import { whenOver } from './replies.js'

export type { Passing } from './relayed-sending.js'

/** Options of the relay of one server. */
export interface RelayOptions {
  relayed: Relayed
  /** The account of a requester, if the bridge signs in to the server. */
  accountOf?: ((requester: Requester) => Account | undefined) | undefined
  log: Logger
  /** Admits a request, or throws a Fault. Returns the function that releases its place. */
  gate: { enter(entering: { principal: string; endless: boolean; goesOn?: boolean | undefined }): () => void }
  sessions: Omit<RelayedSessionsOptions, 'report' | 'cookies'>
  memory: Memory
  /** Milliseconds between keep-alive comments on a stream. */
  keepAlive: number
}

/** The part of the relay that an endpoint uses. */
export type RelayAt = Pick<Relay, 'takesSession' | 'asked' | 'revising' | 'endOurs' | 'pass'>

/** The relay of one server. */
export class Relay {
  readonly #options: RelayOptions
  /** Requests whose answers are not complete. See `OpenSet` for why this is no Set. */
  readonly #open = new OpenSet<RelayedRequest>()
  #isDraining = false
  /** Records relayed messages; undefined without a recorder. */
  readonly #recorder: RelayRecorder | undefined
  /** The owners of relayed sessions. */
  readonly sessions: RelayedSessions

  constructor(options: RelayOptions) {
    this.#options = { ...options }
    this.#recorder = options.log.telemetry?.recorder?.relay()
    this.sessions = new RelayedSessions({
      ...options.sessions,
      cookies: () => options.relayed.cookies(),
      report: (what, session, principal) =>
        tell(options.log, { kind: 'session', side: 'client', what, session, principal }),
    })
  }

  /** Applies other bounds and times. Sessions and requests go on. */
  change({ keepAlive, ...bounds }: RelayedBounds & Pick<RelayOptions, 'keepAlive'>): void {
    this.#options.keepAlive = keepAlive
    this.sessions.change(bounds)
  }

  /** Whether the messages of a session are relayed. Throws a Fault if the session belongs to another principal. */
  async takesSession(id: string, principal: string): Promise<boolean> {
    // Without authentication, anybody who knows the id of a session may use it, as at the server itself.
    const open = NAMELESS.includes(principal)
    if (await this.sessions.isOf(principal, id, open)) return true
    return open && this.#options.relayed.speaks() === 'legacy'
  }

  /** Looks at a legacy message. Rejects with a Fault if it names a task of another principal. */
  async asked(message: Message, principal: string): Promise<void> {
    const { tasks } = this.#options.relayed
    if (!tasks.tellsApart(principal)) return
    if (message.kind === 'batch' && readBatch(message).requests.some(concernsTasks))
      throw new Fault('invalidRequest', 'A batch cannot have requests about tasks: no revision has both')
    if (message.kind === 'request' && typeof message.params !== 'string' && concernsTasks(message))
      await tasks.asked(principal, message.method, message.params)
  }

  /** Revises what answers a legacy message; without one, the answers on a stream of its own. Undefined if nothing has to be. */
  revising(principal: string, message?: Message): Revise | undefined {
    const { relayed } = this.#options
    if (message) return message.kind === 'request' ? relayed.revising(principal, message) : undefined
    return relayed.revising(principal)
  }

  /** The relay for an endpoint that now belongs to another mount: only sessions that this relay knows continue. */
  get forSessions(): RelayAt {
    return {
      // An unknown session may be an ended one of the endpoint itself.
      takesSession: (id, principal) => this.sessions.isOf(principal, id, true),
      asked: (message, principal) => this.asked(message, principal),
      revising: (principal, message) => this.revising(principal, message),
      endOurs: (id) => this.endOurs(id),
      pass: (relaying) => this.pass(relaying),
    }
  }

  /** Passes a request to the server, and the answer back. Throws a Fault if there is no room for it. */
  pass(relaying: Relaying): void {
    this.#begin(relaying).send()
  }

  /** Ends endless streams: that of a session after its requests in flight, because these may wait for a question on it. */
  drain(): void {
    this.#isDraining = true
    const open = [...this.#open]
    const busy = new Set(open.map(({ passing, inSession }) => (passing.endless ? undefined : inSession)))
    for (const one of open) if (one.inSession === undefined || !busy.has(one.inSession)) one.drain()
  }

  /** Ends all unanswered requests, with an error if one can still be sent. */
  cut(): void {
    const message =
      'The bridge was shut down, or does not serve this server any more; whether the server acted on the call is unknown'
    for (const one of [...this.#open]) one.cut(new Fault('interrupted', message))
  }

  /** Ends a session whose id the bridge created. Returns false if it is another session. */
  endOurs(id: string): boolean {
    if (!this.sessions.isOurs(id)) return false
    this.sessions.forget(id)
    return true
  }

  #begin(relaying: Relaying): RelayedRequest {
    const { request, reply, passing } = relaying
    const { principal, body } = request
    const { record, messages } = this.#record(request, passing)
    const list = this.#listOf(principal, passing, record)
    let leave = () => {}
    try {
      leave = this.#enter(principal, passing, body instanceof Uint8Array ? body.length : 0)
    } catch (error) {
      list?.close()
      record.failed({ fault: Fault.from(error) })
      throw error
    }
    const { relayed, accountOf, keepAlive, memory } = this.#options
    const parts = {
      ...relaying,
      record,
      messages,
      list,
      relayed,
      keepAlive,
      reserve: () => memory.reserve(principal),
      sessions: this.sessions,
      account: accountOf?.(request),
    }
    const relayedRequest = new RelayedRequest(parts, () => {
      leave()
      this.#open.delete(place)
      if (this.#isDraining) this.drain()
    })
    const place = this.#open.add(relayedRequest)
    whenOver(reply, () => relayedRequest.over())
    return relayedRequest
  }

  /** Begins the log of a request. `messages` records the relayed messages; undefined if they are not recorded. */
  #record(
    request: FastifyRequest,
    { method, name, opens, answers }: Passing,
  ): { record: CallLogEntry; messages: RelayedRecorder | undefined } {
    const { log } = this.#options
    const { principal, body, headers } = request
    const recorder = this.#recorder
    const revision = legacyRevision(headerOf(headers, 'mcp-protocol-version'))
    const session = recorder && headerOf(headers, 'mcp-session-id')
    const partOf = recorder?.answered(session, answers)
    const fields = {
      clientEra: 'legacy',
      serverEra: 'legacy',
      clientTransport: 'http',
      relayed: true,
      method,
      ...(revision && { clientRevision: revision }),
      ...(name !== undefined && { name }),
    } as const
    const record = new CallLogEntry(log, fields, { principal, session, partOf, trace: traceHeaders(request) })
    const messages = recorder?.begin(record.recorder, {
      body: body instanceof Uint8Array ? body : undefined,
      headers,
      session,
      partOf,
      opens,
      reserve: method === 'tools/list' ? () => this.#options.memory.reserve(principal) : undefined,
    })
    return { record, messages }
  }

  /** A reader for the list that a request asks for; undefined for other requests, or if the names are not needed. */
  #listOf(principal: string, { method }: Passing, record: CallLogEntry): RelayedList | undefined {
    const { log, memory } = this.#options
    if (!log.telemetry?.names || callerOf(method) === undefined) return undefined
    return new RelayedList(record, memory.reserve(principal))
  }

  /**
   * Admits a request, or throws a Fault. Returns the function that releases its place. Endless requests reserve memory
   * for their body.
   */
  #enter(principal: string, passing: Passing, bytes: number): () => void {
    const { gate, memory } = this.#options
    if (!passing.endless) return gate.enter({ ...passing, principal })
    if (bytes > MAX_SUBSCRIPTION)
      throw new Fault(
        'invalidParams',
        `The request is too large: a request that stays open may have ${MAX_SUBSCRIPTION / 1024} KiB`,
      )
    const reservation = memory.mustReserve(principal, bytes)
    try {
      const leave = gate.enter({ ...passing, principal })
      return () => {
        leave()
        reservation.end()
      }
    } catch (error) {
      reservation.end()
      throw error
    }
  }
}
