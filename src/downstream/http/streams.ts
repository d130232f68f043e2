/**
 * The event streams of one session over Streamable HTTP, with the last events of each, so that a client can resume one
 * with `Last-Event-ID` (MCP 2025-11-25, basic/transports, resumability).
 */
import type { Readable } from 'node:stream'
import { type Reservation, SMALL } from '../../limits/memory.js'
import type { Id } from '../../rpc/message.js'
import { lengthOf, type Wire } from '../../rpc/source.js'
import { encodeEvent, KEEP_ALIVE } from '../../rpc/sse.js'
import type { Outlet } from '../legacy/session.js'
import { EventConnection } from './connection.js'
import type { EventStore, Keeper } from './event-store.js'

/** Features of the client's revision. */
export interface StreamOptions {
  /** Events have ids, and streams can be resumed. */
  resumable: boolean
  /** A stream begins with an event that has an id and empty data. */
  priming: boolean
}

interface Kept {
  stream: EventStream
  number: number
  event: Wire
  size: number
  at: number
}

/** Bounds of the events that a session stores for resuming. */
const KEEP = { events: 1_000, bytes: 4 * 1024 * 1024, milliseconds: 300_000 }
/** Most GET streams that a session may have open. */
export const MAX_STANDALONE = 4
/** Most messages that wait for a stream. More are dropped. */
const MAX_QUEUED_MESSAGES = 256
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

const NO_REVISION: StreamOptions = { resumable: false, priming: false }
const nothing = () => {}

/** One event stream. A client that resumes it continues on another connection. */
export class EventStream {
  readonly id: string
  /** The id of the request that it answers, if it is a single one. */
  readonly request: Id | undefined
  readonly #owner: Streams
  #number = 0
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

  /** Number of the last event. */
  get last(): number {
    return this.#number
  }

  /** Opens a connection: with the stored events in `after`, or at the beginning of the stream. */
  connect(after?: readonly Kept[]): Readable {
    this.#connection?.end()
    const connection = new EventConnection(this.#owner.reserve(SMALL), () => {
      if (this.#connection === connection) this.#connection = undefined
      this.#owner.disconnected(this)
    })
    this.#connection = connection
    const primed = after === undefined && this.#owner.options.priming
    // Clients wait for the headers, which are sent with the first bytes.
    connection.readable.push(primed ? `id: ${this.id}-0\nretry: ${RETRY}\ndata: \n\n` : KEEP_ALIVE)
    const early = this.#early ?? []
    this.#early = undefined
    this.awaited = false
    for (const event of after ? after.map((kept) => kept.event) : early) connection.write(event)?.catch(() => {})
    if (this.ended) connection.end()
    return connection.readable
  }

  /**
   * Sends one message; the last one ends the stream. Without memory for it, sends `instead`, or else closes the connection.
   * The promise resolves when there is room for more; undefined if there is room now.
   */
  push(message: Wire, last = false, instead?: () => Wire): Promise<void> | undefined {
    if (this.ended) return undefined
    const connection = this.#connection
    const text = instead && connection?.admits(message) === false ? instead() : message
    const { resumable } = this.#owner.options
    const number = ++this.#number
    const event = resumable ? encodeEvent(text, { id: `${this.id}-${number}` }) : encodeEvent(text)
    if (resumable) this.#owner.keep(this, number, event)
    if (this.awaited) {
      this.#early ??= []
      this.#early.push(event)
      this.open()
    }
    const written = connection?.write(event)
    if (last) this.end()
    return written
  }

  end(): void {
    this.ended = true
    this.#connection?.end()
  }

  keepAlive(): void {
    if (!this.ended) this.#connection?.keepAlive()
  }

