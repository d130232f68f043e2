/** Serves a client on stdio: one JSON-RPC message per line in and out (MCP, basic/transports, stdio). */

import type { Readable, Writable } from 'node:stream'
import { Fault } from '../../base/fault/fault.js'
import { type Memory, SMALL } from '../../base/limits/memory.js'
import { type Line, LineDecoder } from '../../base/rpc/lines.js'
import { error as errorMessage, type Id, idKey, type Message, type Request } from '../../base/rpc/message.js'
import { Outline } from '../../base/rpc/outline.js'
import { detach, lengthOf } from '../../base/rpc/source.js'
import { within } from '../../base/time/time.js'
import { type Compat, classifyLine, idToAnswer, readMessage } from '../../mcp/protocol/classify.js'
import { methodTraits } from '../../mcp/protocol/methods.js'
import type { Envelope } from '../../mcp/protocol/modern-client.js'
import type { Upstream } from '../../mcp/protocol/upstream.js'
import { answerLost, type Send } from '../frames.js'
import { Conversation } from '../legacy/conversation.js'
import { InFlight } from '../legacy/in-flight.js'
import type { SessionSettings } from '../legacy/session.js'
import { type Logger, tell } from '../logger.js'
import { ModernDownstream } from '../modern/half.js'
import { movingSubscription, PipeChanges } from '../modern/moving-subscription.js'
import { idsIn, requestedBy } from './ids-in-lines.js'
import { PipeOutput } from './output.js'

/** What a client on a pipe is served. */
export interface PipePlace {
  upstream: Upstream
  log: Logger
  /** Options that can change meanwhile. `lineBytes`: most bytes of one line. */
  readonly options: {
    readonly compat: Pick<Compat, 'draftErrorCodes' | 'bareDiscover'>
    readonly limits: { readonly lineBytes: number }
  }
  settings: SessionSettings
}

export interface PipeOptions extends PipePlace {
  input: Readable
  output: Writable
  /** Milliseconds for requests in flight after the input has ended, and after the answer to `initialize`. */
  readonly patience: number
  memory: Memory
  /** Who the client is; by default the user who started the process. */
  principal?: string | undefined
  /** Called once with a function that makes the pipe serve something else. Requests in flight end where they are. */
  moves?: ((move: (to: PipePlace) => void) => void) | undefined
}

/** The only client is the one that started the process, unless there are others in memory. */
const LOCAL = 'local'

/**
 * Serves a client until the input ends or the client closes the output. After the end of the input, `initialize` is still
 * answered; then requests in flight have `patience` milliseconds before they are aborted. Resolves when all have ended.
 */
export async function servePipe(options: PipeOptions): Promise<void> {
  const pipe = new Pipe(options)
  options.moves?.((to) => pipe.move(to))
  await pipe.serve(options.input)
}

class Pipe {
  readonly #options: PipeOptions
  readonly #principal: string
  readonly #output: PipeOutput
  readonly #modern: ModernDownstream
  /** The session of a legacy client. */
  #conversation: Conversation | undefined
  #place: PipePlace
  /** The calls of modern clients go here. */
  readonly #served: Upstream
  #disconnected: (() => void) | undefined
  /** What subscriptions of modern clients follow. */
  readonly #changes = new PipeChanges()
  readonly #running = new InFlight()
  /** Ids of the session's requests in flight. No modern request may have the same id at the same time. */
  readonly #inSession = new Set<string>()
  readonly #answers = new Set<Promise<void>>()
  /** The client has ended its input, so it cannot repeat a request. */
  #hasEnded = false
  #isClosed = false
  readonly #patient = () => this.#hasEnded

