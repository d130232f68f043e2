/** The pool of sessions with a legacy server: one session per key, opened once for concurrent calls. */
import { Fault } from '../../fault/fault.js'
import { Bound } from '../../limits/bound.js'
import type { Occupancy, Occupant } from '../../limits/occupancy.js'
import type { SessionClients } from '../capacity.js'

export interface PoolOptions {
  /** The bound on everything that uses the server: sessions of the pool, and others. */
  occupancy: Occupancy
  /** Milliseconds after which an idle session of this principal ends; undefined for never. */
  idleLimit(principal: string, clients: SessionClients): number | undefined
}

/** The key of a session, and the principal to whose share of the bound it counts. */
export interface PoolKey {
  key: string
  principal: string
  /** The key of the clients that use it, if they are known by another one. */
  clients?: string
}

/** A session of a pool. It counts its users; without users, it is idle. */
export abstract class Pooled {
  /** Calls, tasks and subscriptions that use it. */
  users = 0
  /** When its last user left, by `performance.now()`. */
  lastUsed = performance.now()
  /** It has left the pool: it gets no new users, and ends when its last user leaves. */
  alone = false
  /** Set by the pool: takes it out of the pool, and ends it if it has no users. */
  leavePool = () => {}

  /** Whether calls can still be sent. */
  abstract get alive(): boolean
  abstract readonly changeFeed: { readonly wanted: readonly string[]; keep(uris: readonly string[]): Promise<unknown> }
  abstract close(hurry?: boolean): Promise<void>

  /** Adds a user, which must call `unuse` once. */
  use(): void {
    this.users++
  }

  unuse(): void {
    if (--this.users > 0) return
    this.lastUsed = performance.now()
    if (this.alone) this.leavePool()
  }

  /** Takes a lost or broken session out of the pool. Its users keep it until they leave. */
  discard(): void {
    this.alone = true
    this.leavePool()
  }
}

/** The maximum number of calls that wait for one session to open. */
const MAX_WAITING_CALLS = 100
/** Maximum characters of all remembered subscriptions of lost sessions. */
const MAX_SUBSCRIBED = 256 * 1024

export class SessionPool<S extends Pooled> {
  readonly #options: PoolOptions
  readonly #entries = new Map<string, Entry<S>>()
  /** Connected clients with a session of their own, by the key of what they use here. */
  readonly #clients = new Bound({ max: Number.POSITIVE_INFINITY })
  /** Sessions that have left the pool and are being closed. */
  readonly #ending = new Set<S>()
  /** By key: the subscriptions of lost sessions, to renew them in the next session of that key. */
  readonly #subscribed = new Map<string, readonly string[]>()
  #closed = false

  constructor(options: PoolOptions) {
    this.#options = options
  }

