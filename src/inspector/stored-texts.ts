/** Stores the texts of messages: which ones, where, and when they are visible. */

import type { Wire } from '../base/rpc/source.js'
import { type EventSlots, HIDDEN, LASTING, PASSING } from './event-slots.js'
import type { KeptText } from './recorder/events.js'
import type { MessageTrace } from './recorder/message.js'
import { Texts } from './texts.js'

/** Which payloads are stored: none, those of failed calls, or all. */
export type Payloads = 'off' | 'errors' | 'all'

export class StoredTexts {
  readonly #events: EventSlots
  readonly #payloads: Payloads
  /** The payloads of all calls are stored until then, in milliseconds since the origin. */
  #allUntil = Number.NEGATIVE_INFINITY
  /** Those of all calls; with `errors`, those of calls that have not failed are hidden. */
  readonly #passing: Texts
  /** Those of failed calls, and of events that stay longer. */
  readonly #lasting: Texts

  /** Stores texts of the events in at most so many bytes each. */
  constructor(events: EventSlots, payloads: Payloads, bytes: { passing: number; lasting: number }) {
    this.#events = events
    this.#payloads = payloads
    this.#passing = new Texts(Math.floor(bytes.passing))
    this.#lasting = new Texts(Math.floor(bytes.lasting))
  }

  get bytes(): number {
    return this.#passing.bytes + this.#lasting.bytes
  }

  /** Approximate bytes of all texts ever stored. */
  get written(): number {
    return this.#passing.written
  }

  /** Which payloads are stored now, and until when if that is temporary. */
  keptAt(now: number): { payloads: Payloads; until?: number } {
    if (this.#payloads !== 'all' && now < this.#allUntil) return { payloads: 'all', until: this.#allUntil }
    return { payloads: this.#payloads }
  }

  /** Stores the payloads of all calls until then. */
  keepAll(until: number): void {
    this.#allUntil = until
  }

  /** Stores the text of a message if the mode requires it, or may require it when the call ends. */
  add(text: Wire, number: number, at: number, { call, bytes }: MessageTrace): void {
    const isShown = this.#payloads === 'all' || at < this.#allUntil
    if (!isShown && (this.#payloads === 'off' || call === undefined)) return
    const position = this.#passing.add(text, bytes)
    if (position !== undefined) this.#events.addText(number, position, isShown ? PASSING : HIDDEN)
  }

  /** Copies the text of an event to where texts stay longer. It becomes visible there. */
  makeLasting(number: number): void {
    const text = this.#events.textOf(number)
    if (!text || text.place === LASTING) return
    this.#events.addText(number, this.#lasting.copy(this.#passing, text.position), LASTING)
  }

  /** A function that reads the text of an event, and whether the text is hidden so far; undefined if it has none. */
  of(number: number): { read: () => KeptText | undefined; isHidden: boolean } | undefined {
    const found = this.#events.textOf(number)
    const texts = found?.place === LASTING ? this.#lasting : this.#passing
    return found && { read: () => texts.read(found.position), isHidden: found.place === HIDDEN }
  }
}
