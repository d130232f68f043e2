/**
 * A legacy client's session over Streamable HTTP (MCP 2025-11-25, basic/transports): its POST requests and GET streams.
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Fault } from '../../base/fault/fault.js'
import type { Request } from '../../base/rpc/message.js'
import { type Wire, wireOf } from '../../base/rpc/source.js'
import { NAMELESS } from '../../mcp/protocol/account.js'
import type { ReceivedOneWay, SentBatch } from '../../mcp/protocol/call.js'
import type { Era } from '../../mcp/protocol/eras.js'
import { answerLost, type Frame, type LastFrame } from '../frames.js'
import { type SortedBatch, together } from '../legacy/batch.js'
import type { ClientSession } from '../legacy/session.js'
import type { Logger } from '../logger.js'
import type { AnswerOptions } from './answer.js'
import { forwardedHeadersIn } from './forwarded-headers.js'
import { traceHeaders } from './headers.js'
import { leaving, sendAnswer, sendEvents } from './replies.js'
import type { KeptSession } from './sessions.js'
import { type EventStream, MAX_STANDALONE, type Streams } from './streams.js'

interface HttpSessionOptions extends Pick<AnswerOptions, 'commitAfter' | 'memory' | 'refusing'> {
  log: Logger
  /** The era of the server, if it alone is served here; undefined if others are, too, or if it is not reached over HTTP. */
  speaks?: (() => Era | undefined) | undefined
}

/** The answer to a request of a batch. */
interface Answered extends Pick<Frame, 'text' | 'last'> {
  /** What the client gets if there is no memory for it. */
  lost(): Wire
}

/** A session with its streams. */
export class HttpSession implements KeptSession {
  readonly principal: string
  readonly client: ClientSession
  /** The replica that had the session before, where calls may still be in flight; undefined if there was none. */
  readonly from: string | undefined
  /** Set when it is stored. */
  id = ''
  /** See `HandedSessions.note`. */
  noted: string | undefined
  readonly #streams: Streams
  readonly #options: HttpSessionOptions

  constructor(client: ClientSession, streams: Streams, options: HttpSessionOptions, from?: string) {
    this.principal = streams.principal
    this.client = client
    this.#streams = streams
    this.#options = options
    this.from = from
    const { telemetry } = options.log
    const recorder = telemetry?.recorder
    if (recorder) streams.onConnection = ({ id, request }, what) => recorder.stream(what, id, request, client.session)
  }

  get busy(): boolean {
    return this.client.open > 0 || this.#streams.connected
  }

  get unanswered(): number {
    return this.client.open
  }

  get gone(): boolean {
    return this.#streams.left
  }

  /**
   * The server has named the session, and without authentication whoever knows its id may use it: another mount goes on with it,
   * and so does the bridge when it is started again.
   */
  get outlives(): boolean {
    return (
      this.#options.speaks !== undefined && this.client.direct?.left !== undefined && NAMELESS.includes(this.principal)
    )
  }

  keepAlive(): void {
    this.#streams.keepAlive()
  }

  drain(): void {
    this.#streams.endStandalone()
  }

  close(): void {
    this.client.close()
    this.#streams.closeOnceAnswered()
  }

  /**
   * Answers a request: with JSON if the answer comes first and within `commitAfter`, otherwise with an event stream.
   */
  answerPost(request: Request, reply: FastifyReply): Promise<void> {
    const { id } = request
    const begin = (stream: EventStream) => this.#begin(stream, reply)
    const stream = this.#streams.streamFor(id, { begin, commitAfter: this.#options.commitAfter })
    const leaves = this.client.direct?.keepsIds ? leaving(reply) : undefined
    const send = (frame: Frame) => {
      const { text, last, event } = frame
      if (typeof event === 'number') return this.#endUnanswered(stream, reply, event)
      const held = event?.on?.pass(text, event)
      if (event?.on && last) this.#endUnanswered(stream, reply, 202)
      if (event?.on) return held
      if (event || !last) stream.open()
      if (!last) return stream.push(text, false, undefined, event)
      if (!stream.begin) return this.#endStream(stream, frame, () => answerLost(id))
      stream.leaveStream(reply.raw.destroyed)
      if (last.cancelled) reply.code(202).send()
      else sendAnswer(reply, { text, last }, this.#options, () => answerLost(id), true)
      return undefined
    }
    const { grant, ends } = reply.request
    const { recorder } = this.#options.log.telemetry ?? {}
    const { traceparent, baggage } = reply.request.headers
    const trace = (traceparent ?? baggage) === undefined ? undefined : traceHeaders(reply.request)
    const headers = recorder && reply.request.headers
    return this.client.answerClient(request, send, {
      trace,
      headers,
      grant,
      ends,
      ...(leaves && { leaves, ...forwardedOf(reply.request) }),
    })
  }

  /** Ends the answer to a POST as the server has: the call may be answered on another stream. */
  #endUnanswered(stream: EventStream, reply: FastifyReply, status: number): undefined {
    if (stream.begin && !reply.raw.destroyed) reply.code(status).send()
    stream.leaveStream(reply.raw.destroyed)
    stream.end()
  }

