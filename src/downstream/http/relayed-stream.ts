/**
 * Passes the event stream of a relayed answer to the client, and adds the last message if the bridge ends the stream,
 * or if the server ends it without an answer.
 */

import type { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import type { Fault } from '../../fault/fault.js'
import type { Final } from '../../protocol/call.js'
import type { Era } from '../../protocol/eras.js'
import { LISTEN } from '../../protocol/methods.js'
import { encodeReply } from '../../protocol/modern-client.js'
import { EventLength, hasLineEnd } from '../../rpc/event-length.js'
import { error as errorMessage, type Id } from '../../rpc/message.js'
import { EMPTY } from '../../rpc/splice.js'
import { DROP_EVENT, encodeEvent, SseError } from '../../rpc/sse.js'
import { atTurnEnd } from '../../time/turn.js'
import { replyIn } from '../outcome.js'
import { RelayedEvents } from './relayed-answer.js'
import { RelayedEnding } from './relayed-ending.js'
import { pour, takeResponse, writeTogether } from './replies.js'

/** The request that the stream answers. */
export interface StreamedRequest {
  era: Era
  /** The stream is endless. */
  endless: boolean
  draftErrorCodes: boolean | undefined
  /** Most bytes of one event. */
  limit: number
  /** The id of the request; undefined if it needs no answer. */
  id(): Id | undefined
  /** Called with each chunk that the server sends. */
  onChunk: ((chunk: Buffer) => void) | undefined
  /** Called with the message that the bridge adds at the end of the stream. */
  onOwn: ((text: string) => void) | undefined
  /** Called with the answer when the stream ends, if it contained one. */
  onAnswer(final: Final): void
  /** Called when the stream has broken off or ended without an answer. Returns the fault. */
  onLoss(error: Error): Fault
}

/** The stream. */
export class RelayedStream {
  readonly #source: Readable
  readonly #response: FastifyReply['raw']
  readonly #request: StreamedRequest
  readonly #events: RelayedEvents
  #draining = false
  /** An event was too large. */
  #tooLarge: SseError | undefined

  /** Begins to pass the stream on. Nothing of the reply may have been sent. */
  constructor(source: Readable, reply: FastifyReply, request: StreamedRequest) {
    this.#source = source
    this.#request = request
    const events = new RelayedEvents(request.era === 'modern')
    this.#events = events
    if (request.onChunk) source.on('data', request.onChunk)
    const response = takeResponse(reply)
    this.#response = response
    source.once('end', () => atTurnEnd(() => this.finish()))
    source.on('error', (error) => this.#broke(error))
    const length = new EventLength(request.limit)
    pour(source, response, (chunk) => {
      // A destroyed source may still emit buffered data.
      if (response.writableEnded) return true
      writeTogether(response, chunk.length)
      const mayEnd = hasLineEnd(chunk)
      const within = length.push(chunk, mayEnd)
      this.#write(within === undefined ? chunk : chunk.subarray(0, within), mayEnd)
      if (within !== undefined) this.#drop(new SseError(request.limit))
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
    const last = this.#events.isWhole ? this.#finalMessage() : undefined
    this.#source.destroy()
    if (last !== undefined) this.#request.onOwn?.(last)
    response.end(last === undefined ? undefined : encodeEvent(last))
  }

  #write(chunk: Buffer, mayEnd = true): void {
    for (const part of this.#events.push(chunk, mayEnd)) this.#response.write(part)
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
    this.#request.onLoss(error)
    if (this.#events.isWhole && this.#canEndWithError) this.finish()
    else response.destroy()
  }

  /** The message that the bridge adds at the end of the stream; undefined for none. */
  #finalMessage(): string | undefined {
    const { era, endless } = this.#request
    const id = this.#request.id()
    if (this.#tooLarge) return this.#errorMessage(this.#tooLarge)
    if (endless && this.#draining) return era === 'modern' && id !== undefined ? subscriptionEnded(id) : undefined
    const { answer } = this.#events
    const final = answer instanceof RelayedEnding ? answer.final : answer && replyIn(answer)
    if (final) this.#request.onAnswer(final)
    if (answer || endless || !this.#canEndWithError) return undefined
    return this.#errorMessage(new Error('The server closed the stream without an answer'))
  }

  /** The message that ends the call with an error; undefined for a stream that answers no call. */
  #errorMessage(why: Error): string | undefined {
    const { draftErrorCodes } = this.#request
    const id = this.#request.id()
    const fault = this.#request.onLoss(why)
    return id === undefined ? undefined : errorMessage(id, fault.toRpcError(draftErrorCodes))
  }

  /**
   * Whether an error may end the call. It may not if the client can resume the stream, because the answer may follow.
   */
  get #canEndWithError(): boolean {
    return this.#request.id() !== undefined && !this.#events.isResumable
  }
}

/** The result that ends a subscription. */
function subscriptionEnded(id: Id): string {
  const listen = { method: LISTEN, progressToken: undefined }
  return encodeReply({ kind: 'result', result: EMPTY }, id, listen).text as string
}
