/** A legacy client's session with a legacy server: messages pass through a tunnel unchanged. */
import type { SayTunnelled, Tunnel, UpstreamSpan } from '../../protocol/call.js'
import type { LegacyRevision } from '../../protocol/eras.js'
import { Fault } from '../../protocol/fault.js'
import { type TraceContext, withTrace } from '../../protocol/trace.js'
import { error as errorMessage, type Notification, type Request, type Response } from '../../rpc/message.js'
import { EMPTY, edit, write } from '../../rpc/splice.js'
import { CallLogEntry, replyIn, subject, tell } from '../call-log.js'
import type { Send } from '../frames.js'
import { metaOf } from '../read-message.js'
import { InFlight } from './in-flight.js'
import type { ClientSession, OpenOptions } from './session.js'

/** A session that the server itself answers. */
export class TunnelSession implements ClientSession {
  readonly revision: LegacyRevision
  readonly #tunnel: Tunnel
  readonly #options: Pick<OpenOptions, 'log' | 'transport' | 'settings'>
  readonly #running = new InFlight()
  /** The server has ended the session. */
  #lost = false

  constructor(
    tunnel: Tunnel,
    revision: LegacyRevision,
    options: Pick<OpenOptions, 'log' | 'transport' | 'outlet' | 'settings'>,
  ) {
    this.revision = revision
    this.#tunnel = tunnel
    this.#options = options
    const { outlet, log } = options
    tell(log, { kind: 'session', side: 'client', what: 'opened' })
    tunnel.attach({
      isIdle: () => this.open === 0 && outlet.isIdle(),
      message: (text) => outlet.deliver(text),
      // Deferred, so that the errors of calls in flight are still sent in this session.
      ended: () => {
        this.#lost = true
        setImmediate(() => outlet.ended())
      },
    })
  }

  get open(): number {
    return this.#running.size
  }

  async answer(request: Request, send: Send, trace?: TraceContext): Promise<void> {
    const { id, method, params } = request
    const { log, transport } = this.#options
    const record = new CallLogEntry(log, {
      clientEra: 'legacy',
      clientRevision: this.revision,
      clientTransport: transport,
      serverEra: 'legacy',
      method,
      ...subject(method, typeof params === 'string' ? EMPTY : params),
    })
    const controller = this.#running.begin(id)
    const unregister = this.#options.settings.begin((reason) => controller.abort(reason))
    record.follow(metaOf(request), trace)
    const span = record.handedOver()
    const say: SayTunnelled = ({ text, answer, dropped }) => {
      if (dropped) record.note({ dropped })
      if (!answer) return send({ text })
      const reply = replyIn(answer)
      span.over(reply)
      record.ended(reply)
      return send({ text, last: { status: 200 } })
    }
    try {
      await this.#tunnel.ask(traced(request, span), controller, say)
    } catch (error) {
      const { aborted, reason } = controller
      const fault = record.faultOf(reason instanceof Fault ? reason : error)
      const cancelled = aborted && reason !== fault
      span.over(cancelled ? undefined : fault)
      if (cancelled) record.cancelled()
      else record.failed(fault)
      await send({ text: errorMessage(id, fault.toRpcError()), last: { status: 200, fault, cancelled } })
    } finally {
      unregister()
      this.#running.end(id, controller)
    }
  }

  take(message: Notification | Response): void {
    if (message.kind === 'response') this.#tunnel.respond(message)
    else if (message.method === 'notifications/cancelled') this.#running.cancel(message.params)
    else this.#tunnel.notify(message.method, typeof message.params === 'string' ? undefined : write(message.params))
  }

  listened(): void {}

  close(): void {
    this.#running.abortAll()
    this.#tunnel.close()
    tell(this.#options.log, { kind: 'session', side: 'client', what: this.#lost ? 'lost' : 'ended' })
  }
}

/** The request as sent to the server: with the trace context of the bridge's own span, if there is one. */
function traced(request: Request, { trace }: UpstreamSpan): Request {
  if (!trace || request.params === 'not an object') return request
  const params = request.params === 'absent' ? EMPTY : request.params
  return { ...request, params: edit(params, { _meta: write(withTrace(metaOf(request), trace)) }) }
}
