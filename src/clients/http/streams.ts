/**
 * The event streams of one session over Streamable HTTP, how many it may have, and resuming one with `Last-Event-ID`
 * (MCP 2025-11-25, basic/transports, resumability).
 */
import type { Readable } from 'node:stream'
import { type Memory, type Reservation, SMALL } from '../../base/limits/memory.js'
import type { Id } from '../../base/rpc/message.js'
import type { Wire } from '../../base/rpc/source.js'
import { encodeEvent, KEEP_ALIVE, type PassedEvent, type PassedStream } from '../../base/rpc/sse.js'
import type { AboutMessage } from '../../mcp/protocol/upstream.js'
import type { Outlet } from '../legacy/session.js'
import { EventConnection } from './connection.js'
import { type EventStore, StoredEvents } from './event-store.js'
import { QueuedMessages } from './queued-messages.js'

/** Features of the client's revision. */
export interface StreamOptions {
  /** Events have ids, and streams can be resumed. */
  resumable: boolean
  /** A stream begins with an event that has an id and empty data. */
  priming: boolean
  /** The events are those of the server: it resumes its streams itself. */
  passes?: boolean
}

/** Most GET streams that a session may have open. */
export const MAX_STANDALONE = 4
/** Milliseconds that a client should wait before it resumes. */
const RETRY = 1_000

/** A change of the connection of a stream. `left`: it was closed before the end of the stream. */
export type ConnectionChange = 'opened' | 'left' | 'resumed' | 'ended'

/** How the answer to a POST becomes an event stream. */
export interface PostOptions {
  begin: (stream: EventStream) => void
  /** Milliseconds of silence after which it does. */
  commitAfter: number
}

/** One event stream. A client that resumes it continues on another connection. */
export class EventStream implements PassedStream {
  readonly id: string
  /** The id of the request that it answers, if it is a single one. */
  readonly request: Id | undefined
  readonly #owner: Streams
  /** Number of the last event. */
  last = 0
  #connection: EventConnection | undefined
  /** Whether the first connection is still to come. */
  awaited = true
  /** Events from before the first connection. */
  #early: Wire[] | undefined
  /** Connects the answer to a POST. Set as long as it may become an event stream and is none. */
  begin: ((stream: EventStream) => void) | undefined
  #commit: NodeJS.Timeout | undefined
  /** The last event has been pushed. */
  ended = false

  constructor(owner: Streams, id: string, request?: Id, post?: PostOptions) {
    this.#owner = owner
    this.id = id
    this.request = request
    if (!post) return
    this.begin = post.begin
    this.#commit = setTimeout(() => this.open(), post.commitAfter)
  }

  get connected(): boolean {
    return this.#connection !== undefined
  }

  /** Opens a connection: with the stored events in `after`, or at the beginning of the stream. */
  connect(after?: readonly Wire[]): Readable {
    this.#connection?.end()
    const connection = new EventConnection(this.#owner.reserve(), () => {
      if (this.#connection === connection) this.#connection = undefined
      this.#owner.disconnected(this)
    })
    this.#connection = connection
    const { priming, passes } = this.#owner.options
    const primed = after === undefined && priming
    // Clients wait for the headers, which are sent with the first bytes.
    if (!passes) connection.readable.push(primed ? `id: ${this.id}-0\nretry: ${RETRY}\ndata: \n\n` : KEEP_ALIVE)
    const early = this.#early ?? []
    this.#early = undefined
    this.awaited = false
    for (const event of after ?? early) connection.write(event)?.catch(() => {})
    if (this.ended) connection.end()
    return connection.readable
  }

  /**
   * Sends one message, as the event that has brought it; the last one ends the stream. Without memory for it, sends `instead`, or
   * else closes the connection. The promise resolves when there is room for more; undefined if there is room now.
   */
  push(message: Wire, last = false, instead?: () => Wire, passed?: PassedEvent): Promise<void> | undefined {
    if (this.ended) return undefined
    const connection = this.#connection
    const text = instead && connection?.admits(message) === false ? instead() : message
    const { resumable } = this.#owner.options
    const number = ++this.last
    const id = resumable ? `${this.id}-${number}` : passed?.id
    const event = (text === message && passed?.raw) || encodeEvent(text, { id, retry: passed?.retry })
    if (resumable) this.#owner.stored.keepEvent(this, number, event)
    if (this.awaited) {
      this.#early ??= []
      this.#early.push(event)
      this.open()
    }
    const written = connection?.write(event)
    if (last) this.end()
    return written
  }

