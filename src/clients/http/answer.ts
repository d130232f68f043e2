/**
 * The answer to one modern request over Streamable HTTP: JSON if the answer is the first message and comes soon, otherwise
 * an event stream. Applies the client's backpressure to the notifications of a call.
 */
import type { FastifyReply } from 'fastify'
import { Fault } from '../../base/fault/fault.js'
import { type Memory, SMALL } from '../../base/limits/memory.js'
import type { Id } from '../../base/rpc/message.js'
import { detach } from '../../base/rpc/source.js'
import { encodeEvent } from '../../base/rpc/sse.js'
import type { HangUp } from '../../base/time/hang-up.js'
import type { ReceivedNotice } from '../../mcp/protocol/call.js'
import { answerLost, type Send } from '../frames.js'
import { EventConnection } from './connection.js'
import { type ErrorRendering, leaving, sendAnswer, sendEvents } from './replies.js'

export interface AnswerOptions {
  /** Milliseconds between keep-alive comments on a stream. */
  keepAlive: number
  /** Milliseconds of silence after which an answer becomes an event stream, whose comments keep the connection open. */
  commitAfter: number
  memory: Memory
  refusing: Pick<ErrorRendering, 'passthrough'>
}

/** Without `commitAfter`, silence does not make the answer an event stream. */
type Options = Omit<AnswerOptions, 'commitAfter'> & { commitAfter: number | undefined }

export class Answer {
  /** Aborts when the client disconnects before the answer is complete, or if the event stream cannot continue. */
  readonly abort: HangUp
  readonly #reply: FastifyReply
  /** Undefined for a notification. */
  #id: Id | undefined
  readonly #options: Options
  readonly #commit: NodeJS.Timeout | undefined
  /** The event stream, once it has begun. */
  #events: EventConnection | undefined
  #keepAlive: NodeJS.Timeout | undefined
  #begin = () => {}

  constructor(reply: FastifyReply, id: Id | undefined, options: Options) {
    this.#reply = reply
    this.#id = id
    this.#options = options
    this.abort = leaving(reply)
    // Headers are sent with the first bytes, so a stream without events yet starts with a comment.
    const { commitAfter } = options
    if (commitAfter !== undefined) this.#commit = setTimeout(() => this.#open().keepAlive(), commitAfter)
  }

  /** Resolves when the event stream begins. */
  begun(): Promise<void> {
    if (this.#events) return Promise.resolve()
    return new Promise((resolve) => {
      this.#begin = resolve
    })
  }

  /** Takes the next frame. */
  readonly sendFrame: Send = ({ text, last }) => {
    if (last && !this.#events) {
      clearTimeout(this.#commit)
      sendAnswer(this.#reply, { text, last }, this.#options, () => answerLost(this.#id))
      return undefined
    }
    const events = this.#events ?? this.#connection()
    const admitted = events.admits(text)
    if (!admitted && !last) {
      // The call fails, and the client may still get the error as its answer.
      events.cut()
      this.abort.abort(tooSlow())
      return undefined
    }
    if (!this.#events) this.#open(events)
    this.#keepAlive?.refresh()
    if (!last) return events.write(encodeEvent(text))
    events.end(encodeEvent(admitted ? text : answerLost(this.#id)))
    last.status = 200
    return undefined
  }

  /** Ends the answer without a frame. */
  end(): void {
    this.leave()
    const reply = this.#reply
    if (this.#events) this.#events.end()
    else if (reply.raw.destroyed) reply.hijack()
    else if (!reply.sent) reply.code(202).send()
  }

  /** Ends an answer that has failed. Throws the failure if it can still be sent. */
  breakOff(error: unknown): void {
    this.leave()
    const { raw, sent } = this.#reply
    if (this.#events) this.#events.cut()
    else if (!raw.destroyed && !sent) throw error
  }

  /** Does nothing more, because the request is answered in another way. */
  leave(): void {
    clearTimeout(this.#commit)
  }

  #connection(): EventConnection {
    const { memory } = this.#options
    // Copied, so that an answer that stays open for long does not keep the request in memory.
    this.#id = detach(this.#id)
    return new EventConnection(memory.reserve(this.#reply.request.principal, SMALL), () =>
      clearInterval(this.#keepAlive),
    )
  }

  /** Begins the event stream. */
  #open(events = this.#connection()): EventConnection {
    clearTimeout(this.#commit)
    this.#events = events
    this.#keepAlive = setInterval(() => events.keepAlive(), this.#options.keepAlive)
    if (this.#reply.raw.destroyed) events.cut()
    else sendEvents(this.#reply, events.readable)
    this.#begin()
    return events
  }
}

/**
 * Answers a message that gets no answer: its client gets what the server says to it, or 202. The promise of `take` is that of
 * `Upstream.notify`, and so is the one that is returned, which rejects with what `failureOf` makes of an error.
 */
export function answerOneWay(
  reply: FastifyReply,
  options: Options,
  take: (heard: Pick<ReceivedNotice, 'hear' | 'signal'>) => Promise<void> | undefined,
  failureOf: (error: unknown) => unknown = (error) => error,
): Promise<void> | undefined {
  const answer = new Answer(reply, undefined, options)
  const answering = take({
    hear: (text, http) => {
      answer.sendFrame(http ? { text, last: { ...http } } : { text })?.catch(() => {})
    },
    signal: answer.abort,
  })
  if (answering)
    return answering.then(
      () => answer.end(),
      (error: unknown) => answer.breakOff(failureOf(error)),
    )
  answer.end()
  return undefined
}

function tooSlow(): Fault {
  const message = 'The client reads its answer too slowly, and the bridge has no memory left to keep it (limits.memory)'
  return new Fault('answerLost', message)
}
