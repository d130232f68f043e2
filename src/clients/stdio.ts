/** Serves a client on stdio: one JSON-RPC message per line in and out (MCP, basic/transports, stdio). */

import type { Readable, Writable } from 'node:stream'
import { Fault } from '../base/fault/fault.js'
import { type Memory, SMALL } from '../base/limits/memory.js'
import { headIn } from '../base/rpc/head.js'
import { encodeLine, type Line, LineDecoder } from '../base/rpc/lines.js'
import {
  error as errorMessage,
  type Id,
  idKey,
  type Message,
  parseMessage,
  type Request,
  readId,
} from '../base/rpc/message.js'
import { Outline } from '../base/rpc/outline.js'
import { cut, detach, lengthOf, sourceOf, type Wire } from '../base/rpc/source.js'
import { within } from '../base/time/time.js'
import { type Compat, classifyLine, idToAnswer, readMessage } from '../mcp/protocol/classify.js'
import { methodTraits } from '../mcp/protocol/methods.js'
import type { Envelope } from '../mcp/protocol/modern-client.js'
import type { Upstream } from '../mcp/protocol/upstream.js'
import { answerLost, type Send } from './frames.js'
import { Conversation } from './legacy/conversation.js'
import { InFlight } from './legacy/in-flight.js'
import type { SessionSettings } from './legacy/session.js'
import { type Logger, tell } from './logger.js'
import { ModernDownstream } from './modern.js'
import { movingSubscription } from './moving-subscription.js'

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

