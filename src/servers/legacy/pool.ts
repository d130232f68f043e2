/** The pool of sessions with a legacy server: one session per key, opened once for concurrent calls. */
import { Fault } from '../../base/fault/fault.js'
import { Bound } from '../../base/limits/bound.js'
import type { Occupancy } from '../../base/limits/occupancy.js'
import type { SessionClients } from '../capacity.js'
import { PoolEntry, type PoolKey } from './pool-entry.js'

export interface PoolOptions {
  /** The bound on everything that uses the server: sessions of the pool, and others. */
  occupancy: Occupancy
  /** Milliseconds after which an idle session of this principal ends; undefined for never. */
  idleLimit(principal: string, clients: SessionClients): number | undefined
  /** Whether an idle session is kept for the next client. */
  isSpare(principal: string, clients: SessionClients): boolean
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
  /** Set by the pool while its clients have gone: called when the last user has left. */
  onIdle: (() => void) | undefined

  /** Whether calls can still be sent. */
  abstract get alive(): boolean
  abstract readonly changeFeed: { readonly wanted: readonly string[]; keep(uris: readonly string[]): Promise<unknown> }
  abstract close(hurry?: boolean): Promise<void>
  /** Whether another client may get it when its clients have gone: the server does not know what is theirs alone. */
  abstract readonly canBeTakenOver: boolean
  /** Prepares it for another client. Resolves to whether the server still answers. */
  abstract takeOver(): Promise<boolean>

  /** Adds a user, which must call `unuse` once. */
  use(): void {
    this.users++
  }

  unuse(): void {
    if (--this.users > 0) return
    this.lastUsed = performance.now()
    if (this.alone) this.leavePool()
    else this.onIdle?.()
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
  readonly #entries = new Map<string, PoolEntry<S>>()
  /** Connected clients with a session of their own, by the key of what they use here. */
  readonly #clients = new Bound({ max: Number.POSITIVE_INFINITY })
  /** Those of them for which an idle session stays. */
  readonly #keeping = new Bound({ max: Number.POSITIVE_INFINITY })
  /** By key: the subscriptions of lost sessions, to renew them in the next session of that key. */
  readonly #subscribed = new Map<string, readonly string[]>()
  #closed = false

  constructor(options: PoolOptions) {
    this.#options = options
  }

  get sessions(): S[] {
    return [...this.#entries.values()].flatMap(({ session }) => session ?? [])
  }

  /** The session of a key, at once if it is open; opens it if needed. Throws or rejects with a Fault. */
  acquire(wanted: PoolKey, open: () => Promise<S>): S | Promise<S> {
    const session = this.#entries.get(wanted.key)?.session
    if (session?.alive) {
      session.users++
      return session
    }
    const entry = this.#usable(wanted.key)
    if (entry?.takingOver) return entry.takingOver.then(() => this.acquire(wanted, open))
    return this.#use(entry ?? this.#add(wanted, open))
  }

  /** A session of a key that no other call uses; opens one if needed. Throws or rejects with a Fault. */
  acquireUnused(wanted: PoolKey, open: () => Promise<S>): S | Promise<S> {
    for (let n = 0; ; n++) {
      const key = n === 0 ? wanted.key : `${wanted.key} #${n}`
      const entry = this.#usable(key)
      if (!entry) return this.#use(this.#add({ ...wanted, key, clients: wanted.clients ?? wanted.key }, open))
      if (entry.takingOver) return entry.takingOver.then(() => this.acquireUnused(wanted, open))
      if (entry.isUnused) return this.#use(entry)
    }
  }

  /**
   * Notes that a client that uses the sessions of a key is connected, until the returned function is called. `maySleep`: they may
   * end meanwhile when they are idle.
   */
  enter(key: string, maySleep = false): () => void {
    if (this.#clients.heldBy(key) === 0) for (const entry of this.#usedBy(key)) this.#takeOver(entry)
    const counts = maySleep ? [this.#clients] : [this.#clients, this.#keeping]
    for (const count of counts) count.occupy(key)
    return () => {
      for (const count of counts) count.vacate(key)
      if (this.#clients.heldBy(key) > 0) return
      for (const entry of this.#usedBy(key)) this.#leave(entry)
    }
  }

  forgetDead(): void {
    for (const key of [...this.#entries.keys()]) this.#usable(key)
  }

  /** Closes all sessions. Those that have left the pool are being closed. */
  async close(hurry = false): Promise<void> {
    this.#closed = true
    const entries = [...this.#entries.values()]
    this.#entries.clear()
    await Promise.all(entries.map(({ opening }) => opening?.then((session) => session.close(hurry)).catch(() => {})))
  }

  #usedBy(clients: string): PoolEntry<S>[] {
    return [...this.#entries.values()].filter((entry) => entry.clients === clients)
  }

  /** Notes that the last client of a session has gone. It becomes a spare as soon as it is idle. */
  #leave(entry: PoolEntry<S>): void {
    const isIdle = () => this.#options.occupancy.endIdleOf(entry.principal)
    entry.leftAt = performance.now()
    if (entry.session) entry.session.onIdle = isIdle
    isIdle()
  }

  /** Gives a session whose clients have gone to the next one. Calls wait until it has been checked. */
  #takeOver(entry: PoolEntry<S>): void {
    const { session } = entry
    if (!session || entry.leftAt === undefined) return
    session.onIdle = undefined
    if (!session.canBeTakenOver) return session.discard()
    if (session.users > 0) return
    entry.session = undefined
    entry.takingOver = session.takeOver().then((isReady) => {
      entry.takingOver = undefined
      entry.session = session
      if (!isReady) session.discard()
    })
  }

  #use(entry: PoolEntry<S>): S | Promise<S> {
    if (this.#closed) throw new Fault('draining', 'The bridge is shutting down')
    if (!entry.session) return this.#opened(entry)
    entry.session.users++
    return entry.session
  }

  async #opened(entry: PoolEntry<S>): Promise<S> {
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
  #remove(entry: PoolEntry<S>, session: S): void {
    if (this.#entries.get(entry.key) === entry) this.#lose(entry.key, session)
    if (session.users > 0) return
    this.#options.occupancy.leave(entry)
    session.close().catch(() => {})
  }

  #usable(key: string): PoolEntry<S> | undefined {
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

  #add(wanted: PoolKey, open: () => Promise<S>): PoolEntry<S> {
    const { key } = wanted
    const { occupancy } = this.#options
    const entry: PoolEntry<S> = new PoolEntry<S>(wanted, {
      limit: () => this.#idleLimitOf(entry),
      isSpare: () => this.#options.isSpare(entry.principal, this.#clientsOf(entry)),
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

  #idleLimitOf(entry: PoolEntry<S>): number | undefined {
    const clients = this.#clientsOf(entry)
    if (clients === 'gone' && entry.session?.canBeTakenOver === false) return 0
    return this.#options.idleLimit(entry.principal, clients)
  }

  #clientsOf({ clients, leftAt }: PoolEntry<S>): SessionClients {
    if (this.#keeping.heldBy(clients) > 0) return 'here'
    if (this.#clients.heldBy(clients) > 0) return 'idle'
    return leftAt === undefined ? 'unknown' : 'gone'
  }

  #evict({ key, session }: PoolEntry<S>): void {
    this.#entries.delete(key)
    session?.close().catch(() => {})
  }
}
