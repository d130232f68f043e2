/**
 * The answer to one modern request over Streamable HTTP: JSON if the answer is the first message and comes soon, otherwise
 * an event stream. Applies the client's backpressure to the notifications of a call.
 */
import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import { Fault } from '../../base/fault/fault.js'
import { type Memory, type Reservation, SMALL } from '../../base/limits/memory.js'
import type { Id } from '../../base/rpc/message.js'
import { detach, lengthOf, type Wire } from '../../base/rpc/source.js'
import { encodeEvent, KEEP_ALIVE } from '../../base/rpc/sse.js'
import { HangUp } from '../../base/time/hang-up.js'
import type { ReceivedHead } from '../../mcp/protocol/call.js'
import { answerLost, type Frame, type Send } from '../frames.js'
import { carryBack } from './carried-back.js'
import { type ErrorRendering, explain, reserveAnswer, sendEvents, sendJson, statusOf, whenOver } from './replies.js'

/** Options of an answer. */
export interface AnswerOptions {
  /** Milliseconds between keep-alive comments on a stream. */
  keepAlive: number
  /** Milliseconds of silence after which the answer becomes an event stream. */
  commitAfter: number
  memory: Memory
  refusing: Pick<ErrorRendering, 'passthrough'>
}

/** Without `commitAfter`, silence does not make the answer an event stream. */
type Options = Omit<AnswerOptions, 'commitAfter'> & { commitAfter: number | undefined }

/** An event stream that has begun. */
interface Stream {
  readable: Readable
  keepAlive: NodeJS.Timeout
}

/** The answer. `send` takes its frames. */
export class Answer {
  /** Aborts when the client disconnects before the answer is complete, or if the event stream cannot continue. */
  readonly abort = new HangUp()
  readonly #reply: FastifyReply
  /** Undefined for a notification. */
  #id: Id | undefined
  readonly #options: Options
  readonly #commit: NodeJS.Timeout | undefined
  #stream: Stream | undefined
  /** For the bytes that wait to be written. Created for the first message before the answer. */
  #reservation: Reservation | undefined
  #begin = () => {}
  /** The promise of a sender that waits for the reader, and the function that resolves it. */
  #held: Promise<void> | undefined
  #release = () => {}

  constructor(reply: FastifyReply, id: Id | undefined, options: Options) {
    this.#reply = reply
    this.#id = id
    this.#options = options
    // The request emits 'close' as soon as its body has been read, so the event is taken from the response.
    whenOver(reply, () => {
      if (!reply.raw.writableFinished) this.abort.abort()
    })
    // Headers are sent with the first bytes, so a stream without events yet starts with a comment.
    const { commitAfter } = options
    if (commitAfter !== undefined) this.#commit = setTimeout(() => this.#open().readable.push(KEEP_ALIVE), commitAfter)
  }

  /** Resolves when the event stream begins. */
  begun(): Promise<void> {
    if (this.#stream) return Promise.resolve()
    return new Promise((resolve) => {
      this.#begin = resolve
    })
  }

  /** Takes the next frame. */
  readonly sendFrame: Send = (frame) => {
    if (frame.last && !this.#stream) return this.#sendJson(frame.text, frame.last)
    try {
      const event = encodeEvent(this.#reserved(frame))
      const { readable, keepAlive } = this.#stream ?? this.#open()
      if (readable.destroyed) return undefined
      keepAlive.refresh()
      const room = typeof event === 'string' ? readable.push(event) : event.map((piece) => readable.push(piece)).at(-1)
      if (!frame.last) return room === false ? this.#hold() : undefined
      clearInterval(keepAlive)
      readable.push(null)
      frame.last.status = 200
    } catch (error) {
      // There is no memory left for the event. The call fails, and the client may still get the error as its answer.
      this.#stream?.readable.destroy(error as Error)
      this.abort.abort(error)
    }
    return undefined
  }

  /** Takes what a server says to a notification: all of it, with its head, or an event of a stream. */
  readonly hear = (text: Wire, http?: ReceivedHead): void => {
    this.sendFrame(http ? { text, last: { ...http } } : { text })?.catch(() => {})
  }

  /** Ends the answer to a notification, which needs no frame. */
  readonly end = (): void => {
    this.leave()
    const reply = this.#reply
    if (this.#stream) this.#stream.readable.push(null)
    else if (reply.raw.destroyed) reply.hijack()
    else if (!reply.sent) reply.code(202).send()
  }

  /** Ends the answer to a notification that has failed. Throws the failure if it can still be sent. */
  readonly breakOff = (error: unknown): void => {
    this.leave()
    const { raw, sent } = this.#reply
    if (this.#stream) this.#stream.readable.destroy()
    else if (!raw.destroyed && !sent) throw error
  }

  /** Does nothing more, because the request is answered in another way. */
  leave(): void {
    clearTimeout(this.#commit)
  }

  #sendJson(text: Wire, last: NonNullable<Frame['last']>): undefined {
    clearTimeout(this.#commit)
    const reply = this.#reply
    const { memory, refusing } = this.#options
    if (last.fault) {
      explain(reply, last.fault)
      last.status = statusOf(reply, last.fault, refusing.passthrough)
    }
    reply.code(last.status)
    if (last.headers) carryBack(reply, last.headers)
    sendJson(reply, reserveAnswer(reply, memory, reply.request.principal, text) ? text : answerLost(this.#id))
  }

  #open(): Stream {
    clearTimeout(this.#commit)
    const reply = this.#reply
    const readable = new Readable({
      read: () => this.#resume(),
      destroy: (error, done) => {
        clearInterval(stream.keepAlive)
        this.#resume()
        done(error)
      },
    })
    const keepAlive = setInterval(() => {
      this.#reservation?.resize(reply.raw.writableLength)
      if (readable.readableLength === 0) readable.push(KEEP_ALIVE)
    }, this.#options.keepAlive)
    const stream = { readable, keepAlive }
    this.#stream = stream
    if (reply.raw.destroyed) readable.destroy()
    else sendEvents(reply, readable)
    this.#begin()
    return stream
  }

  /**
   * Reserves memory for a message, in addition to the bytes that wait already. Returns the message. Without memory,
   * returns an error in place of an answer, and throws a Fault for any other message.
   */
  #reserved({ text, last }: Frame): Wire {
    const reservation = this.#reservation ?? this.#reserve()
    if (reservation.resize(this.#reply.raw.writableLength + lengthOf(text)) === undefined) return text
    if (last) return answerLost(this.#id)
    throw new Fault(
      'answerLost',
      'The client reads its answer too slowly, and the bridge has no memory left to keep it (limits.memory)',
    )
  }

  #reserve(): Reservation {
    const reservation = this.#options.memory.reserve(this.#reply.request.principal, SMALL)
    this.#reservation = reservation
    // Copied, so that an answer that stays open for long does not keep the request in memory.
    this.#id = detach(this.#id)
    whenOver(this.#reply, () => reservation.end())
    return reservation
  }

  #hold(): Promise<void> {
    this.#held ??= new Promise((resolve) => {
      this.#release = resolve
    })
    return this.#held
  }

  #resume(): void {
    this.#held = undefined
    this.#release()
  }
}
