/**
 * Keeps events longer than the ring does. Each retention class has a share of the memory. In a full class, the server with the
 * most bytes loses its oldest events, so a noisy server evicts nothing of other servers.
 */
import type { KeptText } from './recorder/events.js'

/** The kinds, and their shares of the bytes. */
const SHARES = {
  /** Calls that are still running. */
  running: 3,
  failed: 4,
  /** Calls with questions to the client, and those with the answers. */
  asked: 2,
  refused: 1,
  /** Probes of eras, and handshakes. */
  opening: 2,
  /** Verdicts on the era of a server, and starts and ends of its processes. */
  servers: 1,
  /** Lines of stderr. */
  lines: 1,
  /** Sessions, and their streams. */
  sessions: 1,
  /** Changes of the bridge itself. */
  notes: 1,
  /** Calls that a viewer has pinned: they are not evicted. */
  pinned: 8,
} as const
export type RetentionClass = keyof typeof SHARES
/** The classes of calls. */
export type CallRetentionClass = Extract<RetentionClass, 'running' | 'failed' | 'asked' | 'pinned'>

const ALL_SHARES = Object.values(SHARES).reduce((sum, share) => sum + share, 0)
/** Most pinned calls, and most stored events of one call, without its end. */
export const MAX_PINNED_CALLS = 50
const MAX_ROOM_EVENTS = 100
/** Approximate bytes of an event without its JSON. */
const EVENT_BYTES = 120

/** An event to keep. */
export interface KeptEvent {
  number: number
  json: string
  /** Reads its text, as long as it is stored. */
  text?: (() => KeptText | undefined) | undefined
  /** Its text is shown only if its call fails. */
  isHidden: boolean
}

/** The events of a call, or one event that belongs to none. */
interface Group {
  key: number
  retention: RetentionClass
  /** The class of a pinned call after it is unpinned; undefined if it is dropped then. */
  home: CallRetentionClass | undefined
  server: string
  events: KeptEvent[]
  bytes: number
}

interface Shelf {
  bytes: number
  groups: Set<Group>
}

export class RetainedEvents {
  readonly #bytes: number
  readonly #groups = new Map<number, Group>()
  /** The groups of each class, by server, oldest first. */
  readonly #classes = new Map<RetentionClass, Map<string, Shelf>>()
  readonly #taken = new Map<RetentionClass, number>()
  readonly #events = new Map<number, KeptEvent>()
  /** The numbers of all events, in order. */
  #numbers: number[] = []

  constructor(bytes: number) {
    this.#bytes = bytes
  }

