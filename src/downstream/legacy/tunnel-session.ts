/**
 * The client's side of a tunnel: a legacy client's session with a legacy server, whose messages pass with other ids and
 * progress tokens.
 */

import type { SessionRecorder } from '../../ports/recorder.js'
import type { UpstreamSpan } from '../../protocol/call.js'
import { metaOf } from '../../protocol/classify.js'
import type { LegacyRevision } from '../../protocol/eras.js'
import { decodeInitialize } from '../../protocol/legacy-client.js'
import { type ReceivedTrace, withReceived, withTrace } from '../../protocol/trace.js'
import type { LegacyRoute, SayTunnelled, Tunnel } from '../../protocol/upstream.js'
import { error as errorMessage, type Notification, type Request, type Response } from '../../rpc/message.js'
import { EMPTY, edit } from '../../rpc/splice.js'
import { CallLogEntry } from '../call-log.js'
import type { Send } from '../frames.js'
import { tell } from '../logger.js'
import { failureError, replyIn } from '../outcome.js'
import { endWith } from '../token-end.js'
import { InFlight } from './in-flight.js'
import type { AboutRequest, ClientSession, OpenOptions, SessionPlace } from './session.js'
import { TranslatedSession } from './translated-session.js'

interface TunnelSessionOptions extends OpenOptions {
  /** The `initialize` of the client. */
  opening: Request
  serverTransport: Exclude<LegacyRoute, 'translate'>['transport']
}

/** A session that the server itself answers. */
export class TunnelSession implements ClientSession {
  readonly revision: LegacyRevision
  readonly #tunnel: Tunnel
  readonly #options: TunnelSessionOptions
  readonly #running = new InFlight()
  /** Records the messages outside of calls; undefined without a recorder. */
  readonly #recorder: SessionRecorder | undefined
  /** The server has ended the session. */
  #lost = false

  /** Another session has its place: it ends with its requests in flight. */
  #left = false
  #closed = false

  constructor(tunnel: Tunnel, revision: LegacyRevision, options: TunnelSessionOptions) {
    this.revision = revision
    this.#tunnel = tunnel
    this.#options = options
    const { outlet, log, session } = options
    this.#recorder = log.telemetry?.recorder?.session(session)
    this.#report('opened')
    tunnel.attach({
      isIdle: () => this.open === 0 && outlet.isIdle(),
      message: (text, about) => {
        if (this.#left && this.open === 0) return
        this.#recorder?.sent(text, about?.call, about?.origin)
        outlet.deliver(text, about)
      },
      // Deferred, so that the errors of calls in flight are still sent in this session.
      ended: () => {
        this.#lost = true
        setImmediate(() => outlet.ended())
      },
    })
  }

  get session(): string | undefined {
    return this.#options.session
  }

  get open(): number {
    return this.#running.size
  }

  async answerClient(request: Request, send: Send, { trace, headers, ends }: AboutRequest = {}): Promise<void> {
    const { id, method } = request
    const { log, transport, serverTransport, sender, session } = this.#options
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
    const unregister = this.#options.settings.begin((reason) => controller.abort(reason))
    record.recorder?.began(request, undefined, headers)
    const span = record.handedOver()
    const say: SayTunnelled = ({ text, origin, answer, dropped }) => {
      if (dropped) record.note({ dropped })
      if (!answer) {
        record.recorder?.sent(text, origin)
        return send({ text })
      }
      const reply = replyIn(answer)
      record.listed(reply)
      span.over(reply)
      record.ended(reply, text, origin)
      return send({ text, last: { status: 200 } })
    }
    try {
      await this.#tunnel.ask(traced(request, span, trace), controller, say, record.recorder?.number)
    } catch (error) {
      const failure = record.failureOf(error, controller, 'session')
      span.over(failure.cancelled ? undefined : failure.fault)
      const text = errorMessage(id, failureError(failure))
      record.failed(failure, text)
      await send({ text, last: { status: 200, ...failure } })
    } finally {
      unregister()
      stop?.()
      this.#running.leaveRequest(id, controller)
      if (this.#left && this.open === 0) this.close()
    }
  }

  take(message: Notification | Response): void {
    this.#recorder?.received(message, this.#cancelledBy(message))
    if (message.kind === 'response') this.#tunnel.respond(message)
    else if (message.method === 'notifications/cancelled') this.#running.cancel(message.params)
    else this.#tunnel.notify(message.method, typeof message.params === 'string' ? EMPTY : message.params)
  }

  listened(): void {}

  /** The bridge continues the session: a tunnel leads to one server only. */
  moved(to: SessionPlace): ClientSession | undefined {
    const { agreed } = this.#tunnel
    if (!agreed) return undefined
    const opening = { ...decodeInitialize(this.#options.opening), revision: this.revision }
    const record = { ...opening, ...agreed, wrapped: [], asked: 0 }
    const session = TranslatedSession.continue(record, { ...this.#options, ...to })
    this.#left = true
    if (this.open === 0) this.close()
    return session.moved(to)
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#running.abortAll()
    this.#tunnel.close()
    this.#report(this.#lost ? 'lost' : 'ended')
  }

  #report(what: 'opened' | 'ended' | 'lost'): void {
    const { log, sender, session } = this.#options
    tell(log, { kind: 'session', side: 'client', what, session, principal: sender.principal })
  }

  /** The call that a message of the client cancels. */
  #cancelledBy(message: Notification | Response): number | undefined {
    const cancels = message.kind === 'notification' && message.method === 'notifications/cancelled'
    return cancels ? this.#running.named(message.params)?.call : undefined
  }
}

/** The request as sent to the server: with the trace context of the bridge's own span, or else of the client's headers. */
function traced(request: Request, { trace }: UpstreamSpan, received: ReceivedTrace | undefined): Request {
  if (!(trace || received) || request.params === 'not an object') return request
  const params = request.params === 'absent' ? EMPTY : request.params
  const meta = received ? withReceived(metaOf(request), received) : metaOf(request)
  return { ...request, params: edit(params, { _meta: trace ? withTrace(meta, trace) : meta }) }
}
