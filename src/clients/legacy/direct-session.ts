/**
 * The client's side of a direct session: a legacy client's session with a legacy server, whose messages pass with other ids and
 * progress tokens.
 */

import { randomId } from '../../base/crypto/seal.js'
import { error as errorMessage, type Notification, type Request, type Response } from '../../base/rpc/message.js'
import { EMPTY, type Payload } from '../../base/rpc/splice.js'
import type { PassedStream } from '../../base/rpc/sse.js'
import { HangUp, type Signal } from '../../base/time/hang-up.js'
import type { SessionRecorder } from '../../mcp/ports/recorder.js'
import type { Answers, Call, Caller, Final, ReceivedOneWay, SentBatch } from '../../mcp/protocol/call.js'
import type { LegacyRevision } from '../../mcp/protocol/eras.js'
import { legacyError } from '../../mcp/protocol/legacy-client.js'
import { isOfLegacySession } from '../../mcp/protocol/methods.js'
import { withReceived } from '../../mcp/protocol/trace.js'
import type { DirectSession, LegacyRoute } from '../../mcp/protocol/upstream.js'
import { CallLogEntry } from '../call-log.js'
import type { Frame, Send } from '../frames.js'
import { tell, tellSession } from '../logger.js'
import { failureError, lastOf } from '../outcome.js'
import type { SortedBatch } from './batch.js'
import { callerOf, downlevelFor, TranslatedSession } from './half.js'
import { InFlight } from './in-flight.js'
import { LinkedCall } from './linked-call.js'
import { type ClientAsking, Questions } from './questions.js'
import type { AboutRequest, ClientSession, OpenOptions, SessionPlace, SessionRecord } from './session.js'
import { continueCall } from './translated-call.js'

/** Milliseconds in which a server over HTTP ends a call itself that its client has cancelled, with an answer or without. */
const END_WITHIN = 1_000
/** With what the ids of the bridge's own questions begin. */
const PREFIX = 'mcp-bridge-asks-'

export interface DirectClientSessionOptions extends OpenOptions {
  /** What the client has said in `initialize`; undefined if that cannot be read. */
  opening: Pick<SessionRecord, 'clientInfo' | 'capabilities' | 'reportsRoots'> | undefined
  serverTransport: Exclude<LegacyRoute, 'translate'>['transport']
}

/** A session that the server itself answers. */
export class DirectClientSession implements ClientSession {
  readonly revision: LegacyRevision
  readonly #caller: Caller
  readonly direct: DirectSession
  readonly #options: DirectClientSessionOptions
  readonly #running = new InFlight()
  /** Asks the client what policies have to know; undefined before the first question. */
  #questions: Questions | undefined
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
    tellSession('opened', this.#options, this.#caller)
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
    const stop = ends && controller.follow(ends)
    const { direct, revision } = this
    const parts = { caller: this.#caller, recorder: this.#recorder, direct, revision, batch, leaves }
    const call = new LinkedCall({ ...parts, request, record, send })
    controller.link = call
    try {
      let last: Frame
      try {
        record.recorder?.began(request, undefined, headers)
        const asked = this.#callOf(request, call, controller, record, about)
        const first = await upstream.handle(asked)
        const asks = first.kind === 'input' && !first.received
        const reply = asks ? await this.#continueCall(asked, first, record, send, about) : first
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
      received: { era: 'legacy', id },
      link,
      notify: link.notify,
      signal: controller,
      abort: (reason) => controller.abort(reason),
      log: record,
    }
  }

  /** Asks the client for a policy, and makes the call again with its answers. */
  #continueCall(
    call: Call,
    first: Final,
    record: CallLogEntry,
    send: Send,
    { batch, leaves }: AboutRequest,
  ): Promise<Final> {
    if (call.received) batch?.decided(call.received.id)
    this.#questions ??= this.#newQuestions()
    const questions = this.#questions
    const ask = async (input: Payload, signal: Signal, asking: ClientAsking): Promise<Answers> => {
      const over = new HangUp(signal)
      const unfollow = leaves && over.follow(leaves)
      try {
        return await questions.ask(input, over, asking)
      } finally {
        unfollow?.()
        over.abort()
      }
    }
    return continueCall(call, first, {
      ...this.#options,
      questions: { ask },
      send: (text) => send({ text }),
      caller: () => this.#caller,
      record,
    })
  }

  #newQuestions(): Questions {
    const { log, settings } = this.#options
    return new Questions({
      capabilities: this.#caller.capabilities,
      to: downlevelFor(this.revision, this.#options),
      prefix: `${PREFIX}${randomId()}-`,
      within: settings.answerWithin,
      report: (what, call) => tell(log, { kind: 'question', what, call }),
    })
  }

  /** Not if it answers a question of the replica that had the session before. */
  isFor(message: Notification | Response): boolean {
    if (message.kind !== 'response' || !message.id?.startsWith(`"${PREFIX}`)) return true
    return this.#questions?.isOwn(message) === true
  }

  batchOf({ requests, message }: SortedBatch, bytes: Uint8Array): SentBatch | undefined {
    const { principal } = this.#options.sender
    return this.direct.batchOf?.({ principal, bytes, message, ids: requests.map(({ id }) => id) })
  }

  take(message: Notification | Response, received?: ReceivedOneWay): Promise<void> | undefined {
    const { direct } = this
    if (message.kind === 'response' && this.#questions?.isOwn(message)) {
      this.#questions.answer(message)
      return undefined
    }
    const isCancellation = message.kind === 'notification' && message.method === 'notifications/cancelled'
    const cancelled = isCancellation ? this.#running.named(message.params) : undefined
    this.#recorder?.received(message, cancelled?.call)
    if (message.kind === 'response') return direct.respond(message, received)
    const { method, params } = message
    // Over HTTP, it may name a request that the client has sent to another replica.
    const cancels = isCancellation && !(direct.keepsIds && cancelled === undefined)
    const isPassed = cancels ? direct.keepsIds : isOfLegacySession(method) || this.#carriesUnknown
    const passed = isPassed ? direct.notify(method, typeof params === 'string' ? EMPTY : params, received) : undefined
    if (cancels) this.#running.cancel(params, direct.keepsIds ? END_WITHIN : 0)
    return passed
  }

  /** Whether a message goes on that the bridge does not know: it may name what is hidden. */
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
    tellSession(this.#lost ? 'lost' : 'ended', this.#options, this.#caller)
  }

  /** Policies may still be busy with answers and errors that are to be sent before the end. */
  #onceSent(end: () => void): void {
    setImmediate(() => {
      if (this.#running.isSettled()) this.#ends.push(end)
      else end()
    })
  }
}
