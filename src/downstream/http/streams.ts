/**
 * The event streams of one session over Streamable HTTP (MCP 2025-11-25, basic/transports, resumability): what is said on
 * a stream is kept for a while, so that a client that has lost the connection can have the rest.
 */
import type { Readable } from 'node:stream'
import { type Loan, SMALL } from '../../protocol/memory.js'
import { lengthOf, type Wire } from '../../rpc/source.js'
import { encodeEvent, KEEP_ALIVE } from '../../rpc/sse.js'
import { EventConnection } from './connection.js'
import type { EventStore, Keeper } from './event-store.js'

export interface StreamOptions {
  /** Events have ids, and streams can be taken up again. */
  resumable: boolean
  /** A stream begins with an event that has an id and no data. */
  priming: boolean
}

interface Kept {
  stream: EventStream
  number: number
  event: Wire
  size: number
  at: number
}

/** What is kept for clients that come back. */
const KEEP = { events: 1_000, bytes: 4 * 1024 * 1024, milliseconds: 300_000 }
/** Streams for the server's own messages that may be open at once. */
export const MAX_STANDALONE = 4
/** Messages that wait for a stream to be opened. */
const MAX_QUEUED = 256
/** Milliseconds that a client is asked to wait before it comes back. */
const RETRY = 1_000

/** One stream of events, over as many connections as it takes. */
export class EventStream {
  readonly id: string
  readonly #owner: Streams
  #number = 0
  #connection: EventConnection | undefined
  /** What was said before anybody connected; undefined once somebody has. */
  #early: Wire[] | undefined = []
  #demand: () => void = () => {}
  /** Resolves when something has been said that waits for a connection. */
  readonly demanded = new Promise<void>((resolve) => {
    this.#demand = resolve
  })
  /** The last event has been pushed. */
  ended = false

  constructor(owner: Streams, id: string) {
    this.#owner = owner
    this.id = id
  }

  get connected(): boolean {
    return this.#connection !== undefined
  }

  /** Nobody has connected yet, and somebody will. */
  get awaited(): boolean {
    return this.#early !== undefined
  }

