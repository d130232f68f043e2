/** Chooses the room for an event that leaves the ring. */
import type { Fates } from './fates.js'
import type { Other } from './kept.js'
import type { Room } from './rooms.js'
import { OPENING } from './server-views.js'
import { MESSAGE, OTHER, type Slots } from './slots.js'

/** The rooms of events that are neither messages nor the start or end of a call. */
const ROOMS: Readonly<Record<Other['kind'], Room>> = {
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

export class Leaving {
  readonly #events: Slots
  readonly #fates: Fates
  /** Ids of requests that open a server, whose answers have not left yet. */
  readonly #openings = new Set<string>()

  constructor(events: Slots, fates: Fates) {
    this.#events = events
    this.#fates = fates
  }

  /** The room for the event with this number; undefined if it is dropped. Events leave in order. */
  roomOf(number: number): Room | undefined {
    const code = this.#events.codeOf(number)
    const call = this.#events.callOf(number)
    if (call !== 0) return this.#fates.of(call)
    if (code === OTHER) {
      const other = this.#events.otherOf(number)
      return other.kind === 'child' && other['what'] === 'stderr' ? 'lines' : ROOMS[other.kind]
    }
    return code === MESSAGE && this.#isOpening(number) ? 'opening' : undefined
  }

  /** Whether a message opens a server, or answers one that does. */
  #isOpening(number: number): boolean {
    const { hop, dir, form, method, server } = this.#events.messageKindOf(number)
    if (hop !== 'server') return false
    const key = JSON.stringify([server, this.#events.messageIdOf(number)])
    if (dir === 'in') return (form === 'result' || form === 'error') && this.#openings.delete(key)
    if (!OPENING.includes(method)) return false
    if (this.#openings.size >= MAX_OPENINGS) this.#openings.clear()
    if (form === 'request') this.#openings.add(key)
    return true
  }
}