  /** Makes the answer to a POST an event stream, unless it is one already. */
  open(): this {
    const { begin } = this
    this.begin = undefined
    clearTimeout(this.#commit)
    begin?.(this)
    return this
  }

  /** Removes the stream: its answer is complete, or is sent in another way. `isGone`: the client has disconnected. */
  leaveStream(isGone: boolean): void {
    clearTimeout(this.#commit)
    if (this.begin && isGone) this.#owner.onConnection(this, 'left')
    this.#owner.forgetStream(this)
  }

  /** Ends the stream of a client that disconnected before it got one: it cannot resume. Its call continues. */
  endUnopened(): void {
    this.end()
    this.#owner.onConnection(this, 'left')
    this.#owner.forgetStream(this)
  }
}

/** All streams of a session, and the events stored for resuming. */
export class Streams implements Keeper, Outlet {
  /** Set when the session is open. */
  options: StreamOptions = NO_REVISION
  /** Ends the session, if it is open. */
  onEnd: () => void = nothing
  /** Called when a stream is connected or disconnected, except for the first connection of an answer. */
  onConnection: (stream: EventStream, change: ConnectionChange) => void = nothing
  readonly principal: string
  readonly #store: EventStore
  readonly #kept: Kept[] = []
  #keptBytes = 0
  /** For stored events, and for messages that wait for a stream. */
  readonly #reservations: { kept: Reservation; queued: Reservation }
  #lastId = 0
  /** Streams that answer a request, newest last. */
  readonly #answering = new Set<EventStream>()
  /** GET streams, connected or waiting to be resumed, newest last. */
  #standalone: EventStream[] = []
  #queued: { key: string | undefined; text: Wire }[] = []

  constructor(principal: string, store: EventStore) {
    this.principal = principal
    this.#store = store
    this.#reservations = { kept: this.reserve(), queued: this.reserve(SMALL) }
  }

  /** Bytes of the stored events. */
  get kept(): number {
    return this.#keptBytes
  }

  /** Begins a reservation for this session. */
  reserve(free = 0): Reservation {
    return this.#store.memory.reserve(this.principal, free)
  }

  /** Whether a stream of the session is connected. */
  get connected(): boolean {
    return [...this.#answering, ...this.#standalone].some(({ connected }) => connected)
  }

  /** Whether the client has opened GET streams, and none is connected now. */
  get left(): boolean {
    return this.#standalone.length > 0 && !this.#standalone.some(({ connected }) => connected)
  }

  /** Creates a stream for the answer to a request or a batch. */
  streamFor(request?: Id, post?: PostOptions): EventStream {
    const stream = new EventStream(this, `p${++this.#lastId}`, request, post)
    this.#answering.add(stream)
    return stream
  }

  /** Removes a stream whose answer was sent in another way or is complete. */
  forgetStream(stream: EventStream): void {
    // A deleted entry of a Set may be kept for long (see `OpenSet`): it must not keep the request.
    stream.begin = undefined
    this.#answering.delete(stream)
  }

  /** Opens a GET stream; undefined if too many are open. */
  listen(): Readable | undefined {
    const disconnected = this.#standalone.filter((stream) => !stream.connected)
    if (this.#standalone.length - disconnected.length >= MAX_STANDALONE) return undefined
    const stream = new EventStream(this, `g${++this.#lastId}`)
    const forgotten = disconnected.slice(0, -MAX_STANDALONE)
    this.#standalone = [...this.#standalone.filter((one) => !forgotten.includes(one)), stream]
    this.onConnection(stream, 'opened')
    return this.#flushed(stream, stream.connect())
  }

  /**
   * Resumes a stream after an event. Undefined if that is impossible: the event is unknown, later events are no longer
   * stored, or it was the last one of an ended stream.
   */
  resume(lastEventId: string): Readable | undefined {
    const [, id, digits] = /^([pg][0-9]{1,9})-([0-9]{1,9})$/.exec(lastEventId) ?? []
    if (id === undefined) return undefined
    this.#forgetOld()
    const after = Number(digits)
    const stream = this.#find(id)
    if (!stream || after > stream.last || (stream.ended && after === stream.last)) return undefined
    const rest = this.#kept.filter((kept) => kept.stream === stream && kept.number > after)
    if (rest.length < stream.last - after) return undefined
    this.onConnection(stream, 'resumed')
    return this.#flushed(stream, stream.connect(rest))
  }

  /**
   * Sends a message that belongs to no request on exactly one stream, or stores it until there is one. While it waits, a
   * later message with the same key replaces it.
   */
  deliver(text: Wire, key?: string): void {
    const answering = [...this.#answering]
    const isOpen = ({ connected }: EventStream) => connected
    const stream =
      this.#standalone.findLast(isOpen) ?? answering.findLast(isOpen) ?? answering.findLast(({ awaited }) => awaited)
    if (stream) {
      stream.push(text)?.catch(() => {})
      return
    }
    if (key !== undefined) this.#queued = this.#queued.filter((waiting) => waiting.key !== key)
    if (this.#queued.length >= MAX_QUEUED_MESSAGES) return
    const bytes = this.#queued.reduce((sum, waiting) => sum + lengthOf(waiting.text), lengthOf(text))
    if (this.#reservations.queued.resize(bytes) === undefined) this.#queued.push({ key, text })
  }

  isIdle(): boolean {
    return !this.connected
  }

  /** The server has ended the session. */
  ended(): void {
    this.onEnd()
  }

  /** Stores an event for resuming, and drops the oldest events beyond the bounds. */
  keep(stream: EventStream, number: number, event: Wire): void {
    const size = lengthOf(event)
    this.#kept.push({ stream, number, event, size, at: performance.now() })
    this.#keptBytes += size
    this.#store.add(this)
    while (this.#kept.length > KEEP.events || this.#keptBytes > KEEP.bytes) this.#forgetOldest()
    while (this.#kept.length > 0 && this.#reservations.kept.resize(this.#keptBytes)) this.#forgetOldest()
    this.#keptLess()
  }

  /** Drops the oldest stored event. */
  forgetOldest(): void {
    this.#forgetOldest()
    this.#keptLess()
  }

  /** Handles the end of a connection. */
  disconnected(stream: EventStream): void {
    if (stream.ended) this.forgetStream(stream)
    // Another connection may have replaced this one.
    if (!stream.connected) this.onConnection(stream, stream.ended ? 'ended' : 'left')
  }

  /** Sends a keep-alive on all streams, and drops expired events. */
  keepAlive(): void {
    this.#forgetOld()
    for (const stream of this.#answering) stream.keepAlive()
    for (const stream of this.#standalone) stream.keepAlive()
  }

  /** Ends the GET streams. */
  endStandalone(): void {
    for (const stream of this.#standalone) stream.end()
  }

  /** Ends all streams and drops all stored events. */
  close(): void {
    for (const stream of [...this.#answering, ...this.#standalone]) stream.end()
    this.#kept.length = 0
    this.#keptBytes = 0
    this.#queued = []
    this.#store.remove(this)
    for (const reservation of Object.values(this.#reservations)) reservation.end()
  }

  #find(id: string): EventStream | undefined {
    const open = [...this.#answering, ...this.#standalone].find((stream) => stream.id === id)
    return open ?? this.#kept.find(({ stream }) => stream.id === id)?.stream
  }

  #flushed(stream: EventStream, connection: Readable): Readable {
    // Nothing can be sent on an ended stream.
    const waiting = stream.ended ? [] : this.#queued.splice(0)
    if (!stream.ended) this.#reservations.queued.resize(0)
    for (const { text } of waiting) stream.push(text)?.catch(() => {})
    return connection
  }

  #forgetOld(): void {
    const before = performance.now() - KEEP.milliseconds
    if (!this.#kept[0] || this.#kept[0].at >= before) return
    while (this.#kept[0] && this.#kept[0].at < before) this.#forgetOldest()
    this.#keptLess()
  }

  #forgetOldest(): void {
    this.#keptBytes -= this.#kept.shift()?.size ?? 0
  }

  /** Returns the memory of dropped events. */
  #keptLess(): void {
    this.#reservations.kept.resize(this.#keptBytes)
    if (this.#kept.length === 0) this.#store.remove(this)
  }
}
