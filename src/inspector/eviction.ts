/** Chooses the retention class of an event that is evicted from the ring. */
import type { CallRetention } from './call-retention.js'
import { type EventSlots, MESSAGE, OTHER } from './event-slots.js'
import { isAnswer } from './recorder/events.js'
import type { RetentionClass } from './retained-events.js'
import { OPENING } from './server-views.js'
import type { Other } from './stored-copies.js'

/** The classes of events that are neither messages nor the start or end of a call. */
const CLASSES: Readonly<Record<Other['kind'], RetentionClass>> = {
  question: 'asked',
  verdict: 'servers',
  child: 'servers',
  session: 'sessions',
  stream: 'sessions',
  refused: 'refused',
  config: 'notes',
  trust: 'notes',
  lost: 'notes',
}
/** Most requests that open a server and wait for their answer. */
const MAX_OPENINGS = 1_000

export class Eviction {
  readonly #events: EventSlots
  readonly #callRetention: CallRetention
  /** Ids of requests that open a server, whose answers have not left yet. */
  readonly #openings = new Set<string>()

  constructor(events: EventSlots, callRetention: CallRetention) {
    this.#events = events
    this.#callRetention = callRetention
  }

  /** The class of the event with this number; undefined if it is dropped. Events leave in order. */
  classOf(number: number): RetentionClass | undefined {
    const code = this.#events.codeOf(number)
    const call = this.#events.callOf(number)
    if (call !== 0) return this.#callRetention.of(call)
    if (code === OTHER) {
      const other = this.#events.otherOf(number)
      return other.kind === 'child' && other['what'] === 'stderr' ? 'lines' : CLASSES[other.kind]
    }
    return code === MESSAGE && this.#isOpening(number) ? 'opening' : undefined
  }

  /** Whether a message opens a server, or answers one that does. */
  #isOpening(number: number): boolean {
    const kind = this.#events.messageKindOf(number)
    const { hop, dir, form, method, server } = kind
    if (hop !== 'server') return false
    const key = JSON.stringify([server, this.#events.messageIdOf(number)])
    if (dir === 'in') return isAnswer(kind) && this.#openings.delete(key)
    if (!OPENING.includes(method)) return false
    if (this.#openings.size >= MAX_OPENINGS) this.#openings.clear()
    if (form === 'request') this.#openings.add(key)
    return true
  }
}
