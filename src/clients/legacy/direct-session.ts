/**
 * The client's side of a direct session: a legacy client's session with a legacy server, whose messages pass with other ids and
 * progress tokens.
 */

import { error as errorMessage, type Notification, type Request, type Response } from '../../base/rpc/message.js'
import { EMPTY, type Json } from '../../base/rpc/splice.js'
import type { PassedStream } from '../../base/rpc/sse.js'
import type { HangUp } from '../../base/time/hang-up.js'
import type { SessionRecorder } from '../../mcp/ports/recorder.js'
import type { Call, Caller, ReceivedOneWay, SentBatch } from '../../mcp/protocol/call.js'
import { type LegacyRevision, NEWEST_MODERN } from '../../mcp/protocol/eras.js'
import { legacyError } from '../../mcp/protocol/legacy-client.js'
import { LEGACY_CLIENT_NOTIFICATIONS } from '../../mcp/protocol/methods.js'
import { withReceived } from '../../mcp/protocol/trace.js'
import type { DirectSession, LegacyRoute } from '../../mcp/protocol/upstream.js'
import { CallLogEntry } from '../call-log.js'
import type { Frame, Send } from '../frames.js'
import { tellSession } from '../logger.js'
import { failureError, lastOf } from '../outcome.js'
import { endWith } from '../token-end.js'
import type { SortedBatch } from './batch.js'
import { TranslatedSession } from './half.js'
import { InFlight } from './in-flight.js'
import { LinkedCall } from './linked-call.js'
import type { AboutRequest, ClientSession, OpenOptions, SessionPlace, SessionRecord } from './session.js'

/** Milliseconds in which a server over HTTP ends a call itself that its client has cancelled, with an answer or without. */
const END_WITHIN = 1_000

type ClientDeclaration = Pick<SessionRecord, 'clientInfo' | 'capabilities' | 'reportsRoots'>

export interface DirectClientSessionOptions extends OpenOptions {
  /** What the client has said in `initialize`; undefined if that cannot be read. */
  opening: ClientDeclaration | undefined
  serverTransport: Exclude<LegacyRoute, 'translate'>['transport']
}

/** A session that the server itself answers. */
export class DirectClientSession implements ClientSession {
  readonly revision: LegacyRevision
  readonly #caller: Caller
  readonly direct: DirectSession
  readonly #options: DirectClientSessionOptions
  readonly #running = new InFlight()
  /** Records the messages outside of calls; undefined without a recorder. */
  readonly #recorder: SessionRecorder | undefined
  /** The server has ended the session. */
  #lost = false
  /** Ends of streams, which wait until what has become of calls is sent. */
  #ends: (() => void)[] = []

  /** Another session has its place: it ends with its requests in flight. */
  #left = false
  #closed = false

