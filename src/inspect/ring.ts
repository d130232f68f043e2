/** The newest events of the inspector, in a bounded ring. It never holds a secret. */

import { isFailure } from '../ports/outcome.js'
import type { KeptText, RecordEvent, RecordedEvent, TraceEvent } from '../recorder/events.js'
import type { MessageTrace } from '../recorder/message.js'
import type { Wire } from '../rpc/source.js'
import { PerSecond } from '../time/per-second.js'
import { CallKinds } from './call-kinds.js'
import { Copies, weightOf } from './kept.js'
import { MESSAGE_BYTES, MessageKinds } from './message-kinds.js'
import { OpenSessions, type SessionCounts } from './open-sessions.js'
import { SecretArguments } from './secret-arguments.js'
import { MAX_SHORT_TEXT, short } from './short.js'
import { Slots } from './slots.js'
import { Texts } from './texts.js'

/** Which payloads are stored: none, those of failed calls, or all. */
export type Payloads = 'off' | 'errors' | 'all'

/** Bounds of a ring. At a bound, the oldest entries are dropped; events and texts each have a share of the bytes. */
export interface RingBounds {
  calls: number
  /** Messages, and all other events that do not begin a call. */
  messages: number
  bytes: number
}

export const RING: RingBounds = { calls: 2_000, messages: 20_000, bytes: 16 * 1024 * 1024 }

/** Most refusals, and most lines of stderr, recorded per second. */
const MOST = { refusals: 20, lines: 50 }
/** The share of the bytes for texts, and, with `errors`, the part of it for texts of running calls. */
const TEXTS = 3 / 4
const WAITING = 1 / 4

/** The events of one bridge. */
export class Ring {
  readonly #bounds: RingBounds
  readonly #payloads: Payloads
  /** The payloads of all calls are stored until then, in milliseconds since the origin. */
  #allUntil = Number.NEGATIVE_INFINITY
  readonly #now: () => number
  /** Event times count from here, in milliseconds since 1970. */
  readonly #origin: number
  readonly #events: Slots
  readonly #texts: Texts
  /** With `errors`: texts of running calls, and of calls that succeeded. */
  readonly #waiting: Texts | undefined
  readonly #copies = new Copies()
  readonly #messageKinds = new MessageKinds(this.#copies)
  readonly #callKinds = new CallKinds(this.#copies)
  readonly #openSessions = new OpenSessions()
  #recorded = 0
  /** Anyone can cause refusals, and programs write any number of lines: neither may push calls out of the ring. */
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
  }: {
    bounds?: RingBounds
    payloads?: Payloads
    now?: () => number
    origin?: number
    replica?: string | undefined
  } = {}) {
    this.#bounds = bounds
    this.#payloads = payloads
    this.#now = now
    this.#origin = origin
    // One more, because an event is added before the ones it replaces are removed.
    const most = Math.min(bounds.calls + bounds.messages, (bounds.bytes * (1 - TEXTS)) / MESSAGE_BYTES)
    this.#events = new Slots(Math.ceil(most) + 1, origin, replica)
    const bytes = Math.floor(bounds.bytes * TEXTS)
    const waiting = payloads === 'errors' ? Math.floor(bytes * WAITING) : 0
    this.#texts = new Texts(bytes - waiting)
    this.#waiting = waiting > 0 ? new Texts(waiting) : undefined
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
    return this.#events.bytes + this.#texts.bytes + (this.#waiting?.bytes ?? 0)
  }

  /** Approximate bytes of all events ever recorded. */
  get recorded(): number {
    return this.#recorded + this.#texts.written
  }

  /** Which payloads are stored now, and until when (milliseconds since 1970) if that is temporary. */
  get kept(): { payloads: Payloads; until?: number } {
    if (this.#payloads !== 'all' && this.#now() < this.#allUntil)
      return { payloads: 'all', until: this.#origin + this.#allUntil }
    return { payloads: this.#payloads }
  }

  /** Whether the text of any message is stored. */
  get hasTexts(): boolean {
    return this.#texts.written > 0
  }

  /** Stores the payloads of all calls for this many milliseconds. 0 returns to the configured mode. */
  keepAll(milliseconds: number): void {
    this.#allUntil = this.#now() + milliseconds
  }

  /** Open sessions of a server, including those whose events were dropped. */
  openSessions(server: string): SessionCounts {
    return this.#openSessions.of(server)
  }

  /** The number of the oldest stored event; `last` + 1 without any. */
  get first(): number {
    return this.#events.first
  }

  /** Events after the one with this number, oldest first. Skips those dropped before they are read. */
  *after(number: number): Generator<RecordedEvent, void> {
    let next = number
    for (;;) {
      next = Math.max(next + 1, this.first)
      if (next > this.last) return
      yield this.event(next)
    }
  }

  /** The event with this number, which must not be below `first` or above `last`, without its text. */
  event(number: number): RecordedEvent {
    return JSON.parse(this.json(number)) as RecordedEvent
  }

  /** The JSON of the event with this number, in one line. The number is as in `event`. */
  json(number: number): string {
    return this.#events.json(number)
  }

  /** The text of the event with this number; undefined if it is not stored. */
  text(number: number): KeptText | undefined {
    const position = number < this.first ? undefined : this.#events.textOf(number)
    return position === undefined ? undefined : this.#texts.read(position)
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
    if (text !== undefined) this.#keep(text, number, at, event)
  }

  /** Stores the text of a message if the mode asks for it, or may ask for it when the call ends. */
  #keep(text: Wire, number: number, at: number, { call, bytes }: MessageTrace): void {
    const all = this.#payloads === 'all' || at < this.#allUntil
    const texts = all ? this.#texts : call === undefined ? undefined : this.#waiting
    const position = texts?.add(text, bytes)
    if (position !== undefined) this.#events.addText(number, position, texts === this.#waiting)
  }

  #call(at: number, event: Extract<TraceEvent, { kind: 'call' }>): void {
    if (event.what === 'ended') this.#decide(event)
    const kind = this.#callKinds.of(event)
    const weight = kind.weight + Math.min(event.why?.length ?? 0, MAX_SHORT_TEXT)
    this.#recorded += weight
    this.#events.addCall(at, weight, event, kind)
  }

  #other(at: number, event: Exclude<TraceEvent, { kind: 'message' | 'call' }>): void {
    const limit =
      event.kind === 'refused'
        ? this.#refusals
        : event.kind === 'child' && event.what === 'stderr'
          ? this.#lines
          : undefined
    if (limit?.admits(at) === false) return limit.leaveOut()
    if (event.kind === 'session' && event.session !== undefined)
      this.#openSessions.note(event, this.#copies.digestOf(event.session))
    const copy = this.#copies.eventOf(event)
    const weight = weightOf(copy)
    this.#recorded += weight
    this.#events.addOther(at, copy, weight)
  }

  /** With `errors`: keeps the payloads of a failed call. */
  #decide({ call, outcome }: Extract<TraceEvent, { kind: 'call' }>): void {
    const waiting = this.#waiting
    if (!waiting || call === undefined || !isFailure(outcome)) return
    this.#events.moveTexts(call, (position) => this.#texts.copy(waiting, position))
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
      (events.bytes > bytes * (1 - TEXTS) && events.length > 0)
    )
      events.shift()
  }
}