  constructor(options: PipeOptions) {
    const { upstream, memory, principal = LOCAL } = options
    this.#options = options
    this.#principal = principal
    this.#place = options
    this.#output = new PipeOutput(options.output, memory, principal)
    const served = { ...upstream }
    this.#served = served
    const placeNow = () => this.#place
    this.#modern = new ModernDownstream({
      upstream: served,
      subscribe: (call) => movingSubscription(call, this.#changes, (listen) => served.handle(listen)),
      memory,
      get compat() {
        return placeNow().options.compat
      },
    })
    this.#disconnected = upstream.connected?.(principal)
    options.output.on('error', (error) => this.#closed(error))
  }

  /** Serves something else from now on. Requests in flight end where they are. */
  move(to: PipePlace): void {
    const before = this.#disconnected
    this.#disconnected = to.upstream.connected?.(this.#principal)
    this.#place = to
    Object.assign(this.#served, to.upstream)
    this.#conversation?.move(to)
    this.#changes.tell('moved')
    before?.()
  }

  async serve(input: Readable): Promise<void> {
    await this.#read(input)
    this.#hasEnded = true
    this.#changes.tell('over')
    if (!this.#isClosed) {
      // A script that sends all its messages at once ends the input before the server has started.
      await this.#conversation?.opened
      await within(Promise.all(this.#answers), this.#options.patience)
    }
    this.#disconnected?.()
    this.#running.abortAll()
    this.#conversation?.close()
    await Promise.all(this.#answers)
    this.#output.end()
  }

  async #read(input: Readable): Promise<void> {
    const decoder = new LineDecoder(this.#place.options.limits.lineBytes)
    try {
      for await (const chunk of input) {
        decoder.limit = this.#place.options.limits.lineBytes
        for (const line of decoder.push(chunk as Uint8Array)) {
          const room = this.#conversation?.room
          if (room) await room
          const refusing = this.#takeLine(line)
          if (refusing) await refusing
        }
      }
      for (const line of decoder.end()) await this.#takeLine(line)
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error)
      if (!this.#isClosed)
        this.#place.log.warn({ event: 'stdin_failed', why }, 'reading from stdin failed; shutting down')
    }
  }

  #closed(error: Error): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#place.log.warn({ event: 'stdout_closed', why: error.message }, 'client closed stdout; shutting down')
    this.#options.input.destroy()
  }

  #answerModern(request: Request, envelope: Envelope | undefined): Promise<void> {
    const controller = this.#running.enterRequest(request.id)
    const arrived = {
      principal: this.#principal,
      patient: this.#patient,
      abort: controller,
      log: this.#place.log,
      transport: 'stdio' as const,
      running: controller,
    }
    const id = methodTraits(request.method).endless ? detach(request.id) : request.id
    const send: Send = ({ text, last }) => {
      // A cancelled request gets no answer. A request that the bridge aborted with a Fault gets its error.
      if (controller.aborted && !(controller.reason instanceof Fault)) return undefined
      return this.#output.write(text, last && (() => answerLost(id)))
    }
    const answering = this.#modern.answerRequest(request, envelope, arrived, send)
    return this.#inBackground(answering, () => this.#running.leaveRequest(id, controller))
  }

  #converse(): Conversation {
    const { upstream, log, settings } = this.#place
    this.#conversation ??= new Conversation({
      upstream,
      sender: { principal: this.#principal, patient: this.#patient },
      transport: 'stdio',
      log,
      memory: this.#options.memory,
      settings,
      write: (message, instead) => this.#output.write(message, instead),
    })
    return this.#conversation
  }