  pass(message: Wire, event: PassedEvent): Promise<void> | undefined {
    return this.push(message, false, undefined, event)
  }

  end(): void {
    this.ended = true
    this.#connection?.end()
  }

  keepAlive(): void {
    this.#connection?.keepAlive()
  }

  /** Makes the answer to a POST an event stream, unless it is one already. */
  open(): this {
    const { begin } = this
    this.begin = undefined
    clearTimeout(this.#commit)
    begin?.(this)
    return this
  }

  /** Removes the stream: its answer is complete, or is sent in another way. `isGone`: the client has disconnected before it got one. */
  leaveStream(isGone: boolean): void {
    clearTimeout(this.#commit)
    if (this.awaited && isGone) this.#owner.onConnection(this, 'left')
    this.awaited = false
    this.#owner.forgetStream(this)
  }
}

/** All streams of a session, and the events stored for resuming. */
export class Streams implements Outlet {
  /** Set when the session is open. */
  options: StreamOptions = { resumable: false, priming: false }
  /** Ends the session, if it is open. */
  onEnd = () => {}
  /** Called when a stream is connected or disconnected, except for the first connection of an answer. */
  onConnection: (stream: EventStream, change: ConnectionChange) => void = () => {}
  readonly principal: string
  readonly stored: StoredEvents<EventStream>
  readonly #memory: Memory
  #lastId = 0
  /** Streams that answer a request, newest last. */
  readonly #answering = new Set<EventStream>()
  /** GET streams, connected or waiting to be resumed, newest last. */
  #standalone: EventStream[] = []
  readonly #queued: QueuedMessages
  /** The GET streams end with the last open request. */
  #ends = false
  /** Called when no request is open any more. */
  #whenAnswered: (() => void) | undefined

  constructor(principal: string, store: EventStore) {
    this.principal = principal
    this.stored = new StoredEvents(principal, store)
    this.#memory = store.memory
    this.#queued = new QueuedMessages(this.reserve(), () => this.#ofRequest)
  }

  /** Begins a reservation for messages on their way to the client. */
  reserve(): Reservation {
    return this.#memory.reserve(this.principal, SMALL)
  }

  /** Whether a stream of the session is connected. */
  get connected(): boolean {
    return this.#all.some(({ connected }) => connected)
  }

  /** Whether the client has opened GET streams, and none is connected now. */
  get left(): boolean {
    return this.#standalone.length > 0 && !this.#standalone.some(({ connected }) => connected)
  }

  /** Creates a stream for the answer to a request or a batch. */
  streamFor(request?: Id, post?: PostOptions): EventStream {
    const stream = new EventStream(this, `p${++this.#lastId}`, request, post)
    this.#answering.add(stream)
    if (this.#queued.hasQuestions) this.#queued.askLater()
    return stream
  }

  /** Removes a stream whose answer was sent in another way or is complete. */
  forgetStream(stream: EventStream): void {
    // A deleted entry of a Set may be kept for long (see `OpenSet`): it must not keep the request.
    stream.begin = undefined
    this.#answering.delete(stream)
    if (this.#ends) this.endStandalone()
    if (this.#whenAnswered && this.#answering.size === 0) this.#whenAnswered()
  }

  /** Opens a GET stream; undefined if too many are open. */
  listen(): Readable | undefined {
    const stream = this.openStandalone()
    return stream && this.#flushed(stream, stream.connect())
  }

  /** A GET stream, not connected yet; undefined if too many are open. */
  openStandalone(): EventStream | undefined {
    const disconnected = this.#standalone.filter((stream) => !stream.connected)
    if (this.#standalone.length - disconnected.length >= MAX_STANDALONE) return undefined
    const stream = new EventStream(this, `g${++this.#lastId}`)
    const forgotten = disconnected.slice(0, -MAX_STANDALONE)
    this.#standalone = [...this.#standalone.filter((one) => !forgotten.includes(one)), stream]
    this.onConnection(stream, 'opened')
    return stream
  }

  /**
   * Resumes a stream after an event. Undefined if that is impossible: the event is unknown, later events are no longer
   * stored, or it was the last one of an ended stream.
   */
  resume(lastEventId: string): Readable | undefined {
    const [, id, digits] = /^([pg][0-9]{1,9})-([0-9]{1,9})$/.exec(lastEventId) ?? []
    if (id === undefined) return undefined
    this.stored.forgetOld()
    const after = Number(digits)
    const stream = this.#find(id)
    if (!stream || after > stream.last || (stream.ended && after === stream.last)) return undefined
    const rest = this.stored.after(stream, after)
    if (rest.length < stream.last - after) return undefined
    this.onConnection(stream, 'resumed')
    return this.#flushed(stream, stream.connect(rest))
  }

  /** Sends a message that belongs to no request on exactly one stream, or stores it until there is one. */
  deliver(text: Wire, about: AboutMessage = {}): void {
    const { kind, key, event } = about
    if (event?.on) return void event.on.pass(text, event)?.catch(() => {})
    if (kind === 'withdrawal' && this.#queued.dropMessage(key)) return
    const stream = this.#standalone.findLast(isOpen) ?? (kind === 'question' ? undefined : this.#ofRequest)
    if (stream) stream.push(text)?.catch(() => {})
    else this.#queued.addMessage(text, about)
  }

  isIdle(): boolean {
    return !this.connected
  }

  ended(): void {
    // The session may still be about to open, or a message without an answer to be refused.
    setImmediate(() => this.#onceAnswered(() => this.onEnd()))
  }

  /** A client waits for ever for an answer that the end of its session has cut off. */
  #onceAnswered(end: () => void): void {
    if (this.#answering.size === 0) end()
    else this.#whenAnswered = end
  }

  disconnected(stream: EventStream): void {
    if (stream.ended) this.forgetStream(stream)
    if (this.options.passes) this.dropStandalone(stream)
    // Another connection may have replaced this one.
    if (!stream.connected) this.onConnection(stream, stream.ended ? 'ended' : 'left')
  }

  /** Forgets a GET stream, which nobody resumes here. */
  dropStandalone(stream: EventStream): void {
    this.#standalone = this.#standalone.filter((other) => other !== stream)
  }

  /** Sends a keep-alive on all streams, and drops expired events. */
  keepAlive(): void {
    this.stored.forgetOld()
    for (const stream of this.#all) stream.keepAlive()
  }

  /** Ends the GET streams: those of the server as soon as no request is open, because until then it may ask its client on one. */
  endStandalone(): void {
    this.#ends = true
    if (this.options.passes && this.#answering.size > 0) return
    for (const stream of this.#standalone) stream.end()
  }

  /** Ends the GET streams, and everything else as soon as no request is open. */
  closeOnceAnswered(): void {
    for (const stream of this.#standalone) stream.end()
    this.#onceAnswered(() => this.close())
  }

  /** Ends all streams and drops all stored events. */
  close(): void {
    this.#whenAnswered = undefined
    for (const stream of this.#all) stream.end()
    this.#queued.close()
    this.stored.end()
  }

  /** The stream of a request for messages that belong to none: the newest one. */
  get #ofRequest(): EventStream | undefined {
    const answering = [...this.#answering]
    return answering.findLast(isOpen) ?? answering.findLast(({ awaited }) => awaited)
  }

  get #all(): readonly EventStream[] {
    return [...this.#answering, ...this.#standalone]
  }

  #find(id: string): EventStream | undefined {
    const is = (stream: EventStream) => stream.id === id
    return this.#all.find(is) ?? this.stored.find(is)
  }

  #flushed(stream: EventStream, connection: Readable): Readable {
    this.flushTo(stream)
    return connection
  }

  /** Sends on a stream what has waited for one. Nothing can be sent on an ended one. */
  flushTo(stream: EventStream): void {
    if (!stream.ended) this.#queued.flush(stream, this.#standalone.includes(stream) ? 'all' : 'others')
  }
}

/** Nothing can be sent on a stream that has ended, also while its connection is there. */
function isOpen({ connected, ended }: EventStream): boolean {
  return connected && !ended
}
