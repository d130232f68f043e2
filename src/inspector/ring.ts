/** The events of the inspector: the newest ones in a bounded ring, and retention classes for events that stay longer. It holds no secrets. */

import type { Wire } from '../base/rpc/source.js'
import { isFailure } from '../mcp/ports/outcome.js'
import { CallKinds } from './call-kinds.js'
import { CallRetention } from './call-retention.js'
import { EventSlots } from './event-slots.js'
import { Eviction } from './eviction.js'
import { MESSAGE_BYTES, MessageKinds } from './message-kinds.js'
import { OpenSessions, type SessionCounts } from './open-sessions.js'
import { PerSecond } from './per-second.js'
import {
  type CallTrace,
  callId,
  callNumber,
  type KeptText,
  type RecordEvent,
  type RecordedEvent,
  type TraceEvent,
} from './recorder/events.js'
import type { MessageTrace } from './recorder/message.js'
import { type KeptEvent, RetainedEvents, type RetentionClass } from './retained-events.js'
import { SecretArguments } from './secret-arguments.js'
import { MAX_SHORT_TEXT, short } from './short.js'
import { StoredCopies, weightOf } from './stored-copies.js'
import { type Payloads, StoredTexts } from './stored-texts.js'

/** Bounds of a ring. At a bound, the oldest entries leave. */
export interface RingBounds {
  calls: number
  /** Messages, and all other events that do not begin a call. */
  messages: number
  bytes: number
}

export const RING: RingBounds = { calls: 2_000, messages: 20_000, bytes: 16 * 1024 * 1024 }

/**
 * Shares of the bytes: the newest events, retained events, which stay longer, the texts of all calls, and texts that stay
 * longer.
 */
const BYTES = { events: 4 / 16, retained: 3 / 16, passing: 5 / 16, lasting: 4 / 16 }

/** Most refusals, and most lines of stderr, recorded per second. */
const MOST = { refusals: 20, lines: 50 }
/** Calls whose retention class is remembered, per call in the ring: a call may run while many others end. */
const FATES = 4
/** Rooms that stay when a viewer clears the memory: their events describe the current state. */
const UNCLEARED: readonly RetentionClass[] = ['running', 'opening', 'servers', 'sessions', 'pinned']

/** The events of one bridge. */
export class Ring {
  readonly #bounds: RingBounds
  readonly #now: () => number
  /** Event times count from here, in milliseconds since 1970. */
  readonly #origin: number
  readonly #events: EventSlots
  readonly #retained: RetainedEvents
  readonly #callRetention: CallRetention
  readonly #eviction: Eviction
  readonly #texts: StoredTexts
  readonly #copies: StoredCopies
  readonly #messageKinds: MessageKinds
  readonly #callKinds: CallKinds
  readonly #openSessions = new OpenSessions()
  #recorded = 0
  /** When a viewer cleared it, in milliseconds since 1970. */
  cleared: number | undefined
  /** Anyone can cause refusals, and programs write any number of lines: neither may evict calls. */
  readonly #refusals = this.#perSecond('refusals', 'Refused requests')
  readonly #lines = this.#perSecond('lines', 'Lines of stderr')
  /** An array, because a set makes an iterator for each event. */
  #listeners: readonly (() => void)[] = []
  /** Secret arguments of the servers' tools. */
  readonly secretArguments = new SecretArguments()

  constructor({
    bounds = RING,
    payloads = 'off',
    /** Milliseconds since the origin, which is in milliseconds since 1970. */
    now = () => performance.now(),
    origin = performance.timeOrigin,
    /** The id of the recording replica, if there are several. */
    replica,
    /** Its events were recorded by other rings. */
    isMerged = false,
  }: {
    bounds?: RingBounds
    payloads?: Payloads
    now?: () => number
    origin?: number
    replica?: string | undefined
    isMerged?: boolean
  } = {}) {
    this.#copies = new StoredCopies(isMerged)
    this.#messageKinds = new MessageKinds(this.#copies)
    this.#callKinds = new CallKinds(this.#copies)
    this.#bounds = bounds
    this.#now = now
    this.#origin = origin
    // One more, because an event is added before the ones it replaces are removed.
    const most = Math.min(bounds.calls + bounds.messages, (bounds.bytes * BYTES.events) / MESSAGE_BYTES)
    this.#events = new EventSlots(Math.ceil(most) + 1, origin, replica)
    this.#retained = new RetainedEvents(bounds.bytes * BYTES.retained)
    this.#callRetention = new CallRetention(FATES * Math.min(bounds.calls, most))
    this.#eviction = new Eviction(this.#events, this.#callRetention)
    const { passing, lasting } = BYTES
    const textBytes = { passing: bounds.bytes * passing, lasting: bounds.bytes * lasting }
    this.#texts = new StoredTexts(this.#events, payloads, textBytes)
  }