/** Options of serving a pipe. */
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
  const { input, output, memory, principal = LOCAL } = options
  let place: PipePlace = options
  /** What subscriptions of modern clients follow. */
  const followers = new Set<(what: 'moved' | 'over') => void>()
  /** The calls of modern clients go here. */
  const served = { ...place.upstream }
  const modern = new ModernDownstream({
    upstream: served,
    subscribe: (call) => movingSubscription(call, { follow, handle: (listen) => served.handle(listen) }),
    memory,
    get compat() {
      return place.options.compat
    },
  })
  let disconnected = place.upstream.connected?.(principal)
  const running = new InFlight()
  /** Ids of the session's requests in flight. No modern request may have the same id at the same time. */
  const inSession = new Set<string>()
  const answers = new Set<Promise<void>>()
  const decoder = new LineDecoder(place.options.limits.lineBytes)

  /** For messages that wait to be written. */
  const outgoing = memory.reserve(principal, SMALL)

  /** Writes a message, or `instead` if there is no memory for it. Without `instead` the message is dropped. */
  const write = (message: Wire, instead?: () => Wire): Promise<void> | undefined => {
    if (outgoing.resize(output.writableLength + lengthOf(message))) return instead && write(instead())
    const line = encodeLine(message)
    let taken = true
    output.cork()
    for (const piece of typeof line === 'string' ? [line] : line) taken = output.write(piece)
    output.uncork()
    if (taken || output.destroyed) {
      outgoing.resize(output.writableLength)
      return undefined
    }
    return new Promise((resolve) => {
      const done = () => {
        output.off('drain', done).off('close', done).off('error', done)
        outgoing.resize(output.writableLength)
        resolve()
      }
      output.on('drain', done).on('close', done).on('error', done)
    })
  }

  /** The client has ended its input, so it cannot repeat a request. */
  let hasEnded = false
  const patient = () => hasEnded

  const conversation = new Conversation({
    upstream: place.upstream,
    sender: { principal, patient },
    transport: 'stdio',
    log: place.log,
    memory,
    settings: place.settings,
    write,
  })

  options.moves?.((to) => {
    const before = disconnected
    disconnected = to.upstream.connected?.(principal)
    place = to
    Object.assign(served, to.upstream)
    conversation.move(to)
    for (const changed of [...followers]) changed('moved')
    before?.()
  })

  function follow(changed: (what: 'moved' | 'over') => void): () => void {
    followers.add(changed)
    if (hasEnded) changed('over')
    return () => followers.delete(changed)
  }

  function answerModern(request: Request, envelope: Envelope | undefined): Promise<void> {
    const controller = running.enterRequest(request.id)
    const arrived = {
      principal,
      patient,
      abort: controller,
      log: place.log,
      transport: 'stdio' as const,
      running: controller,
    }
    const id = methodTraits(request.method).endless ? detach(request.id) : request.id
    const send: Send = ({ text, last }) => {
      // A cancelled request gets no answer. A request that the bridge aborted with a Fault gets its error.
      if (controller.aborted && !(controller.reason instanceof Fault)) return undefined
      return write(text, last && (() => answerLost(id)))
    }
    return modern.answerRequest(request, envelope, arrived, send).finally(() => running.leaveRequest(id, controller))
  }

  async function answerInSession(message: Exclude<Message, { kind: 'invalid' }>): Promise<void> {
    const ids = idsIn(message)
    for (const id of ids) inSession.add(id)
    try {
      await conversation.take(message)
    } catch (error) {
      await refuseMessage(Fault.from(error, true), message)
    } finally {
      for (const id of ids) inSession.delete(id)
    }
  }

  /**
   * Handles a message. The promise resolves when it has been answered; undefined if it needs no answer or is endless.
   */
  function take(message: Message): Promise<void> | undefined {
    const verdict = classifyLine(message, conversation.state, place.options.compat)
    if (message.kind === 'invalid') return undefined
    if (message.kind === 'request' && (running.hasRequest(message.id) || inSession.has(idKey(message.id))))
      throw new Fault('invalidRequest', 'Duplicate id: a request with this id is still in progress')
    const cancels = message.kind === 'notification' && message.method === 'notifications/cancelled'
    // The id alone determines the request, because both eras share the ids, and a notification needs no envelope.
    const named = cancels ? running.named(message.params) : undefined
    if (cancels && named) {
      place.log.telemetry?.recorder?.received(message, { call: named.call })
      running.cancel(message.params)
      return undefined
    }
    if (verdict.era === 'legacy') {
      const turn = conversation.turn(message)
      return inBackground(turn ? turn.then(() => takeAgain(message)) : answerInSession(message))
    }
    // An endless call keeps a copy of what it needs, so its line can be dropped.
    if (message.kind === 'request') {
      const answering = inBackground(answerModern(message, 'bare' in verdict ? undefined : verdict.envelope))
      return methodTraits(message.method).endless ? undefined : answering
    }
    if (message.kind === 'notification') modern.notify(message, { principal, log: place.log })?.catch(() => {})
    return undefined
  }

  /** Handles a message that has waited for the session. */
  async function takeAgain(message: Message): Promise<void> {
    try {
      await take(message)
    } catch (error) {
      await refuseMessage(error, message)
    }
  }

  function inBackground(answering: Promise<void>): Promise<void> {
    const over = () => {
      answers.delete(settled)
    }
    const settled = answering.then(over, (error: unknown) => {
      place.log.error({ event: 'answer_failed', err: error }, 'answering a request failed')
      over()
    })
    answers.add(settled)
    return settled
  }

  /** Refuses a line. By default, a line without a valid id gets no answer, because no request could be matched with it. */
  async function refuse(error: unknown, id: Id | undefined, answers = id !== undefined): Promise<void> {
    const fault = Fault.from(error)
    tell(place.log, { kind: 'refusal', reason: fault.fault, status: fault.status, said: fault.message })
    if (fault.row.reason === 'internal_error')
      place.log.error({ event: 'message_failed', err: fault.cause }, 'handling a message failed')
    else place.log.warn({ event: 'message_refused', why: fault.message }, 'message refused')
    if (answers) await write(errorMessage(id, fault.toRpcError(place.options.compat.draftErrorCodes)))
  }

  /** Refuses a message. A refused batch gets an error without an id, because its sender waits for an answer. */
  function refuseMessage(error: unknown, message: Message | undefined): Promise<void> {
    const id = message && idToAnswer(message)
    return refuse(error, id, id !== undefined || message?.kind === 'batch')
  }

  /** Takes a line. The promise resolves when its refusal is written; undefined if it is not refused. */
  function takeLine(line: Line): Promise<void> | undefined {
    if (line instanceof Outline)
      return refuse(
        new Fault('bodyTooLarge', `The line is over ${place.options.limits.lineBytes} bytes (limits.lineBytes)`),
        requestedBy(line),
      )
    // A message is in memory twice: as received, and as sent to the server.
    const size = 2 * lengthOf(line)
    const reservation = size > SMALL ? memory.reserve(principal) : undefined
    let message: Message | undefined
    let answering: Promise<void> | undefined
    let refusing: Promise<void> | undefined
    try {
      message = readMessage(line)
      reservation?.mustResize(size)
      answering = take(message)
    } catch (error) {
      refusing = refuseMessage(error, message)
    }
    const ending = answering ?? refusing
    if (ending && reservation) ending.finally(() => reservation.end()).catch(() => {})
    else reservation?.end()
    return refusing
  }

  let closed = false
  output.on('error', (error) => {
    if (closed) return
    closed = true
    place.log.warn({ event: 'stdout_closed', why: error.message }, 'client closed stdout; shutting down')
    input.destroy()
  })
  try {
    for await (const chunk of input) {
      decoder.limit = place.options.limits.lineBytes
      for (const line of decoder.push(chunk as Uint8Array)) {
        const { room } = conversation
        if (room) await room
        const refusing = takeLine(line)
        if (refusing) await refusing
      }
    }
    for (const line of decoder.end()) await takeLine(line)
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    if (!closed) place.log.warn({ event: 'stdin_failed', why }, 'reading from stdin failed; shutting down')
  }
  hasEnded = true
  for (const changed of [...followers]) changed('over')
  if (!closed) {
    // A script that sends all its messages at once ends the input before the server has started.
    await conversation.opened
    await within(Promise.all(answers), options.patience)
  }
  disconnected?.()
  running.abortAll()
  conversation.close()
  await Promise.all(answers)
  outgoing.end()
}

/** The id of a request of which only the outline is known; undefined if it is none, or if its id is in its middle. */
function requestedBy({ beginning, idAtEnd }: Outline): Id | undefined {
  const head = headIn(beginning)
  if (head?.method === undefined) return undefined
  return readId(head.id === undefined ? (idAtEnd ?? '') : JSON.stringify(head.id))
}

/** The keys of the ids of all requests in a message. */
function idsIn(message: Exclude<Message, { kind: 'invalid' }>): string[] {
  if (message.kind === 'request') return [idKey(message.id)]
  if (message.kind !== 'batch') return []
  return message.elements.flatMap(({ start, end }) => {
    const element = parseMessage(sourceOf(cut(message.source, start, end)))
    return element.kind === 'request' ? [idKey(element.id)] : []
  })
}