  /**
   * Answers the requests of a batch: with one array if no other message is sent before and it is in time, otherwise with an
   * event stream.
   */
  async answerAll({ requests, errors }: SortedBatch, reply: FastifyReply, batch?: SentBatch): Promise<void> {
    const begin = (stream: EventStream) => this.#begin(stream, reply)
    const stream = this.#streams.streamFor(undefined, { begin, commitAfter: this.#options.commitAfter })
    const answers: Answered[] = errors.map((text) => ({ text, lost: () => text }))
    const { grant, ends } = reply.request
    const headers = this.#options.log.telemetry?.recorder && reply.request.headers
    const about = {
      trace: traceHeaders(reply.request),
      headers,
      ends,
      batch,
      ...(this.client.direct?.keepsIds && forwardedOf(reply.request)),
      grant: grant && { ...grant, inBand: true },
    }
    const answer = (request: Request) =>
      this.client.answerClient(
        request,
        ({ text, last }) => {
          if (!last) return stream.open().push(text)
          if (!last.cancelled) answers.push({ text, last, lost: () => answerLost(request.id) })
          return undefined
        },
        about,
      )
    await Promise.all(requests.map(answer))
    const isOpen = !stream.begin
    if (isOpen) {
      for (const { text, lost } of answers) await stream.push(text, false, lost)
      stream.end()
    }
    stream.leaveStream(reply.raw.destroyed)
    if (isOpen) return
    if (answers.length === 0) return void reply.code(202).send()
    const fault = answers.every(({ last }) => last?.fault) ? answers[0]?.last?.fault : undefined
    const each = { text: together(answers.map(({ text }) => text)), last: { status: 200, fault } }
    const lost = () => together(answers.map((one) => one.lost()))
    sendAnswer(reply, saidAtOnce(answers) ?? each, this.#options, lost, true)
  }

  /** Opens a stream for messages that belong to no request, or resumes one: at the server, if the session is its own. Rejects with a Fault if it cannot. */
  async listen(reply: FastifyReply, lastEventId: string | undefined): Promise<void> {
    if (this.client.listen) return this.#listenAtServer(reply, lastEventId, this.client.listen)
    const resumed = lastEventId === undefined ? undefined : this.#streams.resume(lastEventId)
    // This replica does not have the events of another one, so it opens a new stream, which reports all changes.
    const isNew = lastEventId === undefined || (!resumed && this.from !== undefined)
    const events = resumed ?? (isNew ? this.#streams.listen() : undefined)
    if (!events && isNew) throw tooManyStreams()
    if (!events) {
      reply.header('allow', 'POST, DELETE')
      throw new Fault('methodNotAllowed', 'Cannot resume: unknown or expired Last-Event-ID')
    }
    sendEvents(reply, events)
    this.client.listened()
  }

  async #listenAtServer(
    reply: FastifyReply,
    lastEventId: string | undefined,
    listen: NonNullable<ClientSession['listen']>,
  ): Promise<void> {
    const stream = this.#streams.openStandalone()
    if (!stream) throw tooManyStreams()
    const signal = leaving(reply)
    try {
      await listen(stream, { ...forwardedOf(reply.request), lastEventId, signal })
    } catch (error) {
      this.#streams.dropStandalone(stream)
      if (signal.aborted) return void reply.hijack()
      if (error instanceof Fault && error.fault === 'methodNotAllowed') reply.header('allow', 'POST, DELETE')
      throw ofNoCall(error)
    }
    this.#streams.flushTo(stream)
    this.#connect(stream, reply)
  }

  /** Sends the events of a stream. Those of the server may be late, but its headers are not. */
  #connect(stream: EventStream, reply: FastifyReply): void {
    const events = stream.connect()
    sendEvents(reply, events)
    if (events.readableLength === 0) reply.raw.flushHeaders()
  }

  /** Makes the answer to a POST a stream: another message comes before the answer, or that takes long. */
  #begin(stream: EventStream, reply: FastifyReply): void {
    if (!reply.raw.destroyed) return this.#connect(stream, reply)
    // Its call continues, but the client cannot resume a stream that it never got.
    stream.end()
    stream.leaveStream(true)
  }

  /** Sends the last frame on the event stream. */
  async #endStream(stream: EventStream, { text, last, event }: Frame, lost: () => Wire): Promise<void> {
    // A cancelled request needs no answer, but a resumable stream must end with one: otherwise the client resumes it.
    if (last?.cancelled && !this.#streams.options.resumable) stream.end()
    else await stream.push(text, true, lost, typeof event === 'object' ? event : undefined)
    this.#streams.forgetStream(stream)
  }
}

/** What the server has said to all of a batch in one text: an array of the answers, or one that refuses it. */
function saidAtOnce(answers: readonly Answered[]): LastFrame | undefined {
  const [{ text, last }] = answers as [Answered]
  if (!last?.headers) return undefined
  const { array, headers } = last
  if (array && array.elements.length === answers.length && answers.every((one) => one.last?.array === array))
    return { text: wireOf(array.source), last }
  const isRefused = last.status >= 300 && answers.every((one) => one.last?.headers === headers)
  return isRefused ? { text, last } : undefined
}

/** The failure of a message that gets no answer: there is no call whose outcome is unknown. */
export function ofNoCall(error: unknown): Fault {
  const fault = Fault.from(error, true)
  if (fault.status !== 200) return fault
  const { data, message, said } = fault
  const { httpStatus } = data
  return new Fault(fault.fault, message, { cause: fault, data, said, status: Number(httpStatus ?? 502) })
}

function tooManyStreams(): Fault {
  const message = `Too many open streams in this session (at most ${MAX_STANDALONE})`
  return new Fault('rateLimited', message, { retryAfter: 1 })
}

/** What goes on to the server beside a message of a session whose client has its own there. */
export function forwardedOf({
  headers,
  credential,
  grant,
}: FastifyRequest): Pick<ReceivedOneWay, 'forwarded' | 'credential' | 'grant'> {
  return { forwarded: forwardedHeadersIn(headers), credential, grant }
}