  /** Something has been said that waits for a connection. */
  get asked(): boolean {
    return (this.#early?.length ?? 0) > 0
  }

  get last(): number {
    return this.#number
  }

  /** Opens a connection that begins with what is kept after an event, or with the beginning of the stream. */
  connect(after?: readonly Kept[]): Readable {
    this.#connection?.end()
    const connection = new EventConnection(this.#owner.borrow(SMALL), () => {
      if (this.#connection === connection) this.#connection = undefined
      this.#owner.disconnected(this)
    })
    this.#connection = connection
    const primed = after === undefined && this.#owner.options.priming
    // Headers go out with the first bytes, and clients wait for them.
    connection.readable.push(primed ? `id: ${this.id}-0\nretry: ${RETRY}\ndata: \n\n` : KEEP_ALIVE)
    const early = this.#early?.splice(0) ?? []
    this.#early = undefined
    for (const event of after ? after.map((kept) => kept.event) : early) connection.write(event)?.catch(() => {})
    if (this.ended) connection.end()
    return connection.readable
  }

  /**
   * Says one message; the last one ends the stream. Where there is no memory for it, `instead` is said, or else the
   * connection is cut. Resolves when there is room for more, if that takes waiting.
   */
  push(message: Wire, last = false, instead?: () => Wire): Promise<void> | undefined {
    if (this.ended) return undefined
    const connection = this.#connection
    const text = instead && connection?.admits(message) === false ? instead() : message
    const { resumable } = this.#owner.options
    const number = ++this.#number
    const event = resumable ? encodeEvent(text, { id: `${this.id}-${number}` }) : encodeEvent(text)
    if (resumable) this.#owner.keep(this, number, event)
    if (!connection && this.#early) {
      this.#early.push(event)
      this.#demand()
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
}

/** All streams of a session, and what is kept of them. */
export class Streams implements Keeper {
  /** Known when the session is open. */
  options: StreamOptions = { resumable: false, priming: false }
  readonly principal: string
  readonly #store: EventStore
  readonly #kept: Kept[] = []
  #keptBytes = 0
  /** What is kept, and what waits for a stream. */
  readonly #loans: { kept: Loan; queued: Loan }
  #lastId = 0
  /** Streams that answer a request; newest last. */
  readonly #answering = new Set<EventStream>()
  /** Streams for the server's own messages, connected or waiting to be taken up again; newest last. */
  #standalone: EventStream[] = []
  #queued: { key: string | undefined; text: Wire }[] = []

  constructor(principal: string, store: EventStore) {
    this.principal = principal
    this.#store = store
    this.#loans = { kept: this.borrow(), queued: this.borrow(SMALL) }
  }

  /** Bytes that are kept. */
  get kept(): number {
    return this.#keptBytes
  }

  /** Begins a loan for something of this session. */
  borrow(free = 0): Loan {
    return this.#store.memory.borrow(this.principal, free)
  }

  /** Whether anybody is connected. */
  get connected(): boolean {
    return [...this.#answering, ...this.#standalone].some(({ connected }) => connected)
  }

  /** Whether the client had opened a stream for the server's own messages, and has none now. */
  get left(): boolean {
    return this.#standalone.length > 0 && !this.#standalone.some(({ connected }) => connected)
  }

  /** A stream for the answer to a request. It is kept here from its first connection on. */
  answer(): EventStream {
    const stream = new EventStream(this, `p${++this.#lastId}`)
    this.#answering.add(stream)
    return stream
  }

  /** The answer went out in another way, or is over. */
  done(stream: EventStream): void {
    this.#answering.delete(stream)
  }

  /** A connection for the server's own messages; undefined where there are too many. */
  listen(): Readable | undefined {
    const left = this.#standalone.filter((stream) => !stream.connected)
    if (this.#standalone.length - left.length >= MAX_STANDALONE) return undefined
    const stream = new EventStream(this, `g${++this.#lastId}`)
    const forgotten = left.slice(0, -MAX_STANDALONE)
    this.#standalone = [...this.#standalone.filter((one) => !forgotten.includes(one)), stream]
    return this.#flushed(stream, stream.connect())
  }

  /**
   * Takes a stream up after an event. Undefined where nothing can be had: the event is unknown or no longer kept, or it was
   * the last one of its stream.
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
    return this.#flushed(stream, stream.connect(rest))
  }

  /**
   * Says a message that belongs to no request on exactly one stream, or keeps it until there is one. Of messages with the
   * same key that wait, the last one is enough.
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
    if (this.#queued.length >= MAX_QUEUED) return
    const bytes = this.#queued.reduce((sum, waiting) => sum + lengthOf(waiting.text), lengthOf(text))
    if (this.#loans.queued.hold(bytes) === undefined) this.#queued.push({ key, text })
  }

  keep(stream: EventStream, number: number, event: Wire): void {
    const size = lengthOf(event)
    this.#kept.push({ stream, number, event, size, at: performance.now() })
    this.#keptBytes += size
    this.#store.add(this)
    while (this.#kept.length > KEEP.events || this.#keptBytes > KEEP.bytes) this.#forgetOldest()
    while (this.#kept.length > 0 && this.#loans.kept.hold(this.#keptBytes)) this.#forgetOldest()
    this.#keptLess()
  }

  /** Gives up what has been kept longest. */
  forgetOldest(): void {
    this.#forgetOldest()
    this.#keptLess()
  }

  disconnected(stream: EventStream): void {
    if (stream.ended) this.done(stream)
  }

  keepAlive(): void {
    this.#forgetOld()
    for (const stream of this.#answering) stream.keepAlive()
    for (const stream of this.#standalone) stream.keepAlive()
  }

  endStandalone(): void {
    for (const stream of this.#standalone) stream.end()
  }

  /** Ends all streams: there is nothing to come back for. */
  close(): void {
    for (const stream of [...this.#answering, ...this.#standalone]) stream.end()
    this.#kept.length = 0
    this.#keptBytes = 0
    this.#queued = []
    this.#store.remove(this)
    for (const loan of Object.values(this.#loans)) loan.end()
  }

  #find(id: string): EventStream | undefined {
    const open = [...this.#answering, ...this.#standalone].find((stream) => stream.id === id)
    return open ?? this.#kept.find(({ stream }) => stream.id === id)?.stream
  }

  #flushed(stream: EventStream, connection: Readable): Readable {
    // On one that is over there is nothing more to be said.
    const waiting = stream.ended ? [] : this.#queued.splice(0)
    if (!stream.ended) this.#loans.queued.hold(0)
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

  /** Gives back what is kept no longer. */
  #keptLess(): void {
    this.#loans.kept.hold(this.#keptBytes)
    if (this.#kept.length === 0) this.#store.remove(this)
  }
}
