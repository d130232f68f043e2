/** Reads the answer to one message over Streamable HTTP. */

import { MAX_NAME } from '../../base/limits/constants.js'
import { NOBODY } from '../../base/limits/memory.js'
import { detach } from '../../base/rpc/source.js'
import type { PassedEvent, PassedStream, SseDecoder, SseEvent } from '../../base/rpc/sse.js'
import { mediaType } from '../../base/texts/headers.js'
import { HangUp } from '../../base/time/hang-up.js'
import { type BodyKind, lengthError, type ResponseHeaders } from './answers.js'
import { ChannelError, type Heard, type HttpHead, type Receiver } from './channel.js'
import type { Reader } from './origin.js'

/** Milliseconds to wait before a stream is resumed: the default, and the bounds for a server's value. */
export const RETRY = { usual: 1_000, least: 100, most: 30_000 }
/** Milliseconds that a server may keep a stream open after the answer. */
const AFTER_ANSWER = 1_000
/** How to read the bodies that can hold a message, by media type. */
const BODIES: Readonly<Record<string, BodyKind>> = { 'application/json': 'whole', 'text/event-stream': 'events' }
const nothing = () => {}

/**
 * Reads the answer to one message, over several connections if its stream is resumed. `abort` ends all of them, and also
 * stops obtaining credentials for the message.
 */
export class Reading extends HangUp implements Reader {
  readonly exchange: number | undefined
  principal = NOBODY
  /** The path to which the message was sent last. */
  path = ''
  /**
   * A message that gets no answer is sent even after an abort: it may be the cancellation of a call, sent because the
   * channel is being closed.
   */
  startsAnyway = false
  /** An event has arrived in the stream. */
  heard = false
  /** The events pass to a client as they come; on this stream, if it has opened one for them. */
  keepsRaw = false
  stream: PassedStream | undefined
  /** The client has got an event with an id, so it can resume the stream. */
  #isResumable = false
  /** The last event id, to resume the stream; and the milliseconds to wait before that. */
  lastId: string | undefined
  retry = RETRY.usual
  #end: () => void = nothing
  /** The head of the response that is being read. */
  #head: HttpHead | undefined
  readonly #receiver: Receiver | undefined
  readonly #onSuccess: ((headers: ResponseHeaders, kind: BodyKind) => void) | undefined
  #over: NodeJS.Timeout | undefined
  #heard: Heard | undefined
  #last: SseEvent | undefined
  #decoder: SseDecoder | undefined

  constructor(
    receiver: Receiver | undefined,
    exchange: number | undefined,
    onSuccess: ((headers: ResponseHeaders, kind: BodyKind) => void) | undefined,
  ) {
    super()
    this.#receiver = receiver
    this.exchange = exchange
    this.#onSuccess = onSuccess
  }

  /** Gives the events of the answer, while they are needed, to who has sent the message. */
  hears(heard: Heard): void {
    this.#heard = heard
    heard.signal.addEventListener('abort', () => this.abort(), { once: true })
  }

  /** Gives the stream to a client, which may resume it where it is. */
  give(stream: PassedStream): void {
    this.stream = stream
    const { id, retry, raw, data = [] } = this.#last ?? {}
    if (id !== undefined) stream.pass('', { id, retry, raw: data.length === 0 ? raw : undefined })?.catch(() => {})
    this.#isResumable ||= id !== undefined
    // Nothing would follow.
    if (this.#decoder?.isTooLong) setImmediate(() => this.abort())
  }

  /** The client's connection has ended. What the server says meanwhile waits for the next, unless the server itself keeps it. */
  takeBack(): void {
    this.stream = undefined
    if (this.#isResumable) this.abort()
  }

  get waited(): boolean {
    return this.exchange !== undefined && this.#receiver?.isWaiting(this.exchange) === true
  }

  get isShared(): boolean {
    return this.exchange === undefined && this.stream === undefined
  }

  onStart(abort: () => void): void {
    this.#end = abort
    if (this.aborted) abort()
  }

  /** Ends all requests for this answer, including one that has not started yet. */
  override abort(): void {
    if (!this.startsAnyway) super.abort(new ChannelError('The request was aborted'))
    this.#end()
  }

  onHead(status: number, headers: ResponseHeaders): BodyKind {
    if (status >= 300) return 'whole'
    const { 'content-type': stated } = headers
    const usual = typeof stated === 'string' && Object.hasOwn(BODIES, stated) ? BODIES[stated] : undefined
    const kind = usual ?? kindOf(mediaType(headers))
    if (kind === 'events') this.#head = { status, headers }
    this.heard = false
    this.#onSuccess?.(headers, kind)
    return kind
  }

  onEvent(event: SseEvent, decoder: SseDecoder): void {
    this.heard = true
    // An id that is too long for a header is ignored.
    if (event.id !== undefined) this.lastId = event.id.length <= MAX_NAME ? detach(event.id) : undefined
    this.retry = decoder.retry ?? this.retry
    const { raw, id, retry } = event
    const passes = this.keepsRaw && (this.exchange !== undefined || this.stream !== undefined)
    const passed: PassedEvent | undefined = passes ? { raw, id, retry, on: this.stream } : undefined
    if (id !== undefined) this.#last = event
    if (passed?.on && id !== undefined) this.#isResumable = true
    this.#decoder = decoder
    const isMessage = event.event === 'message' && event.data.length > 0
    if (event.dropped) this.#receiver?.dropped(event.dropped, this.exchange, lengthError(event))
    else if (isMessage && this.#heard) this.#heard.hear(event.data)
    else if (isMessage)
      this.#receiver?.receive(
        event.data,
        this.exchange,
        this.#head && passed ? { ...this.#head, event: passed } : this.#head,
      )
    else if (passed) this.#receiver?.passed?.(passed, this.exchange)
    if (this.exchange !== undefined && !this.waited) this.#over ??= setTimeout(() => this.#end(), AFTER_ANSWER)
  }

  onPart(bytes: number): void {
    if (this.exchange !== undefined) this.#receiver?.arriving?.(this.exchange, bytes)
  }

  readingOver(): void {
    clearTimeout(this.#over)
    // A deleted entry of a Map may be kept for long (see `OpenSet`): it must not keep the request.
    this.#end = nothing
    this.#head = undefined
  }
}

function kindOf(type: string): BodyKind {
  if (Object.hasOwn(BODIES, type)) return BODIES[type] as BodyKind
  return type.startsWith('text/') ? 'beginning' : 'nothing'
}
