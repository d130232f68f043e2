/** The pool of sessions with a legacy server: one session per key, opened once for concurrent calls. */
import { Fault } from '../../protocol/fault.js'
import type { Occupancy, Occupant } from '../../protocol/occupancy.js'
import type { LegacySession } from './session.js'

export interface PoolOptions {
  /** The bound on everything that uses the server: sessions of the pool, and others. */
  occupancy: Occupancy
  /** Milliseconds after which an idle session of this principal ends; undefined for never. */
  idleLimit(principal: string): number | undefined
  /** The maximum number of calls that wait for one session to open. */
  maxWaiting?: number
}

/** The key of a session, and the principal to whose share of the bound it counts. */
export interface Owner {
  key: string
  principal: string
}

type Open = () => Promise<LegacySession>

/** The right to use a session for the time of one call. */
export class Lease {
  readonly session: LegacySession
  readonly #entry: Entry
  readonly #pool: SessionPool
  #held = true

  /** For the pool only. */
  constructor(session: LegacySession, entry: Entry, pool: SessionPool) {
    this.session = session
    this.#entry = entry
    this.#pool = pool
  }

  /** The session has left the pool: no other call will get it. */
  get alone(): boolean {
    return this.#entry.discarded
  }

  /** Returns another lease of the same session, which has to be released as well. */
  share(): Lease {
    this.#entry.users++
    return new Lease(this.session, this.#entry, this.#pool)
  }

  /** Ends the lease. Further calls do nothing. */
  release(): void {
    if (!this.#held) return
    this.#held = false
    if (--this.#entry.users === 0) this.#pool.unused(this.#entry, this.session)
  }

  /** Removes a lost or broken session from the pool. Existing leases stay valid until they are released. */
  discard(): void {
    this.#pool.discard(this.#entry, this.session)
  }
}

const MAX_WAITING = 100
/** Maximum characters of all remembered subscriptions of lost sessions. */
const MAX_SUBSCRIBED = 256 * 1024

export class SessionPool {
  readonly #options: PoolOptions
  readonly #entries = new Map<string, Entry>()
  /** Sessions that have left the pool and are being closed. */
  readonly #ending = new Set<LegacySession>()
  /** By key: the subscriptions of lost sessions, to renew them in the next session of that key. */
  readonly #subscribed = new Map<string, readonly string[]>()
  #closed = false

  constructor(options: PoolOptions) {
    this.#options = options
  }

  /** All open sessions. */
  get sessions(): LegacySession[] {
    return [...this.#entries.values()].flatMap(({ session }) => session ?? [])
  }

  /** Lends the session of a key, at once if it is open; opens it if needed. Throws or rejects with a Fault. */
  acquire(owner: Owner, open: Open): Lease | Promise<Lease> {
    return this.#lend(this.#usable(owner.key) ?? this.#add(owner, open))
  }

  /** Lends a session of a key that no other call uses; opens one if needed. Throws or rejects with a Fault. */
  acquireUnused(owner: Owner, open: Open): Lease | Promise<Lease> {
    for (let n = 0; ; n++) {
      const key = n === 0 ? owner.key : `${owner.key} #${n}`
      const entry = this.#usable(key)
      if (!entry) return this.#lend(this.#add({ ...owner, key }, open))
      if (entry.users === 0) return this.#lend(entry)
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

  /** For leases only: the last one of a session has been released. */
  unused(entry: Entry, session: LegacySession): void {
    entry.lastUsed = performance.now()
    if (entry.discarded) this.#retire(entry, session)
    else this.#options.occupancy.touch(entry)
  }

  /** For leases only: takes a session out of the pool. */
  discard(entry: Entry, session: LegacySession): void {
    entry.discarded = true
    if (this.#entries.get(entry.key) === entry) this.#lose(entry.key, session)
  }

  #lend(entry: Entry): Lease | Promise<Lease> {
    if (this.#closed) throw new Fault('draining', 'The bridge is shutting down')
    if (!entry.session) return this.#opened(entry)
    entry.users++
    return new Lease(entry.session, entry, this)
  }

  async #opened(entry: Entry): Promise<Lease> {
    if (entry.waiting >= (this.#options.maxWaiting ?? MAX_WAITING))
      throw new Fault('overloaded', 'Too many calls wait for a session with the server', { retryAfter: 1 })
    entry.waiting++
    entry.users++
    try {
      return new Lease(await (entry.opening as Promise<LegacySession>), entry, this)
    } catch (error) {
      entry.users--
      throw error
    } finally {
      entry.waiting--
    }
  }

  /** Ends a session without leases. */
  #retire(entry: Entry, session: LegacySession): void {
    this.#options.occupancy.leave(entry)
    this.#end(session).catch(() => {})
  }

  async #end(session: LegacySession, hurry = false): Promise<void> {
    this.#ending.add(session)
    await session.close(hurry)
    this.#ending.delete(session)
  }

  #usable(key: string): Entry | undefined {
    const entry = this.#entries.get(key)
    if (!entry?.session || entry.session.alive) return entry
    entry.discarded = true
    this.#lose(key, entry.session)
    if (entry.users === 0) this.#retire(entry, entry.session)
    return undefined
  }

  #lose(key: string, { changeFeed: { wanted } }: LegacySession): void {
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

  /** Opens a session and renews the subscriptions of a lost one with the same key, before it is lent. */
  async #opening(key: string, open: Open): Promise<LegacySession> {
    const session = await open()
    const wanted = this.#subscribed.get(key)
    this.#subscribed.delete(key)
    if (wanted) await session.changeFeed.keep(wanted)
    return session
  }

  #add({ key, principal }: Owner, open: Open): Entry {
    const { occupancy, idleLimit } = this.#options
    const entry = new Entry(key, principal, idleLimit, () => this.#evict(entry))
    occupancy.enter(entry)
    entry.opening = this.#opening(key, open)
    this.#entries.set(key, entry)
    entry.opening
      .then((session) => {
        entry.session = session
      })
      .catch(() => {
        occupancy.leave(entry)
        if (this.#entries.get(key) === entry) this.#entries.delete(key)
      })
    return entry
  }

  #evict({ key, session }: Entry): void {
    this.#entries.delete(key)
    if (session) this.#end(session).catch(() => {})
  }
}

/** A session of the pool, open or being opened. */
class Entry implements Occupant {
  readonly key: string
  readonly principal: string
  readonly end: () => void
  readonly #idleLimit: PoolOptions['idleLimit']
  opening: Promise<LegacySession> | undefined
  session: LegacySession | undefined
  waiting = 0
  /** Leases that have not been released. */
  users = 0
  lastUsed = performance.now()
  /** The session has left the pool and ends when its last lease is released. */
  discarded = false

  constructor(key: string, principal: string, idleLimit: PoolOptions['idleLimit'], end: () => void) {
    this.key = key
    this.principal = principal
    this.#idleLimit = idleLimit
    this.end = end
  }

  get idleSince(): number | undefined {
    return this.session && this.users === 0 && !this.discarded ? this.lastUsed : undefined
  }

  get idleLimit(): number | undefined {
    return this.#idleLimit(this.principal)
  }
}