  constructor(direct: DirectSession, revision: LegacyRevision, options: DirectClientSessionOptions) {
    this.revision = revision
    this.#caller = callerOf(options.opening)
    this.direct = direct
    this.#options = options
    const { outlet, log, session } = options
    this.#recorder = log.telemetry?.recorder?.session(session)
    this.#report('opened')
    direct.attach({
      isIdle: () => this.open === 0 && outlet.isIdle(),
      message: (text, about) => {
        if ((this.#left && this.open === 0) || (about?.isUnknown && !this.#carriesUnknown)) return
        this.#recorder?.sent(text, about?.call, about?.origin)
        outlet.deliver(text, about)
      },
      ended: () => {
        this.#lost = true
        outlet.ended()
      },
    })
  }

  get record(): SessionRecord | undefined {
    const { opening } = this.#options
    const direct = this.#left || this.#lost ? undefined : this.direct.left
    if (!opening || !direct) return undefined
    const { revision, offered, ready } = direct
    return { ...opening, revision, offered, ready, wrapped: [], uris: [], asked: 0, direct }
  }

  get listen(): DirectSession['listen'] {
    const { listen } = this.direct.keepsIds ? this.direct : {}
    if (!listen) return undefined
    return (stream, opening) => {
      const passing: PassedStream = {
        pass: (message, event) => stream.pass(message, event),
        end: () => this.#onceSent(() => stream.end()),
      }
      return listen.call(this.direct, passing, opening)
    }
  }

  get session(): string | undefined {
    return this.#options.session
  }

  get open(): number {
    return this.#running.size
  }

  async answerClient(request: Request, send: Send, about: AboutRequest = {}): Promise<void> {
    const { id, method } = request
    const { trace, headers, ends, batch, leaves } = about
    const { log, transport, serverTransport, sender, session, upstream } = this.#options
    const fields = {
      clientEra: 'legacy',
      clientRevision: this.revision,
      clientTransport: transport,
      serverEra: 'legacy',
      serverTransport,
      method,
    } as const
    const record = new CallLogEntry(log, fields, { principal: sender.principal, session, trace }, request)
    const controller = this.#running.enterRequest(id, record.recorder?.number)
    const stop = ends && endWith(ends, controller)
    const options = { batch, leaves, recorder: this.#recorder, revision: this.revision }
    const call = new LinkedCall(request, this.#caller, this.direct, record, send, options)
    controller.link = call
    try {
      let last: Frame
      try {
        record.recorder?.began(request, undefined, headers)
        const reply = await upstream.handle(this.#callOf(request, call, controller, record, about))
        const { text, origin, http, event } = call.encoded(reply)
        record.ended(reply, text, origin)
        last = { text, event, last: { status: 200, ...http } }
      } catch (error) {
        const hasLeft = leaves?.aborted && !controller.aborted
        const failure = hasLeft
          ? record.failureOf(error, leaves, 'disconnected')
          : record.failureOf(error, controller, 'session')
        const text = errorMessage(id, legacyError(call.asked, failureError(failure), this.revision))
        record.failed(failure, text)
        last = { text, last: lastOf(failure) }
      }
      const held = send(last)
      if (held) await held
    } finally {
      about.batch?.decided(id)
      // Only now, so that what the server has said since follows its answer.
      call.isSent()
      stop?.()
      this.#running.leaveRequest(id, controller)
      for (const end of this.#ends.splice(0)) this.#onceSent(end)
      if (this.#left && this.open === 0) this.close()
    }
  }

  #callOf(
    request: Request,
    link: LinkedCall,
    controller: HangUp,
    record: CallLogEntry,
    { trace, grant, forwarded, credential: own }: AboutRequest,
  ): Call {
    const { principal, credential, grant: ofSession, patient } = this.#options.sender
    const { id, method } = request
    const { params, meta } = link.asked
    return {
      method,
      params,
      meta: trace && !forwarded ? withReceived(meta, trace) : meta,
      progress: true,
      caller: link.asked.caller,
      principal,
      credential: own ?? credential,
      forwarded,
      grant: grant ?? ofSession,
      patient,
      inBand: true,
      received: { era: 'legacy', id, progressToken: undefined, decoded: link.asked },
      link,
      notify: link.notify,
      signal: controller,
      abort: (reason) => controller.abort(reason),
      log: record,
    }
  }

  batchOf({ requests, message }: SortedBatch, bytes: Uint8Array): SentBatch | undefined {
    const { principal } = this.#options.sender
    return this.direct.batchOf?.({ principal, bytes, message, ids: requests.map(({ id }) => id) })
  }

  take(message: Notification | Response, received?: ReceivedOneWay): Promise<void> | undefined {
    this.#recorder?.received(message, this.#cancelledBy(message))
    if (message.kind === 'response') return this.direct.respond(message, received)
    const { method, params } = message
    const cancels = method === 'notifications/cancelled' && !this.#isOfOther(message)
    const isPassed = cancels ? this.direct.keepsIds : this.#carries(method)
    const passed = isPassed
      ? this.direct.notify(method, typeof params === 'string' ? EMPTY : params, received)
      : undefined
    if (cancels) this.#running.cancel(params, this.direct.keepsIds ? END_WITHIN : 0)
    return passed
  }

  /** Whether a notification goes to the server: one that the bridge does not know may name what is hidden. */
  #carries(method: string): boolean {
    if (LEGACY_CLIENT_NOTIFICATIONS.has(method) || method === 'notifications/tasks/status') return true
    return this.#carriesUnknown
  }

  get #carriesUnknown(): boolean {
    const { upstream, sender } = this.#options
    return upstream.carriesUnknown?.(sender) ?? true
  }

  listened(): void {}

  /** The bridge continues the session: a direct session leads to one server only. */
  moved(to: SessionPlace): ClientSession | undefined {
    const { agreed } = this.direct
    const { opening } = this.#options
    if (!agreed || !opening) return undefined
    const record = { ...opening, revision: this.revision, ...agreed, wrapped: [], asked: 0 }
    const session = TranslatedSession.continue(record, { ...this.#options, ...to })
    this.#left = true
    if (this.open === 0) this.close()
    return session.moved(to)
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#running.abortAll()
    this.direct.close()
    this.#report(this.#lost ? 'lost' : 'ended')
  }

  /** Policies may still be busy with answers and errors that are to be sent before the end. */
  #onceSent(end: () => void): void {
    setImmediate(() => {
      if (this.#running.isSettled()) this.#ends.push(end)
      else end()
    })
  }

  /** Whether a message cancels a request that the client has sent to another replica. */
  #isOfOther({ params }: Notification): boolean {
    return this.direct.keepsIds === true && this.#running.named(params) === undefined
  }

  #report(what: 'opened' | 'ended' | 'lost'): void {
    tellSession(what, this.#options, this.#caller)
  }

  /** The call that a message of the client cancels. */
  #cancelledBy(message: Notification | Response): number | undefined {
    const cancels = message.kind === 'notification' && message.method === 'notifications/cancelled'
    return cancels ? this.#running.named(message.params)?.call : undefined
  }
}

/** The client, by its `initialize`. The server has accepted it, whatever it says. */
export function callerOf(opening: ClientDeclaration | undefined): Caller {
  const { clientInfo, capabilities = '{}' as Json, reportsRoots } = opening ?? {}
  return { revision: NEWEST_MODERN, clientInfo, capabilities, reportsRoots }
}