  /** Approximate bytes of the stored events. */
  get bytes(): number {
    return [...this.#taken.values()].reduce((sum, bytes) => sum + bytes, 0)
  }

  /** Adds an event of a server. `call` is the number of its call, or 0. Drops the oldest events if the class is full. */
  add(
    retention: RetentionClass,
    event: KeptEvent,
    { server, call, isEnd }: { server: string; call: number; isEnd: boolean },
  ): void {
    if (this.#events.has(event.number)) return
    // An event of a call has its number, another one a number of its own.
    const key = call === 0 ? -event.number : call
    const known = this.#groups.get(key)
    if (known && known.events.length >= MAX_ROOM_EVENTS && !isEnd) return
    const bytes = event.json.length + EVENT_BYTES
    if ((known?.retention ?? retention) === 'pinned' && this.#takenIn('pinned') + bytes > this.#limitOf('pinned'))
      return
    const group = known ?? this.#place({ key, retention, home: undefined, server, events: [], bytes: 0 })
    group.events.push(event)
    this.#grow(group, bytes)
    this.#events.set(event.number, event)
    this.#numbers.splice(this.#indexAfter(event.number), 0, event.number)
    if (group.retention !== 'pinned') this.#makeRoomIn(group.retention)
  }

  get(number: number): KeptEvent | undefined {
    return this.#events.get(number)
  }

  /** The number of the next event after this number. */
  next(number: number): number | undefined {
    return this.#numbers[this.#indexAfter(number)]
  }

  /** Whether events of this call are kept. */
  has(call: number): boolean {
    return this.#groups.has(call)
  }

  /** Moves the events of a call into another class, or drops them. */
  move(call: number, retention: CallRetentionClass | undefined): void {
    const group = this.#groups.get(call)
    if (!group || group.retention === retention) return
    if (retention === 'failed') for (const event of group.events) event.isHidden = false
    if (group.retention === 'pinned') group.home = retention
    else if (retention === undefined) this.#drop(group)
    else {
      this.#leave(group)
      this.#place(Object.assign(group, { retention }))
      this.#makeRoomIn(retention)
    }
  }

  /** The numbers of the pinned calls. */
  get pinned(): number[] {
    return [...(this.#classes.get('pinned')?.values() ?? [])].flatMap(({ groups }) => [...groups].map(({ key }) => key))
  }

  /** Pins a call: its kept events, and these. Returns false if there is no room. */
  pin(call: number, more: readonly KeptEvent[], server: string, home: CallRetentionClass | undefined): boolean {
    const known = this.#groups.get(call)
    if (known?.retention === 'pinned') return true
    const all = [...(known?.events ?? []), ...more.filter(({ number }) => !this.#events.has(number))]
    const events = [...all.slice(0, MAX_ROOM_EVENTS - 1), ...all.slice(MAX_ROOM_EVENTS - 1).slice(-1)].map((event) => {
      // The stored text will be overwritten.
      const text = event.text?.()
      return { ...event, text: text && (() => text) }
    })
    const bytes = events.reduce(
      (sum, { json, text }) => sum + json.length + EVENT_BYTES + (text?.()?.text.length ?? 0),
      0,
    )
    if (this.pinned.length >= MAX_PINNED_CALLS || this.#takenIn('pinned') + bytes > this.#limitOf('pinned'))
      return false
    if (known) this.#drop(known)
    const group = this.#place({
      key: call,
      retention: 'pinned',
      home: (known?.retention as CallRetentionClass | undefined) ?? home,
      server,
      events: [],
      bytes: 0,
    })
    for (const event of events) this.add('pinned', event, { server, call, isEnd: true })
    this.#grow(group, bytes - group.bytes)
    return true
  }

  /**
   * Moves a pinned call back to its class, and returns that class. Drops its events from this number on, because the ring has
   * them.
   */
  unpin(call: number, from: number): CallRetentionClass | undefined {
    const group = this.#groups.get(call)
    if (group?.retention !== 'pinned') return undefined
    const { home, server, events } = group
    this.#drop(group)
    if (home !== undefined)
      for (const event of events) if (event.number < from) this.add(home, event, { server, call, isEnd: true })
    return home
  }

  /** Empties all classes but these. */
  clear(kept: readonly RetentionClass[]): void {
    for (const group of [...this.#groups.values()]) if (!kept.includes(group.retention)) this.#drop(group)
  }

  #place(group: Group): Group {
    const { retention, server, key } = group
    const servers = this.#classes.get(retention) ?? new Map<string, Shelf>()
    this.#classes.set(retention, servers)
    const shelf = servers.get(server) ?? { bytes: 0, groups: new Set() }
    servers.set(server, shelf)
    shelf.groups.add(group)
    this.#groups.set(key, group)
    const { bytes } = group
    group.bytes = 0
    this.#grow(group, bytes)
    return group
  }

  #grow(group: Group, bytes: number): void {
    const { retention, server } = group
    group.bytes += bytes
    const shelf = this.#classes.get(retention)?.get(server)
    if (shelf) shelf.bytes += bytes
    this.#taken.set(retention, this.#takenIn(retention) + bytes)
  }

  /** Takes a group out of its class. */
  #leave(group: Group): void {
    const { retention, server, bytes } = group
    this.#grow(group, -bytes)
    group.bytes = bytes
    const servers = this.#classes.get(retention)
    const shelf = servers?.get(server)
    shelf?.groups.delete(group)
    if (shelf?.groups.size === 0) servers?.delete(server)
  }

  #drop(group: Group): void {
    this.#leave(group)
    this.#groups.delete(group.key)
    for (const { number } of group.events) {
      this.#events.delete(number)
      this.#numbers.splice(this.#indexAfter(number) - 1, 1)
    }
  }

  #makeRoomIn(room: RetentionClass): void {
    while (this.#takenIn(room) > this.#limitOf(room)) {
      const shelves = [...(this.#classes.get(room)?.values() ?? [])]
      const largest = shelves.reduce((most, shelf) => (shelf.bytes > most.bytes ? shelf : most))
      const [oldest] = largest.groups
      if (!oldest) return
      this.#drop(oldest)
    }
  }

  #takenIn(room: RetentionClass): number {
    return this.#taken.get(room) ?? 0
  }

  #limitOf(room: RetentionClass): number {
    return (this.#bytes * SHARES[room]) / ALL_SHARES
  }

  /** The index of the first number after this one. */
  #indexAfter(number: number): number {
    const numbers = this.#numbers
    let low = 0
    let high = numbers.length
    if (high === 0 || (numbers[high - 1] as number) <= number) return high
    while (low < high) {
      const middle = (low + high) >> 1
      if ((numbers[middle] as number) <= number) low = middle + 1
      else high = middle
    }
    return low
  }
}
