/**
 * Passes the event stream of a relayed answer to the client, and adds the last message if the bridge ends the stream,
 * or if the server ends it without an answer.
 */

import type { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import type { Fault } from '../../fault/fault.js'
import type { RelayedRecorder } from '../../ports/recorder.js'
import type { Final } from '../../protocol/call.js'
import type { Relayed } from '../../protocol/upstream.js'
import { Ending } from '../../rpc/ending.js'
import { EventLength, hasLineEnd } from '../../rpc/event-length.js'
import { error as errorMessage, type Id, type Response } from '../../rpc/message.js'
import { MARK_LENGTH, startsWithMark } from '../../rpc/source.js'
import { DROP_EVENT, encodeEvent, KEEP_ALIVE, SseError } from '../../rpc/sse.js'
import { atTurnEnd } from '../../time/turn.js'
import { replyIn, replyOf } from '../outcome.js'
import { RelayedEvents, UnansweredCalls } from './relayed-answer.js'
import type { Passing } from './relayed-sending.js'
import { type ErrorRendering, pour, takeResponse, whenOver, writeTogether } from './replies.js'

/** Where the stream goes, and what it answers. */
interface StreamParts {
  reply: FastifyReply
  passing: Pick<Passing, 'endless'>
  /** Milliseconds of silence after which a comment is sent, so that proxies keep the connection. */
  keepAlive: number
  refusing: Pick<ErrorRendering, 'draftErrorCodes'>
  relayed: Pick<Relayed, 'bodyLimit'>
  /** Records what the bridge adds at the end; undefined without a recorder. */
  messages: Pick<RelayedRecorder, 'own'> | undefined
}

/** The request that the stream answers. */
export interface StreamOwner {
  /** Undefined if it needs no answer. */
  readonly id: Id | undefined
  /** The ids of the requests in a batch; undefined for another message. */
  readonly ids: readonly Id[] | undefined
  /** Takes how the call ended, when a stream with an answer ends, the bytes of the stream, and the answer unless it is large. */
  ended(final: Final, bytes: number, answer: Response | undefined): void
  /** Takes why there is no answer. Returns the fault. */
  lose(error: Error): Fault
}

/** The stream. */
export class RelayedStream {
  readonly #source: Readable
  readonly #response: FastifyReply['raw']
  readonly #parts: StreamParts
  readonly #owner: StreamOwner
  readonly #events = new RelayedEvents()
  /** The requests of a batch that have not been answered; undefined for another message. */
  readonly #unanswered: UnansweredCalls | undefined
  readonly #silence: NodeJS.Timeout
  #draining = false
  /** Nothing of the server has been sent. */
  #isNew = true
  #length = 0
  /** An event was too large. */
  #tooLarge: SseError | undefined

  /** Begins to pass the stream on. Nothing of the reply may have been sent. */
  constructor(source: Readable, parts: StreamParts, owner: StreamOwner) {
    this.#source = source
    this.#parts = parts
    this.#owner = owner
    const { bodyLimit } = parts.relayed
    this.#unanswered = owner.ids && new UnansweredCalls(owner.ids, bodyLimit)
    const response = takeResponse(parts.reply)
    this.#response = response
    source.once('end', () => atTurnEnd(() => this.finish()))
    source.on('error', (error) => this.#broke(error))
    this.#silence = setInterval(() => this.#break(), parts.keepAlive)
    whenOver(parts.reply, () => clearInterval(this.#silence))
    const length = new EventLength(bodyLimit)
    pour(source, response, (chunk) => {
      // A destroyed source may still emit buffered data.
      if (response.writableEnded) return true
      this.#length += chunk.length
      writeTogether(response, chunk.length)
      const mayEnd = hasLineEnd(chunk)
      const within = length.push(chunk, mayEnd)
      this.#write(within === undefined ? chunk : chunk.subarray(0, within), mayEnd)
      if (within !== undefined) this.#drop(new SseError(bodyLimit))
      return !response.writableNeedDrain
    })
    // The first event may come late, but the client needs the headers now.
    response.flushHeaders()
  }

  /** Ends the stream because of a shutdown. A subscription ends with a result. */
  drain(): void {
    this.#draining = true
    this.finish()
  }

  /** Ends the stream, with the last message if it is missing. */
  finish(): void {
    const response = this.#response
    if (response.writableEnded) return
    // After an incomplete event, another event would be read as part of it.
    const last = this.#events.isWhole ? this.#finalMessages() : []
    this.#source.destroy()
    clearInterval(this.#silence)
    for (const message of last) this.#parts.messages?.own(message, 200)
    response.end(last.map((message) => encodeEvent(message)).join(''))
  }

  #write(chunk: Buffer, mayEnd = true): void {
    // It must be first, and a comment may have been.
    const bytes = this.#isNew && startsWithMark(chunk) ? chunk.subarray(MARK_LENGTH) : chunk
    this.#isNew = false
    this.#silence.refresh()
    this.#unanswered?.push(bytes)
    this.#events.push(bytes, mayEnd)
    this.#response.write(bytes)
  }

  /** Breaks a silence of the server. Within an event, a comment could end it early. */
  #break(): void {
    const response = this.#response
    if (response.writableEnded || response.writableNeedDrain || !this.#events.isWhole) return
    response.write(KEEP_ALIVE)
  }

  /** Ends the stream because of an event that is too large, in such a way that the client drops the received part. */
  #drop(why: SseError): void {
    this.#tooLarge = why
    this.#write(Buffer.from(DROP_EVENT))
    this.finish()
  }

  /** Handles a stream of the server that has broken off. */
  #broke(error: Error): void {
    const response = this.#response
    if (response.writableEnded || response.destroyed) return
    this.#owner.lose(error)
    if (this.#events.isWhole && this.#canEndWithError) this.finish()
    else response.destroy()
  }

  /** The messages that the bridge adds at the end of the stream. */
  #finalMessages(): string[] {
    const { endless } = this.#parts.passing
    if (this.#tooLarge) return this.#errorMessages(this.#tooLarge)
    if (endless && this.#draining) return []
    const { answer } = this.#events
    const final = answer instanceof Ending ? answer.ended && replyOf(answer.ended) : answer && replyIn(answer)
    if (final) this.#owner.ended(final, this.#length, answer instanceof Ending ? undefined : answer)
    const isAnswered = this.#unanswered ? this.#unanswered.ids.length === 0 : answer !== undefined
    if (isAnswered || endless || !this.#canEndWithError) return []
    return this.#errorMessages(new Error('The server closed the stream without an answer'))
  }

  /** The messages that end the calls with an error; none for a stream that answers no call. */
  #errorMessages(why: Error): string[] {
    const { id } = this.#owner
    const error = this.#owner.lose(why).toRpcError(this.#parts.refusing.draftErrorCodes)
    const ids = this.#unanswered?.ids ?? (id === undefined ? [] : [id])
    return ids.map((one) => errorMessage(one, error))
  }

  /**
   * Whether an error may end the call. It may not if the client can resume the stream, because the answer may follow.
   */
  get #canEndWithError(): boolean {
    const hasCalls = this.#owner.id !== undefined || (this.#unanswered?.ids.length ?? 0) > 0
    return hasCalls && !this.#events.isResumable
  }
}
