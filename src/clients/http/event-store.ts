/**
 * Stores the last events of sessions (`KEEP`), so that clients can resume streams. Bounds the memory of all of them: if
 * others need memory, the sessions that store most drop events.
 */
import type { Memory, Reservation } from '../../base/limits/memory.js'
import { lengthOf, type Wire } from '../../base/rpc/source.js'

/** Bounds of the events that a session stores for resuming. */
const KEEP = { events: 1_000, bytes: 4 * 1024 * 1024, milliseconds: 300_000 }
/** Least part of the ledger that is freed at once, because finding the sessions that store most takes time. */
const AT_ONCE = 1 / 64

/** The sessions that store events. */
export class EventStore {
  readonly memory: Memory
  readonly sessions = new Set<StoredEvents<object>>()

  constructor(memory: Memory) {
    this.memory = memory
    memory.addKeeper((bytes, principal) => this.#giveUp(bytes, principal))
  }

  #giveUp(bytes: number, principal: string | undefined): void {
    const enough = Math.max(bytes, this.memory.max * AT_ONCE)
    let given = 0
    while (given < bytes) {
      const sessions = [...this.sessions].filter((one) => principal === undefined || one.principal === principal)
      sessions.sort((a, b) => b.bytes - a.bytes)
      const [largest] = sessions
      if (!largest || largest.bytes === 0) return
      // Large ones are reduced to the median, or to half of the largest if that is less.
      const target = Math.min(sessions[Math.floor(sessions.length / 2)]?.bytes ?? 0, largest.bytes / 2)
      for (const session of sessions) {
        const before = session.bytes
        while (session.bytes > target && given + before - session.bytes < enough) session.forgetOldest()
        given += before - session.bytes
        if (given >= enough) return
      }
    }
  }
}

interface StoredEvent<S> {
  stream: S
  number: number
  event: Wire
  size: number
  at: number
}

/** The stored events of one session, whose streams are of type S. */
export class StoredEvents<S extends object> {
  readonly principal: string
  readonly #store: EventStore
  readonly #reservation: Reservation
  readonly #events: StoredEvent<S>[] = []
  #bytes = 0

  constructor(principal: string, store: EventStore) {
    this.principal = principal
    this.#store = store
    this.#reservation = store.memory.reserve(principal)
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Stores an event, and drops the oldest ones beyond the bounds. */
  keepEvent(stream: S, number: number, event: Wire): void {
    const size = lengthOf(event)
    this.#events.push({ stream, number, event, size, at: performance.now() })
    this.#bytes += size
    this.#store.sessions.add(this)
    while (this.#events.length > KEEP.events || this.#bytes > KEEP.bytes) this.#drop()
    while (this.#events.length > 0 && this.#reservation.resize(this.#bytes)) this.#drop()
    this.#settle()
  }

  /** The stored events of a stream after the event with this number. */
  after(stream: S, number: number): readonly Wire[] {
    return this.#events.flatMap((one) => (one.stream === stream && one.number > number ? [one.event] : []))
  }

  /** The first stored event's stream that `is` accepts. */
  find(is: (stream: S) => boolean): S | undefined {
    return this.#events.find(({ stream }) => is(stream))?.stream
  }

  forgetOldest(): void {
    this.#drop()
    this.#settle()
  }

  forgetOld(): void {
    const before = performance.now() - KEEP.milliseconds
    while (this.#events[0] && this.#events[0].at < before) this.forgetOldest()
  }

  end(): void {
    this.#events.length = 0
    this.#bytes = 0
    this.#settle()
    this.#reservation.end()
  }

  #drop(): void {
    this.#bytes -= this.#events.shift()?.size ?? 0
  }

  /** Returns the memory of dropped events. */
  #settle(): void {
    this.#reservation.resize(this.#bytes)
    if (this.#events.length === 0) this.#store.sessions.delete(this)
  }
}
