/** A session that is the server's own: messages pass through as they are. */
import type { Line } from '../protocol/call.js'
import type { LegacyRevision } from '../protocol/eras.js'
import { Fault } from '../protocol/fault.js'
import { error as errorMessage, type Notification, type Request, type Response } from '../rpc/message.js'
import type { Wire } from '../rpc/source.js'
import { EMPTY, write } from '../rpc/splice.js'
import type { Frame } from './frames.js'
import { CallRecord, subject } from './record.js'
import { Running } from './running.js'
import type { ClientSession, OpenOptions } from './session.js'

export class DirectSession implements ClientSession {
  readonly revision: LegacyRevision
  readonly #line: Line
  readonly #options: Pick<OpenOptions, 'log' | 'transport'>
  readonly #running = new Running()

  constructor(line: Line, revision: LegacyRevision, options: Pick<OpenOptions, 'log' | 'transport' | 'outlet'>) {
    this.revision = revision
    this.#line = line
    this.#options = options
    const { outlet } = options
    line.attach({
      isIdle: () => this.open === 0 && outlet.isIdle(),
      message: (text) => outlet.deliver(text),
      // Calls that wait have heard of it by then, and what they are told of it still has a session to go out by.
      ended: () => setImmediate(() => outlet.ended()),
    })
  }

  get open(): number {
    return this.#running.size
  }

  async *answer(request: Request): AsyncGenerator<Frame, void> {
    const { id, method, params } = request
    const { log, transport } = this.#options
    const record = new CallRecord(log, {
      clientEra: 'legacy',
      clientRevision: this.revision,
      clientTransport: transport,
      serverEra: 'legacy',
      method,
      ...subject(method, typeof params === 'string' ? EMPTY : params),
    })
    const controller = this.#running.begin(id)
    try {
      let answer: Wire | undefined
      for await (const { text, last } of this.#line.ask(request, controller.signal)) {
        if (last) answer = text
        else yield { text }
      }
      if (answer === undefined) throw new Fault('internal', 'The call ended without an answer')
      record.answered('ok')
      yield { text: answer, last: { status: 200 } }
    } catch (error) {
      const cancelled = controller.signal.aborted
      const fault = Fault.from(error)
      if (cancelled) record.cancelled()
      else record.failed(fault)
      yield { text: errorMessage(id, fault.toRpcError()), last: { status: 200, fault, cancelled } }
    } finally {
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
  }
}