  /** All open sessions. */
  get sessions(): S[] {
    return [...this.#entries.values()].flatMap(({ session }) => session ?? [])
  }

  /** The session of a key, at once if it is open; opens it if needed. Throws or rejects with a Fault. */
  acquire(wanted: PoolKey, open: () => Promise<S>): S | Promise<S> {
    const session = this.#entries.get(wanted.key)?.session
    if (!session?.alive) return this.#use(this.#usable(wanted.key) ?? this.#add(wanted, open))
    session.users++
    return session
  }

  /** A session of a key that no other call uses; opens one if needed. Throws or rejects with a Fault. */
  acquireUnused(wanted: PoolKey, open: () => Promise<S>): S | Promise<S> {
    for (let n = 0; ; n++) {
      const key = n === 0 ? wanted.key : `${wanted.key} #${n}`
      const entry = this.#usable(key)
      if (!entry) return this.#use(this.#add({ ...wanted, key, clients: wanted.clients ?? wanted.key }, open))
      if (entry.isUnused) return this.#use(entry)
    }
  }

  /** Notes that a client that uses the sessions of a key is connected, until the returned function is called. */
  enter(key: string): () => void {
    this.#clients.occupy(key)
    return () => {
      this.#clients.vacate(key)
      if (this.#clients.heldBy(key) > 0) return
      for (const entry of this.#entries.values()) if (entry.clients === key) entry.leftAt = performance.now()
    }
  }

  /** Removes sessions whose channel has ended. */
  forgetDead(): void {
    for (const key of [...this.#entries.keys()]) this.#usable(key)
  }

  /** Closes all sessions. A second call with `hurry` also speeds up those that are still closing. */
  async close(hurry = false): Promise<void> {
    this.#closed = true
    const entries = [...this.#entries.values()]
    this.#entries.clear()
    for (const session of this.#ending) session.close(hurry).catch(() => {})
    await Promise.all(
      entries.map(({ opening }) => opening?.then((session) => this.#end(session, hurry)).catch(() => {})),
    )
    await Promise.all([...this.#ending].map((session) => session.close(hurry)))
  }

  #use(entry: Entry<S>): S | Promise<S> {
    if (this.#closed) throw new Fault('draining', 'The bridge is shutting down')
    if (!entry.session) return this.#opened(entry)
    entry.session.users++
    return entry.session
  }

  async #opened(entry: Entry<S>): Promise<S> {
    if (entry.waiting >= MAX_WAITING_CALLS)
      throw new Fault('overloaded', 'Too many calls wait for a session with the server', { retryAfter: 1 })
    entry.waiting++
    try {
      return await (entry.opening as Promise<S>)
    } finally {
      entry.waiting--
    }
  }

  /** Takes a session out of the pool, and ends it if it has no users. */
  #remove(entry: Entry<S>, session: S): void {
    if (this.#entries.get(entry.key) === entry) this.#lose(entry.key, session)
    if (session.users > 0) return
    this.#options.occupancy.leave(entry)
    this.#end(session).catch(() => {})
  }

  async #end(session: S, hurry = false): Promise<void> {
    this.#ending.add(session)
    await session.close(hurry)
    this.#ending.delete(session)
  }

  #usable(key: string): Entry<S> | undefined {
    const entry = this.#entries.get(key)
    if (!entry?.session || entry.session.alive) return entry
    entry.session.discard()
    return undefined
  }

  #lose(key: string, { changeFeed: { wanted } }: S): void {
    this.#entries.delete(key)
    if (wanted.length === 0) return
    this.#subscribed.set(key, wanted)
    let room = MAX_SUBSCRIBED
    // The most recent ones are kept, as many as there is room for.
    for (const [lost, uris] of [...this.#subscribed].reverse()) {
      room -= uris.reduce((sum, { length }) => sum + length, lost.length)
      if (room < 0) this.#subscribed.delete(lost)
    }
  }

  /** Opens a session and renews the subscriptions of a lost one with the same key, before it is used. */
  async #opening(key: string, open: () => Promise<S>): Promise<S> {
    const session = await open()
    const wanted = this.#subscribed.get(key)
    this.#subscribed.delete(key)
    if (wanted) await session.changeFeed.keep(wanted)
    return session
  }

  #add(wanted: PoolKey, open: () => Promise<S>): Entry<S> {
    const { key } = wanted
    const { occupancy } = this.#options
    const entry: Entry<S> = new Entry<S>(wanted, {
      limit: () => this.#idleLimitOf(entry),
      end: () => this.#evict(entry),
    })
    occupancy.enter(entry)
    entry.opening = this.#opening(key, open)
    this.#entries.set(key, entry)
    entry.opening
      .then((session) => {
        // Waiting calls count as users from now on, although they get the session later.
        session.users = entry.waiting
        session.leavePool = () => this.#remove(entry, session)
        entry.session = session
      })
      .catch(() => {
        occupancy.leave(entry)
        if (this.#entries.get(key) === entry) this.#entries.delete(key)
      })
    return entry
  }

  #idleLimitOf({ principal, clients, leftAt }: Entry<S>): number | undefined {
    const seen = this.#clients.heldBy(clients) > 0 ? 'here' : leftAt === undefined ? 'unknown' : 'gone'
    return this.#options.idleLimit(principal, seen)
  }

  #evict({ key, session }: Entry<S>): void {
    this.#entries.delete(key)
    if (session) this.#end(session).catch(() => {})
  }
}

/** A session of the pool, open or being opened. */
class Entry<S extends Pooled> implements Occupant {
  readonly key: string
  readonly principal: string
  /** The key of the clients that use it. */
  readonly clients: string
  readonly end: () => void
  readonly #limit: () => number | undefined
  opening: Promise<S> | undefined
  session: S | undefined
  /** Calls that wait for it to open. */
  waiting = 0
  /** When its last connected client left, by `performance.now()`; undefined if it has had none. */
  leftAt: number | undefined

  constructor({ key, principal, clients = key }: PoolKey, ending: { limit(): number | undefined; end(): void }) {
    this.key = key
    this.principal = principal
    this.clients = clients
    this.#limit = ending.limit
    this.end = ending.end
  }

  get isUnused(): boolean {
    return this.session ? this.session.users === 0 : this.waiting === 0
  }

  get idleSince(): number | undefined {
    return this.session?.users === 0 ? Math.max(this.session.lastUsed, this.leftAt ?? 0) : undefined
  }

  get idleLimit(): number | undefined {
    return this.#limit()
  }
}