  /** The current time on the clock of the events, in milliseconds since 1970. */
  get time(): number {
    return this.#origin + this.#now()
  }

  /** The number of the last event; 0 without any. */
  get last(): number {
    return this.#events.next - 1
  }

  /** Approximate bytes of the stored events. */
  get bytes(): number {
    return this.#events.bytes + this.#retained.bytes + this.#texts.bytes
  }

  /** Approximate bytes of all events ever recorded. */
  get recorded(): number {
    return this.#recorded + this.#texts.written
  }

  /** Which payloads are stored now, and until when (milliseconds since 1970) if that is temporary. */
  get kept(): { payloads: Payloads; until?: number } {
    const { until, ...kept } = this.#texts.keptAt(this.#now())
    return until === undefined ? kept : { ...kept, until: this.#origin + until }
  }

  /** Whether the text of any message is stored. */
  get hasTexts(): boolean {
    return this.#texts.written > 0
  }

  /** Stores the payloads of all calls for this many milliseconds. 0 returns to the configured mode. */
  keepAll(milliseconds: number): void {
    this.#texts.keepAll(this.#now() + milliseconds)
  }

  /** Open sessions of a server, including those whose events were dropped. */
  openSessions(server: string): SessionCounts {
    return this.#openSessions.of(server)
  }

  /** The number of the event from which on all are stored; `last` + 1 if none is. Of earlier ones, some are stored. */
  get first(): number {
    return this.#events.first
  }

  /** The number of the next stored event after this number. */
  next(number: number): number | undefined {
    const next = Math.max(this.first, number + 1)
    const earlier = next > number + 1 ? this.#retained.next(number) : undefined
    if (earlier !== undefined && earlier < next) return earlier
    return next <= this.last ? next : undefined
  }

  /** Events after the one with this number, oldest first. Skips those dropped before they are read. */
  *after(number: number): Generator<RecordedEvent, void> {
    for (let next = this.next(number); next !== undefined; next = this.next(next)) yield this.event(next)
  }

  /** The event with this number, which must be stored, without its text. */
  event(number: number): RecordedEvent {
    return JSON.parse(this.json(number)) as RecordedEvent
  }

  /** The JSON of the event with this number, in one line. The number is as in `event`. */
  json(number: number): string {
    return number < this.first ? (this.#retained.get(number)?.json ?? '') : this.#events.json(number)
  }

  /** The text of the event with this number; undefined if it is not stored. */
  text(number: number): KeptText | undefined {
    const event = this.#retained.get(number) ?? (number < this.first ? undefined : this.#storedOf(number))
    return event?.isHidden ? undefined : event?.text?.()
  }

  /** The ids of the pinned calls. */
  get pinned(): string[] {
    return this.#retained.pinned.map(callId)
  }

  /** Keeps the events of a call until it is unpinned. Returns false if there is no room; undefined if the call is unknown. */
  pin(id: string): boolean | undefined {
    const call = callNumber(id)
    const numbers = [...this.#events.eventsOf(call)].toReversed()
    const [first] = numbers
    if (first === undefined && !this.#retained.has(call)) return undefined
    const server = first === undefined ? '' : this.#events.groupOf(first).server
    const events = numbers.map((number) => this.#storedOf(number))
    const isPinned = this.#retained.pin(call, events, server, this.#callRetention.of(call))
    if (isPinned) this.#callRetention.set(call, 'pinned')
    return isPinned
  }

  /** Moves a pinned call back to its class, or drops it. */
  unpin(id: string): void {
    const call = callNumber(id)
    if (this.#retained.pinned.includes(call)) this.#callRetention.set(call, this.#retained.unpin(call, this.first))
  }

  /** Drops all events except those of pinned and running calls, open sessions and states of servers. */
  clear(): void {
    while (this.#events.length > 0) this.#shift(UNCLEARED)
    this.#retained.clear(UNCLEARED)
    this.cleared = this.time
  }

  /** Calls back after each event, until the returned function is called. */
  listen(listener: () => void): () => void {
    this.#listeners = [...this.#listeners, listener]
    return () => {
      this.#listeners = this.#listeners.filter((one) => one !== listener)
    }
  }

  readonly record: RecordEvent = (event, text) => {
    const at = event.now ?? this.#now()
    if (event.kind === 'message') this.#message(at, event, text)
    else if (event.kind === 'call') this.#call(at, event)
    else this.#other(at, event)
    this.#evict()
    for (const listener of this.#listeners) listener()
    return this.last
  }

  #message(at: number, event: MessageTrace, text: Wire | undefined): void {
    this.secretArguments.note(event, text)
    const id = typeof event.id === 'string' ? short(event.id) : event.id
    const kind = this.#messageKinds.of(event)
    const weight = kind.weight + (typeof id === 'string' ? id.length : 0)
    this.#recorded += weight
    const number = this.#events.addMessage(at, weight, event, kind, id)
    if (text !== undefined) this.#texts.add(text, number, at, event)
  }

  #call(at: number, event: CallTrace): void {
    if (event.call !== undefined) {
      if (event.what === 'begun') this.#callRetention.begin(event.call, event.continues)
      else this.#end(event.call, event)
    }
    const kind = this.#callKinds.of(event)
    const weight = kind.weight + Math.min(event.why?.length ?? 0, MAX_SHORT_TEXT)
    this.#recorded += weight
    this.#events.addCall(at, weight, event, kind)
  }

  #other(at: number, event: Exclude<TraceEvent, { kind: 'message' | 'call' }>): void {
    const isLine = event.kind === 'child' && event.what === 'stderr'
    const limit = event.kind === 'refused' ? this.#refusals : isLine ? this.#lines : undefined
    if (limit?.admits(at) === false) return limit.leaveOut()
    if (event.kind === 'session' && event.session !== undefined)
      this.#openSessions.note(event, this.#copies.digestOf(event.session))
    if (event.call !== undefined) this.#callRetention.ask(event.call)
    const copy = this.#copies.eventOf(event)
    const weight = weightOf(copy)
    this.#recorded += weight
    this.#events.addOther(at, copy, weight, event.call)
  }

  /** A call has ended. The payloads of a failed call stay longer, and become visible. */
  #end(call: number, event: CallTrace): void {
    this.#retained.move(call, this.#callRetention.end(call, event))
    if (!isFailure(event.outcome) || !this.hasTexts) return
    for (const number of this.#events.eventsOf(call)) this.#texts.makeLasting(number)
  }

  /** An event of the ring, with a function that reads its text. */
  #storedOf(number: number): KeptEvent {
    const text = this.#texts.of(number)
    return { number, json: this.#events.json(number), text: text?.read, isHidden: text?.isHidden ?? false }
  }

  #perSecond(what: 'refusals' | 'lines', words: string): PerSecond {
    const text = `${words} were not recorded, because more than ${MOST[what]} came within a second`
    return new PerSecond(MOST[what], (count) => this.record({ kind: 'lost', what, text, count }))
  }

  #evict(): void {
    const { calls, messages, bytes } = this.#bounds
    const events = this.#events
    while (
      events.calls > calls ||
      events.length - events.calls > messages ||
      (events.bytes > bytes * BYTES.events && events.length > 0)
    )
      this.#shift()
  }

  /** Removes the first event. Keeps it if its class is among these. */
  #shift(classes?: readonly RetentionClass[]): void {
    const events = this.#events
    const { first } = events
    const retention = this.#eviction.classOf(first)
    if (retention !== undefined && (classes?.includes(retention) ?? true)) {
      const { isHidden } = this.#storedOf(first)
      this.#texts.makeLasting(first)
      this.#retained.add(retention, { ...this.#storedOf(first), isHidden }, events.groupOf(first))
    }
    events.shift()
  }
}