  /** Answers a message in the session, or handles it again after the session has opened. Never rejects. */
  async #takeInSession(message: Exclude<Message, { kind: 'invalid' }>): Promise<void> {
    let ids: readonly string[] = []
    try {
      const conversation = this.#converse()
      const turn = conversation.turn(message)
      if (turn) {
        await turn
        return await this.#take(message)
      }
      ids = idsIn(message)
      for (const id of ids) this.#inSession.add(id)
      await conversation.take(message)
    } catch (error) {
      await this.#refuseMessage(Fault.from(error, true), message)
    } finally {
      for (const id of ids) this.#inSession.delete(id)
    }
  }

  /**
   * Handles a message. The promise resolves when it has been answered; undefined if it needs no answer or is endless.
   */
  #take(message: Message): Promise<void> | undefined {
    const verdict = classifyLine(message, this.#conversation?.state ?? 'none', this.#place.options.compat)
    if (message.kind === 'invalid') return undefined
    if (message.kind === 'request' && (this.#running.hasRequest(message.id) || this.#inSession.has(idKey(message.id))))
      throw new Fault('invalidRequest', 'Duplicate id: a request with this id is still in progress')
    const cancels = message.kind === 'notification' && message.method === 'notifications/cancelled'
    // The id alone determines the request, because both eras share the ids, and a notification needs no envelope.
    const named = cancels ? this.#running.named(message.params) : undefined
    if (cancels && named) {
      this.#place.log.telemetry?.recorder?.received(message, { call: named.call })
      this.#running.cancel(message.params)
      return undefined
    }
    if (verdict.era === 'legacy') return this.#inBackground(this.#takeInSession(message))
    // An endless call keeps a copy of what it needs, so its line can be dropped.
    if (message.kind === 'request') {
      const answering = this.#answerModern(message, 'bare' in verdict ? undefined : verdict.envelope)
      return methodTraits(message.method).endless ? undefined : answering
    }
    if (message.kind === 'notification')
      this.#modern.notify(message, { principal: this.#principal, log: this.#place.log })?.catch(() => {})
    return undefined
  }

  #inBackground(answering: Promise<void>, ended = () => {}): Promise<void> {
    const over = () => {
      ended()
      this.#answers.delete(settled)
    }
    const settled = answering.then(over, (error: unknown) => {
      this.#place.log.error({ event: 'answer_failed', err: error }, 'answering a request failed')
      over()
    })
    this.#answers.add(settled)
    return settled
  }

  /** Refuses a line. By default, a line without a valid id gets no answer, because no request could be matched with it. */
  async #refuse(error: unknown, id: Id | undefined, answers = id !== undefined): Promise<void> {
    const fault = Fault.from(error)
    tell(this.#place.log, { kind: 'refusal', reason: fault.fault, status: fault.status, said: fault.message })
    if (fault.row.reason === 'internal_error')
      this.#place.log.error({ event: 'message_failed', err: fault.cause }, 'handling a message failed')
    else this.#place.log.warn({ event: 'message_refused', why: fault.message }, 'message refused')
    if (answers)
      await this.#output.write(errorMessage(id, fault.toRpcError(this.#place.options.compat.draftErrorCodes)))
  }

  /** Refuses a message. A refused batch gets an error without an id, because its sender waits for an answer. */
  #refuseMessage(error: unknown, message: Message | undefined): Promise<void> {
    const id = message && idToAnswer(message)
    return this.#refuse(error, id, id !== undefined || message?.kind === 'batch')
  }

  /** Takes a line. The promise resolves when its refusal is written; undefined if it is not refused. */
  #takeLine(line: Line): Promise<void> | undefined {
    if (line instanceof Outline)
      return this.#refuse(
        new Fault('bodyTooLarge', `The line is over ${this.#place.options.limits.lineBytes} bytes (limits.lineBytes)`),
        requestedBy(line),
      )
    // A message is in memory twice: as received, and as sent to the server.
    const size = 2 * lengthOf(line)
    const reservation = size > SMALL ? this.#options.memory.reserve(this.#principal) : undefined
    let message: Message | undefined
    let answering: Promise<void> | undefined
    let refusing: Promise<void> | undefined
    try {
      message = readMessage(line)
      reservation?.mustResize(size)
      answering = this.#take(message)
    } catch (error) {
      refusing = this.#refuseMessage(error, message)
    }
    const ending = answering ?? refusing
    if (ending && reservation) ending.finally(() => reservation.end()).catch(() => {})
    else reservation?.end()
    return refusing
  }
}
