/**
 * A legacy client's session over Streamable HTTP (MCP 2025-11-25, basic/transports): its POST requests and GET streams.
 */
import type { FastifyReply } from 'fastify'
import { Fault } from '../../protocol/fault.js'
import type { Memory } from '../../protocol/memory.js'
import type { Id, Request } from '../../rpc/message.js'
import type { Wire } from '../../rpc/source.js'
import { within } from '../../time.js'
import { answerLost, type Frame } from '../frames.js'
import { type Batch, together } from '../legacy/batch.js'
import type { ClientSession } from '../legacy/session.js'
import { traceHeaders } from './headers.js'
import { type ErrorRendering, explainInBand, lendAnswer, sendEvents, sendJson } from './replies.js'
import type { Kept } from './sessions.js'
import { type EventStream, MAX_STANDALONE, type Streams } from './streams.js'

/** Options of a session. */
export interface HttpSessionOptions extends Pick<ErrorRendering, 'passthrough'> {
  /** Milliseconds of silence after which an answer becomes a stream. */
  commitAfter: number
  memory: Memory
}

/** A session with its streams. */
export class HttpSession implements Kept {
  readonly principal: string
  readonly client: ClientSession
  readonly #streams: Streams
  readonly #options: HttpSessionOptions

  constructor(principal: string, client: ClientSession, streams: Streams, options: HttpSessionOptions) {
    this.principal = principal
    this.client = client
    this.#streams = streams
    this.#options = options
  }

  get busy(): boolean {
    return this.client.open > 0 || this.#streams.connected
  }

  get gone(): boolean {
    return this.#streams.left
  }

  keepAlive(): void {
    this.#streams.keepAlive()
  }

  drain(): void {
    this.#streams.endStandalone()
  }

  close(): void {
    this.client.close()
    this.#streams.close()
  }

  /**
   * Answers a request: with JSON if the answer comes first and within `commitAfter`, otherwise with an event stream.
   */
  async answer(request: Request, reply: FastifyReply): Promise<void> {
    const frames = this.client.answer(request, traceHeaders(reply.request))
    const stream = this.#streams.answer()
    const first = frames.next()
    const frame = await Promise.race([within(first, this.#options.commitAfter), stream.demanded])
    const only = frame?.value
    if (only?.last || reply.raw.destroyed) {
      this.#streams.done(stream)
      // A client that disconnected before it got a stream cannot resume. Its call goes on.
      if (!only?.last) await drain(first, frames)
      else if (only.last.cancelled) reply.code(202).send()
      else this.#answerNow(reply, only, request.id)
      await frames.return()
      return
    }
    sendEvents(reply, stream.connect())
    await this.#pump(first, frames, stream, request.id)
  }

  /**
   * Answers the requests of a batch: with one array if nothing else is sent and in time, otherwise with an event
   * stream.
   */
  async answerAll({ requests, errors }: Batch, reply: FastifyReply): Promise<void> {
    const stream = this.#streams.answer()
    const answers = errors.map((text) => ({ text, lost: () => text }))
    let complete = false
    const said = Promise.all(
      requests.map(async (request) => {
        for await (const { text, last } of this.client.answer(request)) {
          if (!last) await stream.push(text)
          else if (!last.cancelled) answers.push({ text, lost: () => answerLost(request.id) })
        }
      }),
    ).then(() => {
      complete = true
    })
    await Promise.race([within(said, this.#options.commitAfter), stream.demanded])
    if (complete && !stream.asked) {
      this.#streams.done(stream)
      const texts = answers.map(({ text }) => text)
      if (texts.length === 0) reply.code(202).send()
      else if (this.#lends(reply, together(texts))) sendJson(reply, together(texts))
      else sendJson(reply, together(answers.map(({ lost }) => lost())))
      return
    }
    sendEvents(reply, stream.connect())
    await said
    for (const { text, lost } of answers) await stream.push(text, false, lost)
    stream.end()
    this.#streams.done(stream)
  }

  /** Opens a stream for messages that belong to no request, or resumes one. Throws a Fault if it cannot. */
  listen(reply: FastifyReply, lastEventId: string | undefined): void {
    const events = lastEventId === undefined ? this.#streams.listen() : this.#streams.resume(lastEventId)
    if (!events && lastEventId === undefined)
      throw new Fault('rateLimited', `Too many open streams in this session (at most ${MAX_STANDALONE})`, {
        retryAfter: 1,
      })
    if (!events) {
      reply.header('allow', 'POST, DELETE')
      throw new Fault('methodNotAllowed', 'Cannot resume: unknown or expired Last-Event-ID')
    }
    sendEvents(reply, events)
    this.client.listened()
  }

  #answerNow(reply: FastifyReply, { text, last }: Frame, id: Id): void {
    reply.code(last?.status ?? 200)
    if (last?.fault) explainInBand(reply, last.fault, this.#options.passthrough)
    sendJson(reply, this.#lends(reply, text) ? text : answerLost(id))
  }

  #lends(reply: FastifyReply, text: Wire): boolean {
    return lendAnswer(reply, this.#options.memory, this.principal, text)
  }

  async #pump(
    first: Promise<IteratorResult<Frame, void>>,
    frames: AsyncGenerator<Frame, void>,
    stream: EventStream,
    id: Id,
  ): Promise<void> {
    const { resumable } = this.#streams.options
    const lost = () => answerLost(id)
    for (let next = await first; !next.done; next = await frames.next()) {
      const { text, last } = next.value
      // A cancelled request needs no answer. But a resumable stream must end with one, or the client tries to resume
      // it.
      if (last?.cancelled && !resumable) stream.end()
      else await stream.push(text, last !== undefined, last && lost)
    }
    this.#streams.done(stream)
  }
}

async function drain(first: Promise<IteratorResult<Frame, void>>, frames: AsyncGenerator<Frame, void>): Promise<void> {
  for (let next = await first; !next.done; next = await frames.next());
}
