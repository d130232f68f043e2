/** A session that is the server's own: messages pass through as they are. */
import type { Tunnel, UpstreamSpan } from '../../protocol/call.js'
import type { LegacyRevision } from '../../protocol/eras.js'
import { Fault } from '../../protocol/fault.js'
import { type TraceContext, withTrace } from '../../protocol/trace.js'
import { error as errorMessage, type Notification, type Request, type Response } from '../../rpc/message.js'
import { EMPTY, edit, write } from '../../rpc/splice.js'
import { CallLogEntry, replyIn, subject, tell } from '../call-log.js'
import type { Frame } from '../frames.js'
import { metaOf } from '../read-message.js'
import { InFlight } from './in-flight.js'
import type { ClientSession, OpenOptions } from './session.js'

export class TunnelSession implements ClientSession {
  readonly revision: LegacyRevision
  readonly #line: Tunnel
  readonly #options: Pick<OpenOptions, 'log' | 'transport' | 'settings'>
  readonly #running = new InFlight()
  /** The server has ended the session. */
  #lost = false

  constructor(
    line: Tunnel,
    revision: LegacyRevision,
    options: Pick<OpenOptions, 'log' | 'transport' | 'outlet' | 'settings'>,
  ) {
    this.revision = revision
    this.#line = line
    this.#options = options
    const { outlet, log } = options
    tell(log, { kind: 'session', side: 'client', what: 'opened' })
    line.attach({
      isIdle: () => this.open === 0 && outlet.isIdle(),
      message: (text) => outlet.deliver(text),
      // Calls that wait have heard of it by then, and what they are told of it still has a session to go out by.
      ended: () => {
        this.#lost = true
        setImmediate(() => outlet.ended())
      },
    })
  }

  get open(): number {
    return this.#running.size
  }

  async *answer(request: Request, trace?: TraceContext): AsyncGenerator<Frame, void> {
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
    const over = this.#options.settings.begin((reason) => controller.abort(reason))
    record.follow(metaOf(request), trace)
    const handOver = record.handedOver()
    try {
      let answered = false
      for await (const { text, answer, dropped } of this.#line.ask(traced(request, handOver), controller.signal)) {
        if (dropped) record.note({ dropped })
        if (answer) {
          answered = true
          const reply = replyIn(answer)
          handOver.over(reply)
          record.ended(reply)
        }
        // Messages that came after this one go out when the reader asks for more.
        yield answer ? { text, last: { status: 200 } } : { text }
      }
      if (!answered) throw new Fault('internalUnknown', 'The call ended without an answer')
    } catch (error) {
      const { aborted, reason } = controller.signal
      const fault = record.faultOf(reason instanceof Fault ? reason : error)
      const cancelled = aborted && reason !== fault
      handOver.over(cancelled ? undefined : fault)
      if (cancelled) record.cancelled()
      else record.failed(fault)
      yield { text: errorMessage(id, fault.toRpcError()), last: { status: 200, fault, cancelled } }
    } finally {
      over()
      this.#running.end(id, controller)
    }
  }

  take(message: Notification | Response): void {
    if (message.kind === 'response') this.#line.respond(message)
    else if (message.method === 'notifications/cancelled') this.#running.cancel(message.params)
    else this.#line.notify(message.method, typeof message.params === 'string' ? undefined : write(message.params))
  }

  listened(): void {}

  close(): void {
    this.#running.abortAll()
    this.#line.close()
    tell(this.#options.log, { kind: 'session', side: 'client', what: this.#lost ? 'lost' : 'ended' })
  }
}

/** The request as it goes on: with another place in a trace, where one is drawn up. */
function traced(request: Request, { trace }: UpstreamSpan): Request {
  if (!trace || request.params === 'not an object') return request
  const params = request.params === 'absent' ? EMPTY : request.params
  return { ...request, params: edit(params, { _meta: write(withTrace(metaOf(request), trace)) }) }
}
